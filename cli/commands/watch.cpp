// kerncap watch, serve: thin fronts of kerncap-replay, which takes this process's place.
#include "cli/program.h"
#include "cli/replay_run.h"

namespace kerncap::cli {
namespace {

void finish(Program& program, CLI::App& command, const std::shared_ptr<ReplayFlags>& flags) {
  program.run_with(command, [&program, flags]() -> support::ExitCode {
    replay::Options options = flags->resolved(program);
    options.json = program.json;
    become_replay(program, options, flags->devices);
  });
}

void add_session_flags(CLI::App& command, ReplayFlags& flags) {
  flags.add_session_flags(command);
  command
      .add_option("-t,--tolerance", flags.options.tolerances,
                  "A rule of comparison, as validate takes it; may be repeated")
      ->type_name("RULE");
  command.add_flag("--captured-inputs-only", flags.captured_inputs_only,
                   "Do not try a matching kernel on changed inputs and in other circumstances");
}

}  // namespace

void add_watch(Program& program) {
  CLI::App& command =
      program.add("watch", "Rebuild and validate a project's kernel on every save",
                  "  kerncap watch repro\n  kerncap watch repro -t rel=1e-5\n"
                  "Ends with Ctrl-C; exit code 0 when the last answer was yes, 1 when it was no or did not compile.\n");
  auto flags = std::make_shared<ReplayFlags>();
  flags->options.mode = replay::Mode::watch;
  add_session_flags(command, *flags);
  finish(program, command, flags);
}

void add_serve(Program& program) {
  CLI::App& command =
      program.add("serve", "Answer requests of a program that writes kernels, one JSON object a line",
                  "  echo '{\"id\": 1, \"method\": \"validate\", \"file\": \"new.hip\"}' | kerncap serve repro\n"
                  "Methods: hello, compile, validate, bench, shutdown; docs/protocol.md explains them.\n");
  auto flags = std::make_shared<ReplayFlags>();
  flags->options.mode = replay::Mode::serve;
  add_session_flags(command, *flags);
  finish(program, command, flags);
}

}  // namespace kerncap::cli
