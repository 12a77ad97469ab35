// kerncap extract: capture + emit + rebuild check + validate, in one command.
#include "cli/captured_run.h"
#include "cli/database_choice.h"
#include "cli/emit_run.h"
#include "cli/program.h"
#include "cli/replay_run.h"
#include "cli/table.h"
#include "core/snapshot/reader.h"
#include "core/support/file.h"
#include "core/support/json.h"
#include "core/support/log.h"
#include "core/support/progress.h"

namespace kerncap::cli {
namespace {

namespace fs = std::filesystem;
using support::dump_json;
using support::ExitCode;
using support::Json;

struct Options {
  CaptureOptions capture;
  std::string database;
  bool no_validate = false, slice = false;
};

ExitCode extract(const Program& program, const Options& options) {
  // Refused before anything runs: the snapshot is only a step on the way.
  const fs::path project = fs::absolute(options.capture.output).lexically_normal();
  if (!options.capture.force && fs::exists(fs::symlink_status(project))) {
    support::fail(ExitCode::usage, "'{}' exists already; choose another name or pass --force to replace it",
                  project.string());
  }
  const fs::path parent = project.has_filename() ? project.parent_path() : project.parent_path().parent_path();
  if (!fs::is_directory(parent)) {
    support::fail(ExitCode::environment, "cannot write into '{}': it is not a folder", parent.string());
  }
  // Beside the project, so that moving it in is a rename; gone when anything fails.
  support::AtomicFolder workspace(parent / (project.filename().string() + ".extract"), true);
  const fs::path snapshot = workspace.path() / "snapshot.kcap";
  const CaptureOutcome captured = take_snapshot(program, "extract", options.capture, snapshot, false);

  emit::EmitOptions emit_options;
  emit_options.snapshot = captured.snapshot;
  emit_options.placement = emit::SnapshotPlacement::take;
  emit_options.output = project;
  emit_options.replace = options.capture.force;
  emit_options.slice = options.slice;
  {
    const snapshot::Reader reader(captured.snapshot);
    const snapshot::Dispatch& dispatch = reader.manifest().dispatches.front();
    emit_options.database = database_for(program, options.database, dispatch.code_object, program.application);
  }
  const emit::EmitReport report = run_emit(emit_options);
  if (!program.json) print(describe(report));

  std::optional<replay::Verdict> verdict;
  if (!options.no_validate) {
    const support::Progress progress("validating the original kernel", 0, "runs");
    replay::Options replay_options;
    replay_options.input = project;
    replay_options.captured = true;
    replay_options.timeout = std::chrono::seconds(program.settings.timeout_seconds);
    verdict = run_replay(program, replay_options, options.capture.devices);
  }

  if (program.json) {
    Json document = to_json(report);
    document["application_exit_status"] = captured.application.exit_status;
    document["held_ns"] = captured.status.held_ns;
    document["stored_bytes"] = captured.status.stored_bytes;
    document["notes"] = captured.status.notes;
    if (verdict) document["validation"] = to_json(*verdict);
    print(dump_json(document));
  } else {
    if (verdict) print(fmt::format("{:<14} {}\n", "validation", verdict->sentence));
    for (const std::string& note : captured.status.notes) print(fmt::format("{:<14} {}\n", "note", note));
    const std::string softgpu = options.capture.devices.softgpu.empty() ? "" : "--softgpu ";
    print(fmt::format(
        "\nNext:\n  cd {}\n  cmake --preset default && cmake --build build --target kernel\n  kerncap validate {}.\n",
        project.string(), softgpu));
  }
  if (!captured.application.succeeded()) {
    support::fail(ExitCode::application_failed, "the project is whole, but the application then ended with {}",
                  describe_end(captured.application));
  }
  if (verdict && replay::exit_code(verdict->outcome) != ExitCode::done) return replay::exit_code(verdict->outcome);
  return exit_code(report);
}

}  // namespace

void add_extract(Program& program) {
  CLI::App& command = program.add(
      "extract", "Take one kernel out of an application: capture, emit, rebuild check and validation in one command",
      "  kerncap extract -k my_kernel -o repro -- ./build/app --steps 10\n"
      "  kerncap extract -k my_kernel --dispatch 3 --softgpu -o repro -- ./build/app\n");
  auto options = std::make_shared<Options>();
  options->capture.add_flags(command, "The project's folder");
  command
      .add_option("--db", options->database,
                  "The compilation database (default: the nearest .kerncap, from here or from the application, that "
                  "knows the kernel)")
      ->type_name("FOLDER");
  command.add_flag("--slice", options->slice,
                   "Leave out what the kernel does not need, when that gives the same kernel and builds faster");
  command.add_flag("--no-validate", options->no_validate, "Do not replay and compare the original kernel at the end");
  program.run_with(command, [&program, options] { return extract(program, *options); });
}

}  // namespace kerncap::cli
