// Compiling the kernel of an emitted project: its own CMake build, for one target, with what the compiler says.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kerncap::replay {

struct Rebuilt {
  bool succeeded = false;
  bool timed_out = false;
  std::string messages;  // of the compiler, or of CMake when it could not get so far
  std::filesystem::path code_object;
  double seconds = 0;
};

// Where a project is built in place. Not thread-safe; one build at a time.
class Rebuild {
 public:
  // `project` has a CMakeLists.txt with a target `kernel`; `build_folder` is made where it is missing. Throws
  // Error{usage} when the project has no sources to rebuild.
  Rebuild(std::filesystem::path project, std::filesystem::path build_folder, std::chrono::milliseconds timeout);

  // Configures where that is necessary, then builds. Throws Error{environment} only when CMake itself cannot be
  // started.
  Rebuilt run();
  int cancel_fd = -1;  // readable: the compiler is ended
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

 private:
  Rebuilt step(const std::vector<std::string>& words) const;

  std::filesystem::path project_, build_;
  std::chrono::milliseconds timeout_;
};

// A copy of a project's sources that candidates are compiled in, so that the project itself is never touched. The
// snapshot is not copied.
class CandidateSources {
 public:
  // `scratch` is an existing, private folder. Throws Error{usage} when the project cannot be rebuilt.
  CandidateSources(std::filesystem::path project, std::filesystem::path scratch, std::chrono::milliseconds timeout);

  // Compiles with these files (relative to the project, below src/, existing ones) replaced; afterwards the copy is as
  // the project again. Throws Error{bad_input} for a name that is none of the project's sources.
  Rebuilt compile(const std::map<std::string, std::string>& files, std::chrono::milliseconds timeout, int cancel_fd);
  // The file that defines the kernel, relative to the project; empty when the project does not say.
  const std::string& kernel_file() const { return kernel_file_; }

 private:
  std::filesystem::path project_, copy_;
  std::string kernel_file_;
  Rebuild rebuild_;
  std::map<std::string, std::string> replaced_;  // name -> the project's own content
};

}  // namespace kerncap::replay
