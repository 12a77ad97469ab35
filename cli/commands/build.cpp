// kerncap build: run any build with the wrapper in front of its compilers.
#include "cli/database_choice.h"
#include "cli/program.h"
#include "cli/table.h"
#include "core/compdb/operations.h"
#include "core/support/json.h"
#include "core/support/log.h"
#include "core/support/process.h"
#include "wrapper/masquerade.h"
#include "wrapper/unrecorded_tree.h"

namespace kerncap::cli {
namespace {

using support::dump_json;
using support::ExitCode;

// A tree that was configured without us, or is up to date, tells how its units are compiled: less than a recorded build
// does, but enough to find kernels and to ask the compiler for the rest.
std::uint64_t import_what_the_tree_knows(const wrapper::UnrecordedTree& tree, const std::filesystem::path& database) {
  if (tree.folder.empty()) return 0;
  try {
    return compdb::import_build(database, tree.folder).imported;
  } catch (const support::Error& error) {
    spdlog::debug("{}", error.what());
    return 0;
  }
}

ExitCode build(const Program& program, const std::string& database_flag) {
  wrapper::BuildOptions options;
  options.command = program.required_application("build");
  options.program_folder = support::executable_folder();
  options.database = database_to_record(program, database_flag, options.command);
  compdb::create_database(options.database);
  const std::uint64_t before = compdb::log_size(options.database);

  support::Command command;
  command.argv = options.command;
  command.environment = wrapper::build_environment(options);
  if (program.settings.sources == "archive") command.environment["KERNCAP_SOURCES"] = "archive";
  if (program.json) command.standard_output = support::Stream::standard_error;
  const support::ProcessResult result = support::run(command);

  const bool recorded = compdb::log_size(options.database) != before;
  // Now, while the objects are still those that were just built: later queries then find code objects even after a
  // rebuild.
  compdb::IndexReport index = compdb::refresh_index(options.database);
  wrapper::UnrecordedTree tree;
  std::uint64_t imported = 0;
  if (!recorded && result.succeeded()) {
    tree = wrapper::look_at_unrecorded_tree(options.command, options.database, options.program_folder);
    if (index.records == 0) imported = import_what_the_tree_knows(tree, options.database);
    if (imported != 0) index = compdb::refresh_index(options.database);
  }
  if (program.json) {
    print(dump_json(support::Json{{"database", options.database.string()},
                                  {"recorded", recorded},
                                  {"imported", imported},
                                  {"records", index.records},
                                  {"code_objects", index.code_objects},
                                  {"exit_status", result.exit_status}}));
  } else {
    spdlog::info("{}: {} records, {} code objects", options.database.string(), index.records, index.code_objects);
  }
  if (!result.succeeded()) return static_cast<ExitCode>(result.exit_status);  // the build tool has said why
  if (recorded) return ExitCode::done;
  const char* const why =
      tree.goes_past_us ? "its compilers do not go through kerncap-cc" : "everything was up to date";
  if (imported != 0) {
    spdlog::warn(
        "nothing was recorded, because {}; {} commands were taken from the build files of {} instead. To record the "
        "build itself: {}",
        why, imported, tree.folder.string(), tree.how_to_record);
  } else if (index.records == 0) {
    support::fail(ExitCode::answer_is_no, "nothing was recorded: either everything was up to date, or {}; {}",
                  "the build names its compilers by full path", tree.how_to_record);
  } else if (tree.goes_past_us) {
    spdlog::warn(
        "nothing was recorded, because {}; 'kerncap db import' takes what changed. To record the build itself: {}", why,
        tree.how_to_record);
  } else {
    spdlog::info("nothing new was compiled");
  }
  return ExitCode::done;
}

}  // namespace

void add_build(Program& program) {
  CLI::App& command = program.add("build", "Run a build and record how everything is compiled",
                                  "  kerncap build -- cmake -B build -G Ninja .\n  kerncap build -- cmake --build "
                                  "build\n  kerncap build -- make -j8\n"
                                  "  kerncap build --db /data/app.kerncap -- ./build.sh\n"
                                  "The exit code is the build's own (1 when it succeeded and nothing was ever "
                                  "recorded). The objects are bit for bit those\n"
                                  "of an unrecorded build.\n");
  auto database = std::make_shared<std::string>();
  command.add_option("--db", *database, "The database folder (default: .kerncap in the build folder)")
      ->type_name("FOLDER");
  program.run_with(command, [&program, database] { return build(program, *database); });
}

}  // namespace kerncap::cli
