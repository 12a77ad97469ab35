// kerncap db: ask and maintain the compilation database.
#include "cli/database_choice.h"
#include "cli/database_show.h"
#include "cli/program.h"
#include "cli/table.h"
#include "core/compdb/operations.h"
#include "core/support/json.h"
#include "core/support/progress.h"

namespace kerncap::cli {
namespace {

namespace fs = std::filesystem;
using compdb::Database;
using compdb::Record;
using support::dump_json;
using support::ExitCode;
using support::Json;

struct Options {
  std::string database, key, kind, path, output = "compile_commands.json";
  bool per_pass = false, links = false;
};

ExitCode statistics(const Program& program, const Options& options) {
  const fs::path folder = required_database(program, options.database);
  const Database database(folder);
  const compdb::Statistics s = database.statistics();
  const compdb::IndexReport index = database.index_report();
  if (program.json) {
    print(dump_json(Json{{"database", folder.string()},
                         {"records", s.records},
                         {"translation_units", s.translation_units},
                         {"links", s.links},
                         {"failed", s.failed},
                         {"superseded", s.superseded},
                         {"torn", s.torn},
                         {"bytes", s.bytes},
                         {"code_objects", index.code_objects}}));
    return ExitCode::done;
  }
  print(
      fmt::format("database           {}\ntranslation units  {}\nlinks              {}\ncode objects       {}\nfailed "
                  "compiles    {}\n"
                  "superseded         {}\ntorn records       {}\nsize               {}\n",
                  folder.string(), s.translation_units, s.links, index.code_objects, s.failed, s.superseded, s.torn,
                  support::human_bytes(s.bytes)));
  return ExitCode::done;
}

ExitCode list(const Program& program, const Options& options) {
  const Database database(required_database(program, options.database));
  Json entries = Json::array();
  Table table({{"language"}, {"targets"}, {"source"}, {"output"}, {"origin"}});
  database.visit([&](Record&& record) {
    if (record.configure_check || (record.kind == compdb::RecordKind::link) != options.links) return;
    if (program.json) {
      entries.push_back({{"language", record.language},
                         {"targets", record.device_targets},
                         {"source", record.source},
                         {"output", record.output},
                         {"origin", origin_name(record.origin)}});
    } else {
      table.add({record.language.empty() ? "-" : record.language,
                 record.device_targets.empty() ? "-" : fmt::format("{}", fmt::join(record.device_targets, ",")),
                 record.source.empty() ? "-" : record.source, record.output, origin_name(record.origin)});
    }
  });
  print(program.json ? dump_json(entries) : table.text());
  return ExitCode::done;
}

ExitCode show(const Program& program, const Options& options) {
  return show_key(program, required_database(program, options.database), options.key, options.kind);
}

ExitCode import(const Program& program, const Options& options) {
  const fs::path folder = fs::absolute(!options.database.empty()            ? fs::path(options.database)
                                       : !program.settings.database.empty() ? program.settings.database
                                                                            : fs::path(options.path) / ".kerncap");
  compdb::create_database(folder);
  const compdb::ImportReport report = compdb::import_build(folder, options.path);
  compdb::refresh_index(folder);
  if (program.json) {
    print(dump_json(Json{{"database", folder.string()},
                         {"imported", report.imported},
                         {"skipped", report.skipped},
                         {"problems", report.problems}}));
  } else {
    print(fmt::format("imported {} translation units into {}, skipped {}\n", report.imported, folder.string(),
                      report.skipped));
    for (const std::string& problem : report.problems) print("problem: " + problem + "\n");
  }
  return report.imported > 0 ? ExitCode::done : ExitCode::answer_is_no;
}

ExitCode export_commands(const Program& program, const Options& options) {
  const fs::path folder = required_database(program, options.database);
  const std::uint64_t entries = compdb::export_compile_commands(folder, options.output, {options.per_pass, false});
  if (program.json) {
    print(dump_json(Json{{"file", options.output}, {"entries", entries}}));
  } else {
    print(fmt::format("{}: {} entries\n", options.output, entries));
  }
  return ExitCode::done;
}

ExitCode compact(const Program& program, const Options& options) {
  const compdb::CompactReport report = compdb::compact(required_database(program, options.database));
  if (program.json) {
    print(dump_json(Json{{"bytes_before", report.bytes_before},
                         {"bytes_after", report.bytes_after},
                         {"records_before", report.records_before},
                         {"records_after", report.records_after},
                         {"blobs_removed", report.blobs_removed}}));
  } else {
    print(fmt::format("{} -> {}; {} -> {} records; {} unused sources removed\n",
                      support::human_bytes(report.bytes_before), support::human_bytes(report.bytes_after),
                      report.records_before, report.records_after, report.blobs_removed));
  }
  return ExitCode::done;
}

ExitCode verify(const Program& program, const Options& options) {
  const fs::path folder = required_database(program, options.database);
  const compdb::VerifyReport report = compdb::verify(folder);
  if (program.json) {
    print(dump_json(Json{{"good", report.good()},
                         {"records", report.records},
                         {"blobs", report.blobs},
                         {"damage", report.damage},
                         {"remarks", report.remarks}}));
  } else {
    for (const std::string& damage : report.damage) print("damage: " + damage + "\n");
    for (const std::string& remark : report.remarks) print("remark: " + remark + "\n");
    print(fmt::format("{}: {} records, {} archived sources, {}\n", folder.string(), report.records, report.blobs,
                      report.good() ? "no damage" : "DAMAGED"));
  }
  return report.good() ? ExitCode::done : ExitCode::bad_input;
}

}  // namespace

void add_db(Program& program) {
  CLI::App& command =
      program.add("db", "Ask and maintain the compilation database",
                  "  kerncap db stats\n  kerncap db show src/kernel.hip\n  kerncap db show 'scale<float>'\n"
                  "  kerncap db show include/tile.h   which kernels does this header reach?\n"
                  "  kerncap db import build          a build that ran without the wrapper\n"
                  "  kerncap db export -o compile_commands.json\n");
  auto options = std::make_shared<Options>();
  command.require_subcommand(1);
  command.add_option("--db", options->database, "The database folder (default: the nearest .kerncap upward)")
      ->type_name("FOLDER");
  using Action = ExitCode (*)(const Program&, const Options&);
  const auto add = [&](const std::string& name, const std::string& summary, Action action) -> CLI::App& {
    CLI::App& nested = *command.add_subcommand(name, summary);
    nested.fallthrough();
    program.run_with(nested, [&program, options, action] { return action(program, *options); });
    return nested;
  };
  add("stats", "Numbers of the database", statistics);
  add("list", "All translation units", list).add_flag("--links", options->links, "The links instead");
  CLI::App& showing = add("show", "What is known of a code object, kernel, object, source, header or target", show);
  showing
      .add_option(
          "key", options->key,
          "A digest, CUID, kernel symbol, name or pattern, object, source, header, file with code objects, CMake "
          "or Meson target, or architecture")
      ->required();
  showing.add_option("--as", options->kind, "What the key is, where it could be several things")
      ->check(CLI::IsMember(key_kinds()));
  add("import", "Import a build that ran without the wrapper", import)
      .add_option("path", options->path, "A build folder (Ninja, CMake File API) or a compile_commands.json")
      ->required()
      ->check(CLI::ExistingPath);
  CLI::App& exporting = add("export", "Write a compile_commands.json for clangd and clang-tidy", export_commands);
  exporting.add_option("-o,--output", options->output, "The file")->capture_default_str();
  exporting.add_flag("--per-pass", options->per_pass, "One entry for each compiler pass");
  add("compact", "Drop superseded records and unused sources", compact);
  add("verify", "Look for damage", verify);
}

}  // namespace kerncap::cli
