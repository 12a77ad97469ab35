#include "cli/captured_run.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "cli/companions.h"
#include "core/codeobject/code_object.h"
#include "core/support/file.h"
#include "core/support/progress.h"

namespace kerncap::cli {
namespace {

namespace fs = std::filesystem;
using capture::KernelStatus;
using capture::Status;
using capture::StatusState;
using support::ExitCode;
using support::fail;

constexpr auto status_interval = std::chrono::milliseconds(200);
constexpr std::size_t candidates_shown = 12;

// Follows the status files while the application runs and draws the capture's progress.
class StatusWatcher {
 public:
  explicit StatusWatcher(fs::path folder) : folder_(std::move(folder)), thread_([this] { watch(); }) {}
  ~StatusWatcher() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  StatusWatcher(const StatusWatcher&) = delete;
  StatusWatcher& operator=(const StatusWatcher&) = delete;

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, status_interval, [this] { return stop_; })) {
      try {
        show();
      } catch (const std::exception&) {
        // A status that cannot be read now is read at the end; progress is only a courtesy.
      }
    }
  }
  void show() {
    for (const Status& status : capture::read_statuses(folder_)) {
      if (status.state != StatusState::capturing) continue;
      if (!progress_) progress_.emplace("capturing", status.bytes_total, "bytes");
      progress_->set_total(status.bytes_total);
      if (status.bytes_done > shown_) progress_->advance(status.bytes_done - shown_);
      shown_ = std::max(shown_, status.bytes_done);
      return;
    }
    progress_.reset();
    shown_ = 0;
  }

  fs::path folder_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::optional<support::Progress> progress_;
  std::uint64_t shown_ = 0;
  std::thread thread_;
};

std::string list_of(const std::vector<const KernelStatus*>& kernels) {
  std::string text;
  for (std::size_t i = 0; i < kernels.size() && i < candidates_shown; ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", kernels[i]->demangled);
    if (kernels[i]->dispatches > 0) text += fmt::format(" ({} dispatches)", kernels[i]->dispatches);
  }
  if (kernels.size() > candidates_shown) text += fmt::format(" and {} more", kernels.size() - candidates_shown);
  return text;
}

template <typename Predicate>
std::vector<const KernelStatus*> kernels_where(const std::vector<Status>& statuses, Predicate predicate) {
  std::vector<const KernelStatus*> found;
  for (const Status& status : statuses) {
    for (const KernelStatus& kernel : status.kernels) {
      const bool known = std::any_of(found.begin(), found.end(), [&](const KernelStatus* other) {
        return other->symbol == kernel.symbol && other->code_object == kernel.code_object;
      });
      if (!known && predicate(kernel)) found.push_back(&kernel);
    }
  }
  std::sort(found.begin(), found.end(), [](const auto* a, const auto* b) { return a->dispatches > b->dispatches; });
  return found;
}

// Two kernels of one name live in different code objects: the user then chooses by digest.
std::string how_to_choose(const std::vector<const KernelStatus*>& matching) {
  const bool same_name = std::all_of(matching.begin(), matching.end(), [&](const KernelStatus* kernel) {
    return kernel->demangled == matching.front()->demangled;
  });
  if (!same_name) return "name one of them whole, or by -k sym:<symbol>";
  std::string text = "choose one with --code-object <digest>:";
  for (const KernelStatus* kernel : matching) text += fmt::format(" {:.12}", kernel->code_object);
  return text;
}

[[noreturn]] void refuse_ambiguity(const std::vector<Status>& statuses, const CaptureOptions& options) {
  const auto launched = kernels_where(statuses, [](const KernelStatus& k) { return k.matches && k.dispatches > 0; });
  fail(ExitCode::answer_is_no, "'{}' matches several kernels that were launched: {}; {}", options.kernel,
       list_of(launched), how_to_choose(launched));
}

[[noreturn]] void explain_missing_snapshot(const CapturedRun& run, const CaptureOptions& options) {
  if (std::any_of(run.statuses.begin(), run.statuses.end(), [](const Status& s) { return s.ambiguous; })) {
    refuse_ambiguity(run.statuses, options);
  }
  if (!run.application.succeeded()) {
    fail(ExitCode::application_failed, "the application ended with {} before a dispatch of '{}' was captured",
         describe_end(run.application), options.kernel);
  }
  for (const Status& status : run.statuses) {
    if (status.state == StatusState::failed) {
      fail(ExitCode::environment, "the capture failed, the application ran on: {}", status.reason);
    }
  }
  if (run.statuses.empty()) {
    fail(ExitCode::environment,
         "the application loaded no HSA runtime, so nothing could be captured; is it a GPU application, and is another "
         "tool "
         "in HSA_TOOLS_LIB? ('kerncap doctor' looks)");
  }
  const auto matching = kernels_where(run.statuses, [](const KernelStatus& k) { return k.matches; });
  if (!matching.empty()) {
    fail(ExitCode::answer_is_no, "the wanted dispatch ({}) of '{}' did not come: {}", options.dispatches,
         options.kernel, list_of(matching));
  }
  const auto launched = kernels_where(run.statuses, [](const KernelStatus& k) { return k.dispatches > 0; });
  fail(ExitCode::answer_is_no, "no kernel that matches '{}' was launched; {}{}", options.kernel,
       launched.empty() ? "the application launched none at all" : "these were: ", list_of(launched));
}

}  // namespace

std::string describe_end(const support::ProcessResult& result) {
  if (result.signal == 0) return fmt::format("exit code {}", result.exit_status);
  const char* name = ::sigabbrev_np(result.signal);
  return name != nullptr ? fmt::format("SIG{} (signal {})", name, result.signal)
                         : fmt::format("signal {}", result.signal);
}

CapturedRun run_captured(const Program& program, capture::Config config, const std::vector<std::string>& application,
                         const Environment& devices) {
  const fs::path library = require_companion(companions().libraries / "libkerncap-capture.so");
  const support::TemporaryFolder folder("kerncap-run");
  config.status_folder = folder.path() / "status";
  fs::create_directory(config.status_folder);
  fs::permissions(config.status_folder, fs::perms::owner_all);
  const fs::path config_file = folder.path() / "config.json";
  support::write_file_atomically(config_file, support::dump_json(capture::to_json(config)));

  support::Command command;
  command.argv = application;
  command.environment = devices;
  if (program.json) command.standard_output = support::Stream::standard_error;
  command.environment["HSA_TOOLS_LIB"] = library.string();
  // Runtimes with rocprofiler-register ignore HSA_TOOLS_LIB unless they are told to honour it.
  command.environment["HSA_TOOLS_ROCPROFILER_V1_TOOLS"] = "1";
  command.environment[capture::config_variable] = config_file.string();

  CapturedRun result;
  {
    const StatusWatcher watcher(config.status_folder);
    result.application = support::run(command);
  }
  result.statuses = capture::read_statuses(config.status_folder);
  return result;
}

void CaptureOptions::add_flags(CLI::App& command, const std::string& output_help) {
  command
      .add_option(
          "-k,--kernel", kernel,
          "Kernel: a glob over the demangled name ('*' wild; without it the whole name or the base name), re:REGEX, or "
          "sym:SYMBOL")
      ->required()
      ->type_name("PATTERN");
  command
      .add_option("-d,--dispatch", dispatches,
                  "Which dispatches of the kernel, from 0: 3 | 1,4 | 10-19 | 0-:100 (every 100th)")
      ->type_name("LIST")
      ->capture_default_str();
  command.add_option("--code-object", code_object, "Only the kernel of the code object whose SHA-256 begins so")
      ->type_name("DIGEST");
  command.add_option("-o,--output", output, output_help)->required()->type_name("FOLDER");
  command.add_option("--process", process, "Only in processes whose program matches this glob")->type_name("GLOB");
  command.add_option("--max-bytes", max_bytes, "Refuse to capture more memory than this (e.g. 4GiB); 0: no limit")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE");
  command.add_flag("-f,--force", force, "Replace an existing output, once the new one is whole");
  devices.add_flag(command);
}

CaptureOutcome take_snapshot(const Program& program, const std::string& command, const CaptureOptions& options,
                             const fs::path& output, bool replace) {
  const std::vector<std::string>& application = program.required_application(command);
  static_cast<void>(codeobject::NamePattern(options.kernel));  // a malformed pattern fails before anything runs
  capture::Config config;
  config.pattern = options.kernel;
  config.code_object = options.code_object;
  config.dispatches = capture::DispatchList::parse(options.dispatches);
  fs::path wanted = fs::absolute(output).lexically_normal();
  if (!wanted.has_filename()) wanted = wanted.parent_path();
  if (!replace && fs::exists(fs::symlink_status(wanted))) {
    fail(ExitCode::usage, "'{}' exists already; choose another name or pass --force to replace it", wanted.string());
  }
  if (const fs::path parent = wanted.parent_path(); !fs::is_directory(parent) || ::access(parent.c_str(), W_OK) != 0) {
    fail(ExitCode::environment, "cannot write into '{}': {}", parent.string(),
         fs::is_directory(parent) ? "permission denied" : "it is not a folder");
  }
  // Beside the wanted name, and gone with everything in it when the run gave no snapshot: the library cannot clean up
  // after an application that was killed, nor can it know before the end that a second kernel matches.
  const support::AtomicFolder staging(wanted.parent_path() / (wanted.filename().string() + ".capture"), true);
  config.output = staging.path() / "snapshot.kcap";
  config.max_bytes = options.max_bytes;
  config.process = options.process;
  CapturedRun run =
      run_captured(program, config, application, device_environment(options.devices, program.settings, {"gfx90a"}));
  for (Status& status : run.statuses) {
    if (status.state != StatusState::captured) continue;
    if (status.ambiguous) refuse_ambiguity({status}, options);
    support::put_in_place(config.output, wanted, replace);
    return {wanted, std::move(status), run.application};
  }
  explain_missing_snapshot(run, options);
}

}  // namespace kerncap::cli
