// kerncap emit: from a snapshot to a standalone project.
#include "cli/database_choice.h"
#include "cli/emit_run.h"
#include "cli/program.h"
#include "core/snapshot/reader.h"

namespace kerncap::cli {

void add_emit(Program& program) {
  CLI::App& command =
      program.add("emit", "Make a standalone CMake project from a snapshot and the compilation database",
                  "  kerncap emit step.kcap -o repro\n  kerncap emit step.kcap --db build/.kerncap -o repro --force\n");
  struct Options {
    std::string snapshot, database, output, object;
    std::size_t dispatch = 0;
    bool force = false, link = false, no_check = false, all_targets = false, slice = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("snapshot", options->snapshot, "The snapshot folder")->required();
  command.add_option("-o,--output", options->output, "The project's folder")->required()->type_name("FOLDER");
  command
      .add_option("--db", options->database,
                  "The compilation database (default: the nearest .kerncap that knows the kernel)")
      ->type_name("FOLDER");
  command.add_option("--position", options->dispatch, "Which of the snapshot's dispatches, from 0")->type_name("N");
  command.add_option("--object", options->object, "Choose the object file, when several sources gave the same code")
      ->type_name("FILE");
  command.add_flag("--all-targets", options->all_targets,
                   "Rebuild for every recorded architecture, not only the captured one");
  command.add_flag("--slice", options->slice,
                   "Leave out what the kernel does not need, when that gives the same kernel and builds faster");
  command.add_flag("--link", options->link, "Link to the snapshot instead of copying it");
  command.add_flag("--no-rebuild-check", options->no_check, "Do not prove that the kernel rebuilds byte for byte");
  command.add_flag("-f,--force", options->force, "Replace an existing project, once the new one is whole");
  program.run_with(command, [&program, options] {
    emit::EmitOptions emit_options;
    emit_options.snapshot = options->snapshot;
    emit_options.dispatch = options->dispatch;
    emit_options.output = options->output;
    emit_options.replace = options->force;
    emit_options.object = options->object;
    emit_options.placement = options->link ? emit::SnapshotPlacement::link : emit::SnapshotPlacement::copy;
    emit_options.rebuild_check = !options->no_check;
    emit_options.all_targets = options->all_targets;
    emit_options.slice = options->slice;
    const snapshot::Reader reader(options->snapshot);
    if (options->dispatch < reader.manifest().dispatches.size()) {  // otherwise emit says what is wrong
      const snapshot::Dispatch& dispatch = reader.manifest().dispatches[options->dispatch];
      emit_options.database = database_for(program, options->database, dispatch.code_object, dispatch.command_line);
    }
    const emit::EmitReport report = run_emit(emit_options);
    print_report(program, report);
    return exit_code(report);
  });
}

}  // namespace kerncap::cli
