#include "cli/replay_run.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/captured_run.h"
#include "cli/companions.h"
#include "cli/table.h"
#include "core/snapshot/reader.h"
#include "core/support/file.h"
#include "core/support/process.h"
#include "replay/report.h"

namespace kerncap::cli {
namespace {

using support::ExitCode;
using support::fail;

// The software GPU that a snapshot needs: every agent in the application's order.
std::vector<std::string> captured_architectures(const std::filesystem::path& input) {
  const snapshot::Reader reader(replay::resolve_input(input).snapshot);
  std::vector<std::string> names;
  for (const snapshot::Agent& agent : reader.manifest().agents) names.push_back(agent.name);
  return names;
}

}  // namespace

replay::Verdict run_replay(const Program& program, replay::Options options, const Devices& devices) {
  options.json = true;
  options.verbose = options.verbose || program.verbosity > 0;
  const std::filesystem::path replayer = require_companion(companions().programs / "kerncap-replay");
  support::Command command;
  command.argv = replay::command_line(options, replayer.string());
  command.environment = device_environment(devices, program.settings, captured_architectures(options.input));
  command.standard_output = support::Stream::capture;
  command.standard_error = program.verbosity > 0 ? support::Stream::inherit : support::Stream::capture;
  const support::ProcessResult result = support::run(command);
  if (result.standard_output.empty()) {
    std::string reason = result.standard_error;
    while (!reason.empty() && reason.back() == '\n') reason.pop_back();
    constexpr std::string_view prefix = "kerncap-replay: error: ";
    if (const std::size_t at = reason.rfind(prefix); at != std::string::npos)
      reason = reason.substr(at + prefix.size());
    const int code = result.exit_status;
    fail(code >= 1 && code <= 5 && result.signal == 0 ? static_cast<ExitCode>(code) : ExitCode::environment, "{}",
         reason.empty() ? fmt::format("the replayer ended with {} and said nothing", describe_end(result)) : reason);
  }
  replay::Verdict verdict =
      replay::verdict_from_json(support::parse_json(result.standard_output, "the replayer's verdict"));
  if (verdict.outcome == replay::Outcome::refused || verdict.outcome == replay::Outcome::bad_input) {
    throw support::Error(replay::exit_code(verdict.outcome), verdict.sentence);
  }
  return verdict;
}

void become_replay(const Program& program, replay::Options options, const Devices& devices) {
  options.verbose = options.verbose || program.verbosity > 0;
  const std::filesystem::path replayer = require_companion(companions().programs / "kerncap-replay");
  for (const auto& [name, value] :
       device_environment(devices, program.settings, captured_architectures(options.input))) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }
  std::vector<std::string> words = replay::command_line(options, replayer.string());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(replayer.c_str(), argv.data());
  fail(ExitCode::environment, "'{}' cannot be started: {}", replayer.string(), std::strerror(errno));
}

void ReplayFlags::add_session_flags(CLI::App& command) {
  command.add_option("input", input, "An emitted project, or a snapshot folder where there is nothing to compile")
      ->required()
      ->type_name("PROJECT|SNAPSHOT");
  command.add_option("--position", options.dispatch, "Which of the snapshot's dispatches, from 0")->type_name("N");
  command.add_option("--timeout", timeout_seconds, "Seconds after which a dispatch counts as hung (default 60)")
      ->type_name("SECONDS");
  devices.add_flag(command);
}

void ReplayFlags::add_flags(CLI::App& command) {
  command.add_option("input", input, "An emitted project or a snapshot folder")
      ->required()
      ->type_name("PROJECT|SNAPSHOT");
  command
      .add_option(
          "--code-object", code_object,
          "A candidate in place of the captured code object (default: the project's rebuilt one, when there is one)")
      ->type_name("FILE");
  command.add_flag("--captured", options.captured,
                   "Use the captured code object even where the project has a rebuilt one");
  command.add_option("--position", options.dispatch, "Which of the snapshot's dispatches, from 0")->type_name("N");
  command.add_option("--timeout", timeout_seconds, "Seconds after which a dispatch counts as hung (default 60)")
      ->type_name("SECONDS");
  command.add_option("--html", html, "Also write the verdict as a page to look at: one file that needs nothing else")
      ->type_name("FILE");
  devices.add_flag(command);
}

replay::Options ReplayFlags::resolved(const Program& program) const {
  replay::Options result = options;
  result.input = input;
  if (!code_object.empty()) result.code_object = code_object;
  if (captured_inputs_only) result.changed_inputs = false;
  result.timeout = std::chrono::seconds(timeout_seconds.value_or(program.settings.timeout_seconds));
  return result;
}

ExitCode print_verdict(const Program& program, replay::Verdict verdict, const std::string& html, bool all_parts) {
  if (!html.empty()) {
    const std::filesystem::path page = require_companion(companions().data / "templates/report.html.mustache");
    support::write_file_atomically(html, replay::html_report(verdict, page), 0644);
  }
  if (!all_parts) {
    std::erase_if(verdict.parts, [](const replay::Part& part) {
      return part.statistics.differing == 0 && part.statistics.outside == 0;
    });
  }
  std::string text = program.json ? support::dump_json(to_json(verdict)) : to_text(verdict);
  if (text.empty() || text.back() != '\n') text += '\n';
  print(text);
  return replay::exit_code(verdict.outcome);
}

}  // namespace kerncap::cli
