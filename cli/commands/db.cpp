// kerncap db: ask and maintain the compilation database.
#include <algorithm>

#include "cli/database_choice.h"
#include "cli/program.h"
#include "cli/table.h"
#include "core/codeobject/code_object.h"
#include "core/compdb/operations.h"
#include "core/support/json.h"
#include "core/support/process.h"
#include "core/support/progress.h"

namespace kerncap::cli {
namespace {

namespace fs = std::filesystem;
using compdb::Database;
using compdb::Match;
using compdb::Record;
using support::dump_json;
using support::ExitCode;
using support::Json;

const char* origin_name(compdb::Origin origin) {
  switch (origin) {
    case compdb::Origin::recorded:
      return "recorded";
    case compdb::Origin::compile_commands:
      return "compile_commands";
    case compdb::Origin::ninja:
      return "ninja";
    case compdb::Origin::cmake_file_api:
      return "cmake_file_api";
  }
  return "unknown";
}

const char* tool_name(compdb::Job::Tool tool) {
  switch (tool) {
    case compdb::Job::Tool::cc1:
      return "cc1";
    case compdb::Job::Tool::assembler:
      return "assembler";
    case compdb::Job::Tool::linker:
      return "linker";
    case compdb::Job::Tool::bundler:
      return "bundler";
    case compdb::Job::Tool::other:
      return "other";
  }
  return "other";
}

Json as_json(const Record& record) {
  Json jobs = Json::array(), passes = Json::array(), files = Json::array();
  for (const compdb::Job& job : record.jobs) {
    jobs.push_back({{"tool", tool_name(job.tool)}, {"target", job.target}, {"output", job.output}, {"argv", job.argv}});
  }
  for (const compdb::Pass& pass : record.passes) passes.push_back({{"target", pass.target}, {"files", pass.files}});
  for (const compdb::SourceFile& file : record.files) {
    files.push_back({{"spelling", file.spelling},
                     {"path", file.path},
                     {"size", file.size},
                     {"system", file.system},
                     {"digest", file.digest}});
  }
  Json environment = Json::object();
  for (const auto& [name, value] : record.environment) environment[name] = value;
  return {
      {"kind", record.kind == compdb::RecordKind::link ? "link" : "translation_unit"},
      {"origin", origin_name(record.origin)},
      {"host", record.host},
      {"started", record.started},
      {"wall_ns", record.wall},
      {"directory", record.directory},
      {"argv", record.argv},
      {"expanded_argv", record.expanded_argv},
      {"environment", environment},
      {"compiler",
       {{"path", record.compiler.path}, {"resolved", record.compiler.resolved}, {"family", record.compiler.family}}},
      {"language", record.language},
      {"source", record.source},
      {"output", record.output},
      {"inputs", record.inputs},
      {"device_targets", record.device_targets},
      {"rdc", record.rdc},
      {"exit_status", record.exit_status},
      {"replayable", record.replayable},
      {"not_replayable_reason", record.not_replayable_reason},
      {"jobs", jobs},
      {"files", files},
      {"passes", passes}};
}

std::string describe(const Match& match) {
  const Record& record = match.record;
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<12} {}\n", label, value);
  };
  line("output", record.output + (match.stale ? "  (rebuilt or removed since)" : ""));
  line("source", record.source);
  line("language", record.language);
  line("origin", origin_name(record.origin));
  line("directory", record.directory);
  line("command", support::shell_quoted(record.argv));
  line("compiler", record.compiler.resolved);
  line("targets", fmt::format("{}", fmt::join(record.device_targets, " ")));
  if (!match.digest.empty()) line("code object", fmt::format("{} ({})", match.digest, match.target));
  if (!record.jobs.empty()) line("jobs", fmt::format("{} (--json lists them)", record.jobs.size()));
  const auto own =
      std::count_if(record.files.begin(), record.files.end(), [](const auto& file) { return !file.system; });
  if (!record.files.empty())
    line("files", fmt::format("{} read, {} of them not of the system", record.files.size(), own));
  line("replayable", record.replayable ? "yes" : "no: " + record.not_replayable_reason);
  return text;
}

struct Options {
  std::string database, key, path, output = "compile_commands.json", kernel;
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
  Table table({{"language"}, {"targets"}, {"source"}, {"output"}});
  for (const Record& record : database.records()) {
    if (record.configure_check || (record.kind == compdb::RecordKind::link) != options.links) continue;
    entries.push_back({{"language", record.language},
                       {"targets", record.device_targets},
                       {"source", record.source},
                       {"output", record.output},
                       {"origin", origin_name(record.origin)}});
    table.add({record.language.empty() ? "-" : record.language,
               record.device_targets.empty() ? "-" : fmt::format("{}", fmt::join(record.device_targets, ",")),
               record.source.empty() ? "-" : record.source, record.output});
  }
  print(program.json ? dump_json(entries) : table.text());
  return ExitCode::done;
}

// A key may be any of the things that the database is indexed by; the first kind that knows it answers.
std::vector<Match> find(const Database& database, const std::string& key) {
  const bool hexadecimal = key.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (hexadecimal && key.size() == 64) {
    if (auto found = database.find_code_object(key); !found.empty()) return found;
  }
  if (hexadecimal) {
    if (auto found = database.find_cuid(key); !found.empty()) return found;
  }
  const fs::path path = fs::absolute(key).lexically_normal();
  if (auto found = database.find_output(path); !found.empty()) return found;
  if (auto found = database.find_source(path); !found.empty()) return found;
  if (auto found = database.find_header(path); !found.empty()) return found;
  return database.find_kernel(key);
}

ExitCode show(const Program& program, const Options& options) {
  const fs::path folder = required_database(program, options.database);
  const Database database(folder);
  const std::vector<Match> matches = find(database, options.key);
  if (matches.empty()) {
    support::fail(ExitCode::answer_is_no,
                  "'{}' is no code object digest, CUID, object, source, header or kernel symbol that '{}' knows",
                  options.key, folder.string());
  }
  Json entries = Json::array();
  for (std::size_t i = 0; i < matches.size(); ++i) {
    Json entry = as_json(matches[i].record);
    entry["code_object"] = matches[i].digest;
    entry["target"] = matches[i].target;
    entry["stale"] = matches[i].stale;
    entries.push_back(std::move(entry));
    if (!program.json) print((i > 0 ? "\n" : "") + describe(matches[i]));
  }
  if (program.json) print(dump_json(entries));
  return ExitCode::done;
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
                  "  kerncap db stats\n  kerncap db show src/kernel.hip\n  kerncap db show _Z6kernelPfi\n"
                  "  kerncap db import build        a build that ran without the wrapper\n"
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
  add("show", "The records of a code object digest, CUID, object, source, header or kernel symbol", show)
      .add_option("key", options->key, "What to look for")
      ->required();
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
