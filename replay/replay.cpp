#include "replay/replay.h"

#include "core/support/error.h"
#include "core/support/process.h"

namespace kerncap::replay {

Verdict run_replay(Options options, const std::filesystem::path& program,
                   const std::map<std::string, std::optional<std::string>>& environment) {
  options.json = true;
  const std::filesystem::path path = program.empty() ? support::executable_folder() / "kerncap-replay" : program;
  support::Command command;
  command.argv = command_line(options, path.string());
  command.environment = environment;
  command.standard_output = support::Stream::capture;
  command.standard_error = options.verbose ? support::Stream::inherit : support::Stream::capture;
  const support::ProcessResult result = support::run(command);
  if (result.standard_output.empty()) {
    std::string said = result.standard_error;
    constexpr std::string_view prefix = "kerncap-replay: error: ";
    if (said.starts_with(prefix)) said.erase(0, prefix.size());
    while (said.ends_with('\n')) said.pop_back();
    const bool usage = result.exit_status == static_cast<int>(support::ExitCode::usage);
    support::fail(usage ? support::ExitCode::usage : support::ExitCode::environment, "{}",
                  said.empty()
                      ? fmt::format("'{}' ended with status {} and no verdict", path.string(), result.exit_status)
                      : said);
  }
  return verdict_from_json(support::parse_json(result.standard_output, "the replayer's verdict"));
}

}  // namespace kerncap::replay
