#include "cli/database_show.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "cli/table.h"
#include "core/codeobject/code_object.h"
#include "core/compdb/database.h"
#include "core/support/error.h"
#include "core/support/json.h"
#include "core/support/process.h"

namespace kerncap::cli {
namespace {

namespace fs = std::filesystem;
using compdb::Database;
using compdb::Match;
using compdb::Origin;
using compdb::Record;
using compdb::UnitSummary;
using support::dump_json;
using support::ExitCode;
using support::Json;

struct OriginText {
  Origin origin;
  const char* name;
  const char* explained;
};
constexpr auto origins = std::to_array<OriginText>({
    {Origin::recorded, "recorded", "written by kerncap-cc during the build: exact"},
    {Origin::compile_commands, "compile_commands",
     "imported: the command is what the build tool wrote; jobs come from the compiler's dry run"},
    {Origin::ninja, "ninja", "imported: command and headers are Ninja's own; jobs come from the compiler's dry run"},
    {Origin::cmake_file_api, "cmake_file_api",
     "imported: what CMake meant to run; output and dependency options are put together as CMake would"},
});

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

std::vector<std::string> demangled(const std::vector<std::string>& symbols) {
  std::vector<std::string> names;
  for (const std::string& symbol : symbols) names.push_back(codeobject::demangle(symbol));
  return names;
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

Json as_json(const Match& match) {
  Json entry = as_json(match.record);
  entry["code_object"] = match.digest;
  entry["target"] = match.target;
  entry["kernels"] = match.kernels;
  entry["stale"] = match.stale;
  return entry;
}

Json as_json(const UnitSummary& unit) {
  Json code_objects = Json::array();
  for (const UnitSummary::CodeObject& code_object : unit.code_objects) {
    code_objects.push_back({{"digest", code_object.digest},
                            {"target", code_object.target},
                            {"kernels", code_object.kernels},
                            {"demangled", demangled(code_object.kernels)}});
  }
  return {{"source", unit.source},
          {"output", unit.output},
          {"language", unit.language},
          {"device_targets", unit.device_targets},
          {"origin", origin_name(unit.origin)},
          {"stale", unit.stale},
          {"code_objects", code_objects}};
}

void describe(const Match& match, std::string& text) {
  const Record& record = match.record;
  const auto line = [&](std::string_view label, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<12} {}\n", label, value);
  };
  line("output", record.output + (match.stale ? "  (rebuilt or removed since)" : ""));
  line("source", record.source);
  line("language", record.language);
  line("origin", fmt::format("{} ({})", origin_name(record.origin), origin_explained(record.origin)));
  line("directory", record.directory);
  line("command", support::shell_quoted(record.argv));
  line("compiler", record.compiler.resolved);
  line("targets", fmt::format("{}", fmt::join(record.device_targets, " ")));
  if (!record.jobs.empty()) line("jobs", fmt::format("{} (--json lists them)", record.jobs.size()));
  const auto own =
      std::count_if(record.files.begin(), record.files.end(), [](const auto& file) { return !file.system; });
  if (!record.files.empty())
    line("files", fmt::format("{} read, {} of them not of the system", record.files.size(), own));
  line("replayable", record.replayable ? "yes" : "no: " + record.not_replayable_reason);
}

void describe_code_object(const Match& match, std::string& text) {
  if (match.digest.empty()) return;
  text += fmt::format("{:<12} {} ({})\n", "code object", match.digest, match.target);
  for (const std::string& kernel : demangled(match.kernels)) text += fmt::format("{:<12}   {}\n", "", kernel);
}

// A record with all the code objects of it that were found.
std::string describe(const std::vector<Match>& matches) {
  std::string text;
  std::vector<bool> done(matches.size(), false);
  for (std::size_t i = 0; i < matches.size(); ++i) {
    if (done[i]) continue;
    if (!text.empty()) text += "\n";
    describe(matches[i], text);
    for (std::size_t k = i; k < matches.size(); ++k) {
      const Record& one = matches[i].record;
      const Record& other = matches[k].record;
      if (one.output != other.output || one.source != other.source || one.kind != other.kind) continue;
      describe_code_object(matches[k], text);
      done[k] = true;
    }
  }
  return text;
}

std::string describe(const std::vector<UnitSummary>& units, const std::string& key) {
  Table table({{"kernel"}, {"targets"}, {"source"}, {"output"}, {"origin"}});
  std::set<std::string> all;
  for (const UnitSummary& unit : units) {
    std::map<std::string, std::vector<std::string>> targets_of;
    for (const UnitSummary::CodeObject& code_object : unit.code_objects) {
      for (const std::string& kernel : demangled(code_object.kernels)) targets_of[kernel].push_back(code_object.target);
    }
    const std::string output = unit.output + (unit.stale ? "  (rebuilt or removed since)" : "");
    if (targets_of.empty()) table.add({"-", "-", unit.source, output, origin_name(unit.origin)});
    for (auto& [kernel, targets] : targets_of) {
      std::ranges::sort(targets);
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      table.add({kernel, fmt::format("{}", fmt::join(targets, ",")), unit.source, output, origin_name(unit.origin)});
      all.insert(kernel);
    }
  }
  return table.text() +
         fmt::format("'{}' reaches {} translation units and {} kernels\n", key, units.size(), all.size());
}

// One kind of key: how it is looked up, and whether several answers leave open which one is meant.
struct Answer {
  std::vector<Match> matches;
  std::vector<UnitSummary> units;
  bool empty() const { return matches.empty() && units.empty(); }
};

struct KeyKind {
  const char* name;
  enum class Form { path, name, hexadecimal } form;
  bool one_is_meant;
  Answer (*find)(const Database&, const std::string& key, const fs::path& path);
};

using Form = KeyKind::Form;
using Key = const std::string&;
using Path = const fs::path&;

// In the order in which they are asked.
constexpr auto kinds = std::to_array<KeyKind>({
    {"digest", Form::hexadecimal, true,
     [](const Database& db, Key key, Path) -> Answer {
       return {db.find_code_object(key), {}};
     }},
    {"cuid", Form::hexadecimal, true,
     [](const Database& db, Key key, Path) -> Answer {
       return {db.find_cuid(key), {}};
     }},
    {"object", Form::path, false,
     [](const Database& db, Key, Path path) -> Answer {
       return {db.find_output(path), {}};
     }},
    {"source", Form::path, false,
     [](const Database& db, Key, Path path) -> Answer {
       return {db.find_source(path), {}};
     }},
    {"header", Form::path, false,
     [](const Database& db, Key, Path path) -> Answer {
       return {{}, db.find_header(path)};
     }},
    {"contents", Form::path, false,
     [](const Database& db, Key, Path path) -> Answer {
       return {db.find_contents(path), {}};
     }},
    {"target", Form::name, false,
     [](const Database& db, Key key, Path) -> Answer {
       return {{}, db.find_target(key)};
     }},
    {"kernel", Form::name, true,
     [](const Database& db, Key key, Path) -> Answer {
       Answer answer{db.find_kernel(key), {}};
       if (answer.empty()) answer.matches = db.find_kernels_named(key);
       return answer;
     }},
});

bool is_digest(const std::string& key) { return key.size() == 64; }

struct Found {
  const KeyKind* kind;
  Answer answer;
};

// Of each form of key the first kind that knows it answers: a source is also a "header" of its unit, and a digest no
// CUID. A path and a name are different things, though: both are told.
std::vector<Found> find(const Database& database, const std::string& key, const std::string& wanted) {
  const bool hexadecimal = key.find_first_not_of("0123456789abcdef") == std::string::npos;
  const fs::path path = fs::absolute(key).lexically_normal();
  std::vector<Found> all;
  bool path_is_known = false;
  for (const KeyKind& kind : kinds) {
    if (!wanted.empty() && wanted != kind.name) continue;
    if (wanted.empty()) {
      if (kind.form == Form::hexadecimal && !hexadecimal) continue;
      if (kind.form == Form::hexadecimal && is_digest(key) != (std::string_view(kind.name) == "digest")) continue;
      if (kind.form == Form::path && path_is_known) continue;
    }
    Answer answer = kind.find(database, key, path);
    if (answer.empty()) continue;
    path_is_known |= kind.form == Form::path;
    all.push_back({&kind, std::move(answer)});
  }
  return all;
}

std::set<std::string> outputs_of(const std::vector<Match>& matches) {
  std::set<std::string> outputs;
  for (const Match& match : matches) outputs.insert(match.record.output + " (" + match.record.source + ")");
  return outputs;
}

std::set<std::string> kernels_of(const std::vector<Match>& matches) {
  std::set<std::string> kernels;
  for (const Match& match : matches) kernels.insert(match.kernels.begin(), match.kernels.end());
  return kernels;
}

// Why the key does not say which record is meant; empty when it does.
std::string ambiguity(const std::vector<Found>& found, const std::string& key) {
  if (found.size() > 1) {
    std::vector<std::string> names;
    for (const Found& one : found) names.emplace_back(one.kind->name);
    return fmt::format("'{}' is several things ({}): choose with --as", key, fmt::join(names, ", "));
  }
  if (!found.front().kind->one_is_meant) return {};
  const std::vector<Match>& matches = found.front().answer.matches;
  const std::set<std::string> outputs = outputs_of(matches);
  const bool by_kernel = std::string_view(found.front().kind->name) == "kernel";
  const std::set<std::string> kernels = by_kernel ? kernels_of(matches) : std::set<std::string>();
  if (kernels.size() > 1) {
    return fmt::format("'{}' is the name of {} kernels: {}; choose one by its symbol", key, kernels.size(),
                       fmt::join(kernels, ", "));
  }
  if (outputs.size() > 1) {
    return fmt::format("'{}' is in {} outputs: {}; the digest of a code object, or its object, says which one is meant",
                       key, outputs.size(), fmt::join(outputs, ", "));
  }
  return {};
}

}  // namespace

const char* origin_name(Origin origin) {
  const auto* found = std::ranges::find(origins, origin, &OriginText::origin);
  return found == origins.end() ? "unknown" : found->name;
}

const char* origin_explained(Origin origin) {
  const auto* found = std::ranges::find(origins, origin, &OriginText::origin);
  return found == origins.end() ? "" : found->explained;
}

std::vector<std::string> key_kinds() {
  std::vector<std::string> names;
  for (const KeyKind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

ExitCode show_key(const Program& program, const fs::path& folder, const std::string& key, const std::string& kind) {
  const Database database(folder);
  const std::vector<Found> found = find(database, key, kind);
  if (found.empty()) {
    support::fail(ExitCode::answer_is_no,
                  "'{}' is no code object digest, CUID, object, source, header, target or kernel that '{}' knows", key,
                  folder.string());
  }
  Json entries = Json::array();
  std::string text;
  for (const Found& one : found) {
    for (const Match& match : one.answer.matches) entries.push_back(as_json(match));
    for (const UnitSummary& unit : one.answer.units) entries.push_back(as_json(unit));
    if (!text.empty()) text += "\n";
    if (found.size() > 1) text += fmt::format("As {}:\n", one.kind->name);
    text += describe(one.answer.matches);
    if (!one.answer.units.empty()) text += describe(one.answer.units, key);
  }
  print(program.json ? dump_json(entries) : text);
  if (const std::string why = ambiguity(found, key); !why.empty()) support::fail(ExitCode::answer_is_no, "{}", why);
  return ExitCode::done;
}

}  // namespace kerncap::cli
