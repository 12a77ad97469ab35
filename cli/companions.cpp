#include "cli/companions.h"

#include "core/support/error.h"
#include "core/support/process.h"

namespace kerncap::cli {

Companions companions() {
  const std::filesystem::path programs = support::executable_folder();
  const std::filesystem::path prefix = programs.parent_path();
  return {programs, prefix / "lib/kerncap", prefix / "libexec/kerncap/masquerade", prefix / "share/kerncap"};
}

std::filesystem::path require_companion(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    support::fail(support::ExitCode::environment,
                  "this installation of Kerncap is incomplete: '{}' is missing; build or install it again",
                  path.string());
  }
  return path;
}

}  // namespace kerncap::cli
