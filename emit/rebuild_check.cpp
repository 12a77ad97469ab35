#include "emit/rebuild_check.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <regex>

#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/process.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;

support::ProcessResult run_quietly(std::vector<std::string> argv) {
  support::Command command;
  command.argv = std::move(argv);
  command.standard_output = support::Stream::capture;
  command.standard_error = support::Stream::capture;
  command.timeout = std::chrono::minutes(30);
  // What the user's own build may have set must neither log nor steer this one.
  for (const char* name :
       {"CC_PRINT_OPTIONS", "CC_PRINT_HEADERS", "CCC_OVERRIDE_OPTIONS", "MAKEFLAGS", "NINJA_STATUS", "DESTDIR"})
    command.environment[name] = std::nullopt;
  return support::run(command);
}

// The line that says what is wrong, out of CMake's and the compiler's output.
std::string first_error(const support::ProcessResult& result) {
  const std::string text = result.standard_error + "\n" + result.standard_output;
  std::string cmake_error;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string line = text.substr(start, end - start);
    if (line.find("error:") != std::string::npos) return line;
    if (line.starts_with("CMake Error")) {
      // CMake writes its message as an indented paragraph below.
      for (std::size_t at = end + 1; at < text.size();) {
        const std::size_t stop = std::min(text.find('\n', at), text.size());
        const std::string more = text.substr(at, stop - at);
        if (more.starts_with("Call Stack") || (more.empty() && !cmake_error.empty())) return cmake_error;
        if (const auto first = more.find_first_not_of(' '); first != std::string::npos)
          cmake_error += (cmake_error.empty() ? "" : " ") + more.substr(first);
        at = stop + 1;
      }
      return cmake_error;
    }
    start = end + 1;
  }
  return result.timed_out ? "it took more than 30 minutes" : "the build failed without saying why";
}

bool same_file(const std::string& path, std::uint64_t size, std::uint64_t mtime) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  return std::uint64_t(status.st_size) == size &&
         (mtime == 0 ||
          std::uint64_t(status.st_mtim.tv_sec) * 1000000000u + std::uint64_t(status.st_mtim.tv_nsec) == mtime);
}

// Of all that this process has waited for (getrusage(2)). Two builds are compared by it, because the time on the wall
// says as much about what else the machine does.
std::uint64_t processor_time_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto nanoseconds = [](const timeval& time) {
    return std::uint64_t(time.tv_sec) * 1'000'000'000 + std::uint64_t(time.tv_usec) * 1000;
  };
  return nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
}

std::uint64_t since(std::chrono::steady_clock::time_point start) {
  return std::uint64_t(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
}

// Why the bytes may differ, most telling first.
std::string reason_for_difference(const Rebuild& rebuild) {
  for (const auto& file : rebuild.tree.files)
    if (file.changed) return "'" + file.original + "' was changed after it was compiled, and no copy was archived";
  static const std::regex clock("__(DATE|TIME|TIMESTAMP)__");
  for (const auto& file : rebuild.tree.files)
    if (!file.device_units.empty() && std::regex_search(file.content, clock))
      return "'" + file.original + "' uses the time of the compilation (__DATE__, __TIME__ or __TIMESTAMP__)";
  const auto& compiler = rebuild.record->compiler;
  if (!compiler.resolved.empty() && compiler.size != 0 && !same_file(compiler.resolved, compiler.size, compiler.mtime))
    return "the compiler '" + compiler.resolved + "' is not the one that was recorded any more";
  for (const auto& file : rebuild.record->files)
    if (file.system && file.size != 0 && !same_file(file.path, file.size, file.mtime))
      return "the system header '" + file.path + "' was changed after it was compiled";
  return "the recorded jobs give other bytes for a reason that the record does not show";
}

}  // namespace

std::string RebuildFolder::configure() {
  if (!support::find_program("cmake")) return "CMake is not installed";
  std::vector<std::string> command{
      "cmake", "-S", project_.string(), "-B", path().string(), "-DKERNCAP_BUILD_REPLAYER=OFF"};
  if (support::find_program("ninja")) command.insert(command.end(), {"-G", "Ninja"});
  const auto result = run_quietly(std::move(command));
  return result.succeeded() ? "" : first_error(result);
}

std::string RebuildFolder::build() {
  const std::uint64_t before = processor_time_of_children();
  const auto result = run_quietly({"cmake", "--build", path().string(), "--target", "kernel"});
  build_time_ = processor_time_of_children() - before;
  return result.succeeded() ? "" : first_error(result);
}

RebuildCheck check_rebuild(RebuildFolder& folder, const Rebuild* rebuild, const std::string& digest) {
  RebuildCheck check;
  const auto start = std::chrono::steady_clock::now();
  try {
    check.reason = folder.configure();
    if (check.reason.empty()) check.reason = folder.build();
    if (!check.reason.empty()) return check;
    check.digest = support::sha256_hex_of_file(folder.code_object());
  } catch (const support::Error& error) {
    check.reason = error.what();
    return check;
  }
  check.wall = since(start);
  check.outcome = check.digest == digest ? RebuildOutcome::byte_identical : RebuildOutcome::differs;
  if (check.outcome == RebuildOutcome::differs)
    check.reason = rebuild != nullptr ? reason_for_difference(*rebuild)
                                      : "hipRTC on this machine gives other code for the same program";
  return check;
}

}  // namespace kerncap::emit
