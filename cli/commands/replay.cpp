// kerncap replay, validate, bench: thin fronts of kerncap-replay.
#include "cli/program.h"
#include "cli/replay_run.h"

namespace kerncap::cli {
namespace {

void finish(Program& program, CLI::App& command, const std::shared_ptr<ReplayFlags>& flags) {
  program.run_with(command, [&program, flags] {
    replay::Options options = flags->resolved(program);
    options.all_parts = options.all_parts || !flags->html.empty();
    return print_verdict(program, run_replay(program, options, flags->devices), flags->html, flags->options.all_parts);
  });
}

void add_tolerances(CLI::App& command, ReplayFlags& flags) {
  command
      .add_option("-t,--tolerance", flags.options.tolerances,
                  "A rule of comparison: ulp=4 | abs=1e-6 | rel=1e-5 | nan=equal, for one argument as NAME:rel=1e-5, "
                  "NAME:ignore or "
                  "NAME:type=float; may be repeated (default: bit for bit, or the project's kerncap.toml)")
      ->type_name("RULE");
  command.add_flag("--all-arguments", flags.options.all_parts, "List arguments without differences too");
  command.add_flag("--captured-inputs-only", flags.captured_inputs_only,
                   "Do not try a matching kernel on changed inputs and in other circumstances");
}

}  // namespace

void add_replay(Program& program) {
  CLI::App& command = program.add("replay", "Restore the snapshot and run the kernel",
                                  "  kerncap replay repro\n  kerncap replay step.kcap --code-object new.hsaco -n 10\n");
  auto flags = std::make_shared<ReplayFlags>();
  flags->options.mode = replay::Mode::replay;
  flags->add_flags(command);
  command.add_option("-n,--iterations", flags->options.iterations, "How often (default 1)")->type_name("N");
  finish(program, command, flags);
}

void add_validate(Program& program) {
  CLI::App& command = program.add("validate", "Run the kernel and compare memory with the application's own result",
                                  "  kerncap validate repro\n  kerncap validate repro -t rel=1e-5 -t out:ulp=4\n  "
                                  "kerncap validate step.kcap --code-object new.hsaco --json\n"
                                  "Exit code 0: equal within the tolerances; 1: different, a fault or a hang.\n");
  auto flags = std::make_shared<ReplayFlags>();
  flags->options.mode = replay::Mode::validate;
  flags->add_flags(command);
  command.add_option("-n,--iterations", flags->options.iterations, "Validate this many runs (default 1)")
      ->type_name("N");
  add_tolerances(command, *flags);
  finish(program, command, flags);
}

void add_bench(Program& program) {
  CLI::App& command =
      program.add("bench", "Time the kernel on the device, with every timed run's result checked",
                  "  kerncap bench repro\n  kerncap bench repro --vs captured          edited against original\n"
                  "  kerncap bench step.kcap --code-object a.hsaco --vs b.hsaco\n"
                  "With --vs the answer is faster, slower, same or cannot tell.\n");
  auto flags = std::make_shared<ReplayFlags>();
  flags->options.mode = replay::Mode::bench;
  flags->add_flags(command);
  command.add_option("--vs", flags->options.versus, "Compare with this: a code object, or 'captured'")
      ->type_name("FILE|captured");
  command.add_option("-n,--iterations", flags->options.iterations, "At most this many timed runs")->type_name("N");
  command.add_option("--seconds", flags->options.seconds, "At most this long")->capture_default_str()->type_name("S");
  command.add_option("--threshold", flags->options.threshold, "Relative differences up to this are \"same\"")
      ->capture_default_str()
      ->type_name("X");
  command.add_flag("--cold", flags->options.cold, "Flush the caches before every run");
  add_tolerances(command, *flags);
  finish(program, command, flags);
}

}  // namespace kerncap::cli
