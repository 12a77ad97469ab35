#include "replay/options.h"

#include <fmt/format.h>
#include <getopt.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

using support::ExitCode;
using support::fail;

constexpr std::array mode_names{"replay", "validate", "bench", "watch", "serve"};

template <typename Number>
Number parse_value(const char* option, const char* text, Number least) {
  Number value{};
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc{} || end != view.data() + view.size() || !(value >= least)) {
    fail(ExitCode::usage, "--{} needs a number of at least {}, not '{}'", option, least, text);
  }
  return value;
}

enum Option : int {
  opt_snapshot = 1,
  opt_dispatch,
  opt_code_object,
  opt_captured,
  opt_mode,
  opt_iterations,
  opt_vs,
  opt_kernel_json,
  opt_tolerance,
  opt_timeout,
  opt_seconds,
  opt_threshold,
  opt_cold,
  opt_captured_inputs,
  opt_json,
  opt_verbose,
  opt_all,
  opt_worker,
  opt_await,
  opt_help,
  opt_version,
};

constexpr option long_options[] = {
    {"snapshot", required_argument, nullptr, opt_snapshot},
    {"dispatch", required_argument, nullptr, opt_dispatch},
    {"code-object", required_argument, nullptr, opt_code_object},
    {"captured", no_argument, nullptr, opt_captured},
    {"mode", required_argument, nullptr, opt_mode},
    {"iterations", required_argument, nullptr, opt_iterations},
    {"vs", required_argument, nullptr, opt_vs},
    {"kernel-json", required_argument, nullptr, opt_kernel_json},
    {"tolerance", required_argument, nullptr, opt_tolerance},
    {"timeout", required_argument, nullptr, opt_timeout},
    {"seconds", required_argument, nullptr, opt_seconds},
    {"threshold", required_argument, nullptr, opt_threshold},
    {"cold", no_argument, nullptr, opt_cold},
    {"captured-inputs-only", no_argument, nullptr, opt_captured_inputs},
    {"json", no_argument, nullptr, opt_json},
    {"verbose", no_argument, nullptr, opt_verbose},
    {"all", no_argument, nullptr, opt_all},
    {"worker-fd", required_argument, nullptr, opt_worker},
    {"await-candidates", no_argument, nullptr, opt_await},
    {"help", no_argument, nullptr, opt_help},
    {"version", no_argument, nullptr, opt_version},
    {nullptr, 0, nullptr, 0},
};

Mode parse_mode(const char* text) {
  for (std::size_t i = 0; i < mode_names.size(); ++i) {
    if (text == std::string_view(mode_names[i])) return static_cast<Mode>(i);
  }
  fail(ExitCode::usage, "the mode is replay, validate, bench, watch or serve, not '{}'", text);
}

}  // namespace

const char* to_string(Mode mode) { return mode_names[static_cast<std::size_t>(mode)]; }

const char* const usage_text =
    R"(usage: kerncap-replay [replay|validate|bench|watch|serve] [options] SNAPSHOT|PROJECT

  --mode MODE             the same as the first word (default validate)
  --snapshot DIR          the snapshot or project (also as the only argument)
  --dispatch N            which dispatch of the snapshot (default 0)
  --code-object FILE      run this code object's kernel in place of the captured one
  --captured              run the captured code object, also where the project has a rebuilt one
  --kernel-json FILE      parameter names and types (default: the project's kernel.json)
  --tolerance RULE        ulp=N, rel=X, abs=X, nan=equal|same-bits|forbidden; ARGUMENT:RULE for one argument,
                          ARGUMENT:type=TYPE, ARGUMENT:ignore; may be repeated
  --iterations N          runs (bench: at most so many samples)
  --timeout SECONDS       for one run of the kernel (default 60)
  --vs captured|FILE      bench: compare with this code object, interleaved
  --seconds N             bench: time allowed (default 20)
  --threshold X           bench: relative difference that counts as "same" (default 0.01)
  --cold                  bench: flush the caches before every run
  --captured-inputs-only  do not try a matching candidate on changed inputs
  --all                   list arguments without differences too
  --json                  print the verdict as JSON (kerncap.verdict/1)
  --verbose               show the ROCm runtime's own messages

exit codes: 0 matches or ran, 1 differs, faults or hangs, 2 wrong usage, 3 this machine cannot run it,
4 the snapshot, project or code object is corrupt or unsupported
)";

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  std::string name = "kerncap-replay";
  argv.push_back(name.data());
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int argc = static_cast<int>(argv.size()) - 1;
  optind = 0;  // glibc: start anew
  opterr = 0;
  for (int c = 0; (c = ::getopt_long(argc, argv.data(), ":h", long_options, nullptr)) != -1;) {
    switch (c) {
      case opt_snapshot:
        options.input = optarg;
        break;
      case opt_dispatch:
        options.dispatch = parse_value<std::uint64_t>("dispatch", optarg, 0);
        break;
      case opt_code_object:
        options.code_object = optarg;
        break;
      case opt_captured:
        options.captured = true;
        break;
      case opt_mode:
        options.mode = parse_mode(optarg);
        break;
      case opt_iterations:
        options.iterations = parse_value<std::uint64_t>("iterations", optarg, 1);
        break;
      case opt_vs:
        options.versus = optarg;
        break;
      case opt_kernel_json:
        options.kernel_json = optarg;
        break;
      case opt_tolerance:
        options.tolerances.emplace_back(optarg);
        break;
      case opt_timeout: {
        const double seconds = parse_value<double>("timeout", optarg, 0.001);
        if (seconds > 1e6) fail(ExitCode::usage, "--timeout {} is more than 1000000 seconds", optarg);
        options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
        break;
      }
      case opt_seconds:
        options.seconds = parse_value<double>("seconds", optarg, 0);
        break;
      case opt_threshold:
        options.threshold = parse_value<double>("threshold", optarg, 0);
        break;
      case opt_cold:
        options.cold = true;
        break;
      case opt_captured_inputs:
        options.changed_inputs = false;
        break;
      case opt_json:
        options.json = true;
        break;
      case opt_verbose:
        options.verbose = true;
        break;
      case opt_all:
        options.all_parts = true;
        break;
      case opt_worker:
        options.worker_fd = parse_value<int>("worker-fd", optarg, 0);
        break;
      case opt_await:
        options.await_candidates = true;
        break;
      case opt_version:
        options.version = true;
        break;
      case opt_help:
      case 'h':
        options.help = true;
        break;
      case ':':
        fail(ExitCode::usage, "option '{}' needs a value", argv[static_cast<std::size_t>(optind - 1)]);
      default:
        fail(ExitCode::usage, "unknown option '{}'; see --help", argv[static_cast<std::size_t>(optind - 1)]);
    }
  }
  if (options.help || options.version) return options;
  int next = optind;
  // The mode may come as a word: "kerncap-replay validate PROJECT".
  if (argc - next >= 2 && options.input.empty()) options.mode = parse_mode(argv[static_cast<std::size_t>(next++)]);
  for (int i = next; i < argc; ++i) {
    if (!options.input.empty())
      fail(ExitCode::usage, "one snapshot or project is wanted; '{}' is too many", argv[static_cast<std::size_t>(i)]);
    options.input = argv[static_cast<std::size_t>(i)];
  }
  if (options.input.empty()) fail(ExitCode::usage, "no snapshot or project is given; see --help");
  if (options.captured && options.code_object) fail(ExitCode::usage, "--captured and --code-object exclude each other");
  if (!options.versus.empty() && options.mode != Mode::bench) fail(ExitCode::usage, "--vs belongs to --mode bench");
  ValidateRules checked;
  for (const std::string& rule : options.tolerances) add_rule(checked, rule);
  return options;
}

std::vector<std::string> command_line(const Options& o, const std::string& program) {
  const Options defaults;
  std::vector<std::string> result{program, "--mode", to_string(o.mode), "--snapshot", o.input.string()};
  const auto add = [&](std::initializer_list<std::string> words) { result.insert(result.end(), words); };
  if (o.dispatch != defaults.dispatch) add({"--dispatch", std::to_string(o.dispatch)});
  if (o.code_object) add({"--code-object", o.code_object->string()});
  if (o.captured) add({"--captured"});
  if (!o.versus.empty()) add({"--vs", o.versus});
  if (o.kernel_json) add({"--kernel-json", o.kernel_json->string()});
  for (const std::string& rule : o.tolerances) add({"--tolerance", rule});
  if (o.iterations != 0) add({"--iterations", std::to_string(o.iterations)});
  if (o.timeout != defaults.timeout)
    add({"--timeout", fmt::format("{}", static_cast<double>(o.timeout.count()) / 1000)});
  if (o.seconds != defaults.seconds) add({"--seconds", fmt::format("{}", o.seconds)});
  if (o.threshold != defaults.threshold) add({"--threshold", fmt::format("{}", o.threshold)});
  if (o.cold) add({"--cold"});
  if (!o.changed_inputs) add({"--captured-inputs-only"});
  if (o.json) add({"--json"});
  if (o.verbose) add({"--verbose"});
  if (o.all_parts) add({"--all"});
  return result;
}

}  // namespace kerncap::replay
