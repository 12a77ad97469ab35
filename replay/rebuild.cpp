#include "replay/rebuild.h"

#include <cstdlib>
#include <system_error>

#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/process.h"
#include "replay/project.h"

namespace kerncap::replay {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;

constexpr std::size_t longest_message = 64 * 1024;
constexpr std::uint64_t largest_source = std::uint64_t{64} << 20;
constexpr const char* preloaded_library = "libkerncap-softgpu.so";

// Compilers need no GPU: the software GPU's library stays out of them.
std::map<std::string, std::optional<std::string>> compiler_environment() {
  std::map<std::string, std::optional<std::string>> changes{{"KERNCAP_SOFTGPU_ARCH", std::nullopt}};
  const char* const preload = std::getenv("LD_PRELOAD");
  if (preload == nullptr) return changes;
  std::string rest;
  const std::string all = preload;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find_first_of(": ", begin), all.size());
    const std::string one = all.substr(begin, end - begin);
    if (!one.empty() && !one.ends_with(preloaded_library)) rest += (rest.empty() ? "" : ":") + one;
    begin = end + 1;
  }
  changes["LD_PRELOAD"] = rest.empty() ? std::nullopt : std::optional(rest);
  return changes;
}

void require_sources(const fs::path& project) {
  std::error_code ignored;
  if (!fs::is_regular_file(project / "CMakeLists.txt", ignored) || !fs::is_directory(project / "jobs", ignored)) {
    fail(ExitCode::usage,
         "'{}' is no project that can be rebuilt (it has no recorded compiler jobs): give code objects",
         project.string());
  }
}

std::string shortened(std::string text) {
  if (text.size() <= longest_message) return text;
  text.resize(longest_message);
  return text + "\n... (cut)\n";
}

}  // namespace

Rebuild::Rebuild(fs::path project, fs::path build_folder, std::chrono::milliseconds timeout)
    : project_(std::move(project)), build_(std::move(build_folder)), timeout_(timeout) {
  require_sources(project_);
}

Rebuilt Rebuild::step(const std::vector<std::string>& words) const {
  support::Command command;
  command.argv = words;
  command.environment = compiler_environment();
  // Ninja prints a failed command's output between its own lines; Make on both streams. Together they are in order.
  command.standard_output = support::Stream::capture;
  command.standard_error = support::Stream::capture;
  command.standard_input = "";
  command.timeout = timeout_;
  command.cancel_fd = cancel_fd;
  const support::ProcessResult result = support::run(command);
  Rebuilt rebuilt;
  rebuilt.succeeded = result.succeeded();
  rebuilt.timed_out = result.timed_out;
  rebuilt.messages = shortened(result.standard_output + result.standard_error);
  rebuilt.seconds = std::chrono::duration<double>(result.wall_time).count();
  return rebuilt;
}

Rebuilt Rebuild::run() {
  std::error_code ignored;
  double seconds = 0;
  if (!fs::exists(build_ / "CMakeCache.txt", ignored)) {
    std::vector<std::string> configure{"cmake", "-S", project_.string(), "-B", build_.string()};
    if (support::find_program("ninja")) configure.insert(configure.end(), {"-G", "Ninja"});
    const Rebuilt configured = step(configure);
    if (!configured.succeeded) return configured;
    seconds = configured.seconds;
  }
  // CMake only passes the call on; ninja by itself does without that start.
  std::vector<std::string> build{"cmake", "--build", build_.string(), "--target", "kernel"};
  if (fs::exists(build_ / "build.ninja", ignored) && support::find_program("ninja"))
    build = {"ninja", "-C", build_.string(), "kernel"};
  Rebuilt rebuilt = step(build);
  rebuilt.seconds += seconds;
  rebuilt.code_object = build_ / "kernel.hsaco";
  if (rebuilt.succeeded && !fs::is_regular_file(rebuilt.code_object, ignored)) {
    rebuilt.succeeded = false;
    rebuilt.messages += "the build ended well, but left no " + rebuilt.code_object.string() + "\n";
  }
  return rebuilt;
}

CandidateSources::CandidateSources(fs::path project, fs::path scratch, std::chrono::milliseconds timeout)
    : project_(std::move(project)),
      copy_(std::move(scratch) / "project"),
      rebuild_((require_sources(project_), project_), copy_ / "build", timeout) {
  fs::create_directory(copy_);
  for (const fs::directory_entry& entry : fs::directory_iterator(project_)) {
    const std::string name = entry.path().filename().string();
    if (name == "build" || name == ".git") continue;
    if (name == "snapshot" || name == "replay") {
      fs::create_symlink(fs::absolute(entry.path()), copy_ / name);
    } else {
      fs::copy(entry.path(), copy_ / name, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    }
  }
  rebuild_ = Rebuild(copy_, copy_ / "build", timeout);
  std::error_code ignored;
  if (fs::is_regular_file(project_ / "kernel.json", ignored)) {
    const std::string file = read_kernel_json(project_ / "kernel.json").file;
    if (support::is_safe_relative_path(file) && fs::is_regular_file(project_ / file, ignored)) kernel_file_ = file;
  }
}

Rebuilt CandidateSources::compile(const std::map<std::string, std::string>& files, std::chrono::milliseconds timeout,
                                  int cancel_fd) {
  const auto put = [&](const std::string& name, const std::string& text) {
    // Unchanged files keep their time stamps, and what was built of them stays.
    if (support::read_text_file(copy_ / name, largest_source) != text)
      support::write_file_atomically(copy_ / name, text, 0644);
  };
  for (const auto& [name, text] : files) {
    std::error_code ignored;
    if (!support::is_safe_relative_path(name) || !name.starts_with("src/") ||
        !fs::is_regular_file(fs::symlink_status(project_ / name, ignored))) {
      fail(ExitCode::bad_input, "'{}' is none of the project's sources (a file below src/)", name);
    }
  }
  for (const auto& [name, text] : files) {
    replaced_.try_emplace(name, support::read_text_file(project_ / name, largest_source));
  }
  for (const auto& [name, original] : replaced_) {
    const auto wanted = files.find(name);
    put(name, wanted == files.end() ? original : wanted->second);
  }
  rebuild_.cancel_fd = cancel_fd;
  rebuild_.set_timeout(timeout);
  return rebuild_.run();
}

}  // namespace kerncap::replay
