#include "capture/companion.h"

#include <dlfcn.h>

#include <filesystem>

#include "core/support/error.h"

namespace kerncap::capture {
namespace {

using support::ExitCode;
using support::fail;

const Companion& open_companion() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&open_companion), &self) == 0 || self.dli_fname == nullptr)
    fail(ExitCode::environment, "cannot tell where the capture library lies, so its companion cannot be found");
  const std::string path = (std::filesystem::path(self.dli_fname).parent_path() / companion_name).string();
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(ExitCode::environment, "cannot load '{}': {}", path, ::dlerror());
  const auto table = reinterpret_cast<const Companion* (*)()>(::dlsym(library, companion_entry));
  if (table == nullptr) fail(ExitCode::environment, "'{}' belongs to another version of Kerncap", path);
  return *table();
}

}  // namespace

const Companion& companion() {
  static const Companion& opened = open_companion();  // tried again when it threw
  return opened;
}

}  // namespace kerncap::capture
