// Proof that a project makes the captured code object: configured and built in a folder of its own, as a user would.
#pragma once

#include <filesystem>
#include <string>

#include "core/support/file.h"
#include "core/support/process.h"
#include "emit/emit.h"
#include "emit/project.h"

namespace kerncap::emit {

// A build folder of a project, removed at the end.
class RebuildFolder {
 public:
  explicit RebuildFolder(std::filesystem::path project) : project_(std::move(project)), folder_("kerncap-rebuild") {}

  // Both return what went wrong: empty, or one sentence out of CMake's or the compiler's output.
  std::string configure();
  std::string build();  // the kernel's target; sets build_time()

  std::uint64_t build_time() const { return build_time_; }  // ns of processor time, of the last build()
  std::filesystem::path path() const { return folder_.path() / "build"; }
  std::filesystem::path code_object() const { return path() / "kernel.hsaco"; }

 private:
  std::filesystem::path project_;
  support::TemporaryFolder folder_;
  std::uint64_t build_time_ = 0;
};

// Why the project does not make the captured code object is in the result; nothing is thrown for that.
// `rebuild` tells the reasons for a difference; none for a program that was compiled at run time.
RebuildCheck check_rebuild(RebuildFolder& folder, const Rebuild* rebuild, const std::string& digest);

}  // namespace kerncap::emit
