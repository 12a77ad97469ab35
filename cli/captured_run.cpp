#include "cli/captured_run.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "capture/ranges.h"
#include "cli/companions.h"
#include "cli/runtime_compiled.h"
#include "core/codeobject/code_object.h"
#include "core/support/file.h"
#include "core/support/json.h"
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

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Makes the application's HSA runtime load the library, on every way that there is (capture/entry.cpp).
void load_into(Environment& environment, const fs::path& library, const capture::Config& config) {
  environment["HSA_TOOLS_LIB"] = library.string();
  // Runtimes with rocprofiler-register ignore HSA_TOOLS_LIB unless they are told to honour it.
  environment["HSA_TOOLS_ROCPROFILER_V1_TOOLS"] = "1";
  // In the place of rocprofiler-sdk, which is needed for its own tools only: another tool of the user's goes first, and
  // then we come in by the line above.
  if (!is_set("ROCP_TOOL_LIBRARIES") && !is_set("ROCPROFILER_REGISTER_LIBRARY"))
    environment["ROCPROFILER_REGISTER_LIBRARY"] = library.string();
  if (config.range.empty()) return;
  // Before libroctx64's functions.
  environment[capture::range_variable] = config.range;
  const auto preload = environment.find("LD_PRELOAD");
  std::string others;
  if (preload != environment.end() && preload->second)
    others = *preload->second;
  else if (is_set("LD_PRELOAD"))
    others = std::getenv("LD_PRELOAD");
  const fs::path ranges = require_companion(companions().libraries / "libkerncap-ranges.so");
  environment["LD_PRELOAD"] = others.empty() ? ranges.string() : others + ":" + ranges.string();
}

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

std::string shape(const std::uint32_t (&extent)[3]) { return fmt::format("{}x{}x{}", extent[0], extent[1], extent[2]); }

// Why dispatches of the wanted kernel did not count; empty when all did.
std::string why_refused(const std::vector<Status>& statuses, const CaptureOptions& options) {
  Status::Refused all;
  for (const Status& status : statuses) {
    all.by_shape += status.refused.by_shape;
    all.by_range += status.refused.by_range;
    all.by_time += status.refused.by_time;
    all.shapes.insert(all.shapes.end(), status.refused.shapes.begin(), status.refused.shapes.end());
    all.ranges.insert(all.ranges.end(), status.refused.ranges.begin(), status.refused.ranges.end());
  }
  std::string text;
  if (all.by_shape > 0) {
    text += fmt::format("{} dispatches had another shape than --grid and --block ask for:", all.by_shape);
    for (std::size_t i = 0; i < all.shapes.size() && i < candidates_shown; ++i) {
      text += fmt::format("{} grid {} block {} ({})", i == 0 ? "" : ",", shape(all.shapes[i].grid),
                          shape(all.shapes[i].workgroup), all.shapes[i].dispatches);
    }
  }
  if (all.by_range > 0) {
    text += fmt::format("{}{} dispatches were in no open ROCTX range that matches '{}': ", text.empty() ? "" : "; ",
                        all.by_range, options.range);
    if (all.ranges.empty()) {
      text += "the application opened no ROCTX range at all (does it link libroctx64, and does it mark ranges?)";
    } else {
      text += "the application opened ";
      for (std::size_t i = 0; i < all.ranges.size() && i < candidates_shown; ++i) {
        text += fmt::format("{}'{}'", i == 0 ? "" : ", ", all.ranges[i]);
      }
    }
  }
  if (all.by_time > 0) {
    text += fmt::format("{}{} dispatches came outside of the time that --after and --before allow",
                        text.empty() ? "" : "; ", all.by_time);
  }
  return text;
}

// The slowest dispatch of the kernel in what `kerncap profile --json` wrote.
capture::DispatchList slowest_dispatch(const CaptureOptions& options) {
  if (options.profile.empty()) {
    fail(ExitCode::usage,
         "--dispatch slowest needs --profile FILE: write it with 'kerncap profile --json -- ... > FILE'");
  }
  if (!options.grid.empty() || !options.block.empty() || !options.range.empty() || options.after_ms != 0 ||
      options.before_ms != 0) {
    fail(
        ExitCode::usage,
        "--dispatch slowest names one dispatch of all; it cannot be combined with --grid, --block, --range, --after or "
        "--before");
  }
  const support::Json document = support::read_json_file(options.profile);
  const codeobject::NamePattern pattern(options.kernel);
  std::optional<std::pair<std::uint64_t, std::uint64_t>> slowest;  // nanoseconds, dispatch
  std::vector<std::string> symbols;
  for (const support::Json& kernel : support::array_member(document, "kernels", options.profile)) {
    const std::string symbol = support::string_member(kernel, "symbol", options.profile);
    std::string name = symbol;
    if (name.ends_with(".kd")) name.resize(name.size() - 3);
    const std::string demangled = support::string_member(kernel, "kernel", options.profile);
    if (!pattern.matches(name, demangled) && !pattern.matches(symbol, demangled)) continue;
    if (support::unsigned_member(kernel, "timed", options.profile) == 0) continue;
    symbols.push_back(symbol);
    slowest = {support::unsigned_member(kernel, "maximum_ns", options.profile),
               support::unsigned_member(kernel, "slowest_dispatch", options.profile)};
  }
  if (!slowest) {
    fail(ExitCode::answer_is_no, "'{}' holds no timed kernel that matches '{}'", options.profile, options.kernel);
  }
  if (symbols.size() > 1) {
    fail(ExitCode::answer_is_no, "'{}' matches {} kernels in '{}': name one of them whole, or by -k sym:<symbol>",
         options.kernel, symbols.size(), options.profile);
  }
  return capture::DispatchList({{slowest->second, slowest->second, 1}});
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
  if (const std::string refused = why_refused(run.statuses, options); !refused.empty()) {
    fail(ExitCode::answer_is_no, "the wanted dispatch ({}) of '{}' did not come: {}", options.dispatches,
         options.kernel, refused);
  }
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
  load_into(command.environment, library, config);
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
                  "Which dispatches of the kernel, from 0: 3 | 1,4 | 10-19 | 0-:100 (every 100th) | slowest (of "
                  "--profile). With --grid, --block, --range, --after or --before: of those that pass these")
      ->type_name("LIST")
      ->capture_default_str();
  command
      .add_option("--profile", profile, "What 'kerncap profile --json' wrote of an equal run: for --dispatch slowest")
      ->type_name("FILE");
  command
      .add_option("--grid", grid, "Only dispatches of this grid, in work-items as 'kerncap profile' shows it: 1024x1x1")
      ->type_name("SHAPE");
  command.add_option("--block", block, "Only dispatches of this workgroup: 256 | 16x16 | 64x*x* ('*' is any)")
      ->type_name("SHAPE");
  command.add_option("--range", range, "Only while a ROCTX range is open whose name matches this glob")
      ->type_name("GLOB");
  const std::map<std::string, double> units{{"ms", 1}, {"s", 1000}, {"m", 60000}};
  const auto duration = [&](const char* name, double& value, const char* help) {
    command.add_option(name, value, help)
        ->transform(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED))
        ->check(CLI::NonNegativeNumber)
        ->type_name("TIME");
  };
  duration("--after", after_ms, "Only from this long after the start of the HSA runtime on: 500ms | 2s | 1m");
  duration("--before", before_ms, "Only until this long after the start of the HSA runtime");
  command.add_option("--code-object", code_object, "Only the kernel of the code object whose SHA-256 begins so")
      ->type_name("DIGEST");
  command.add_option("-o,--output", output, output_help)->required()->type_name("FOLDER");
  command.add_option("--process", process, "Only in processes whose program matches this glob")->type_name("GLOB");
  command
      .add_option("--scope", scope,
                  "everything that the device can reach, or only what pointers lead to from the kernel's arguments "
                  "(reachable)")
      ->check(CLI::IsMember({"everything", "reachable"}))
      ->capture_default_str()
      ->type_name("SCOPE");
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
  config.dispatches =
      options.dispatches == "slowest" ? slowest_dispatch(options) : capture::DispatchList::parse(options.dispatches);
  if (!options.grid.empty()) config.grid = capture::ShapePattern::parse(options.grid);
  if (!options.block.empty()) config.block = capture::ShapePattern::parse(options.block);
  config.range = options.range;
  config.after_ms = static_cast<std::uint64_t>(options.after_ms);
  config.before_ms = static_cast<std::uint64_t>(options.before_ms);
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
  config.reachable_only = options.scope == "reachable";
  config.max_bytes = options.max_bytes;
  config.process = options.process;
  const RuntimeCompiled runtime_compiled;
  Environment environment = device_environment(options.devices, program.settings, {"gfx90a"});
  runtime_compiled.add_to(environment);
  CapturedRun run = run_captured(program, config, application, environment);
  for (Status& status : run.statuses) {
    if (status.state != StatusState::captured) continue;
    if (status.ambiguous) refuse_ambiguity({status}, options);
    runtime_compiled.keep(config.output);
    support::put_in_place(config.output, wanted, replace);
    return {wanted, std::move(status), run.application};
  }
  explain_missing_snapshot(run, options);
}

}  // namespace kerncap::cli
