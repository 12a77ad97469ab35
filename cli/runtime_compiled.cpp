#include "cli/runtime_compiled.h"

#include <cstdlib>
#include <set>

#include "cli/companions.h"
#include "core/codeobject/code_object.h"
#include "core/snapshot/reader.h"
#include "core/support/error.h"

namespace kerncap::cli {

namespace fs = std::filesystem;

void RuntimeCompiled::add_to(Environment& environment) const {
  const fs::path library = companions().libraries / "libkerncap-hiprtc.so";
  if (std::error_code ignored; !fs::exists(library, ignored)) return;
  const auto known = environment.find("LD_PRELOAD");
  const char* inherited = std::getenv("LD_PRELOAD");
  const std::string others = known != environment.end() ? known->second.value_or("")
                             : inherited != nullptr     ? std::string(inherited)
                                                        : std::string();
  environment["LD_PRELOAD"] = others.empty() ? library.string() : others + ":" + library.string();
  environment["KERNCAP_HIPRTC_FOLDER"] = folder_.path().string();
}

void RuntimeCompiled::keep(const fs::path& snapshot) const {
  std::set<std::string> wanted;
  const snapshot::Reader reader(snapshot);
  for (const auto& dispatch : reader.manifest().dispatches) wanted.insert(dispatch.code_object);
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    if (!entry.is_directory() || entry.path().filename().string().starts_with(".")) continue;
    try {
      const support::MappedFile code(entry.path() / "code");
      for (const auto& found : codeobject::find_code_objects(code.bytes(), "code of hipRTC")) {
        if (wanted.erase(found.digest) == 0) continue;
        const fs::path place = snapshot / "runtime-compiled" / found.digest;
        fs::create_directories(place.parent_path());
        fs::copy(entry.path(), place, fs::copy_options::recursive);
        fs::remove(place / "code");  // the snapshot has it
      }
    } catch (const support::Error&) {
      // A process that ended in the middle: its kernels have no source.
    }
  }
}

}  // namespace kerncap::cli
