#include "core/compdb/import.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/compdb/assemble.h"
#include "core/compdb/depfile.h"
#include "core/compdb/file_system.h"
#include "core/compdb/folder.h"
#include "core/compdb/log_writer.h"
#include "core/compdb/response_file.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/json.h"
#include "core/support/process.h"

namespace kerncap::compdb {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;
using support::Json;

constexpr std::size_t most_problems = 50;
constexpr auto launchers = std::to_array<std::string_view>({"ccache", "sccache", "distcc", "icecc", "kerncap-cc"});

void note(ImportReport& report, std::string problem) {
  ++report.skipped;
  if (report.problems.size() < most_problems) report.problems.push_back(std::move(problem));
}

void remove_launchers(std::vector<std::string>& argv) {
  while (argv.size() > 1 && std::ranges::find(launchers, base_name(argv[0])) != launchers.end())
    argv.erase(argv.begin());
}

bool make_records(const ImportedCommand& command, const std::string& database, std::vector<Record>& records) {
  FinishedCall call;
  Record& common = call.common;
  common.origin = command.origin;
  common.host = log_host_name();
  common.database = database;
  common.directory = command.directory;
  common.argv = command.argv;
  remove_launchers(common.argv);
  if (common.argv.empty()) return false;
  common.expanded_argv = expand_response_files(common.argv, common.directory);
  const auto program = support::find_program(common.argv[0]);
  common.compiler.path = program ? absolute_path(common.directory, program->string()) : common.argv[0];
  common.compiler.resolved = resolved_path(common.compiler.path);
  const FileIdentity identity = identify(common.compiler.resolved);
  common.compiler.size = identity.size;
  common.compiler.mtime = identity.mtime;
  common.compiler.family = compiler_family(common.argv[0]);
  if (common.compiler.family == "unknown") common.compiler.family = compiler_family(common.compiler.resolved);
  call.line = parse_arguments(common.expanded_argv, common.compiler.family);
  if (call.line.sources.empty() || call.line.action == Action::query || call.line.action == Action::preprocess)
    return false;
  if (!call.line.working_directory.empty())
    common.directory = absolute_path(common.directory, call.line.working_directory);
  if (!command.output.empty() && call.line.output.empty()) call.line.output = command.output;
  call.dependencies = command.dependencies;
  std::string text;
  if (call.dependencies.empty() && !call.line.dependency_file.empty() &&
      read_file(absolute_path(common.directory, call.line.dependency_file), std::uint64_t{64} << 20, text)) {
    call.dependencies = parse_depfile(text).files;
  }
  for (Record& record : assemble_records(call)) {
    if (record.kind != RecordKind::translation_unit) continue;
    // The only time that is known is the object's; a record of the wrapper wins whatever its time.
    record.started = record.output_mtime;
    records.push_back(std::move(record));
  }
  return true;
}

std::string run_ninja(const fs::path& build_folder, std::vector<std::string> tool) {
  support::Command command;
  command.argv = {"ninja", "-C", build_folder.string(), "-t"};
  command.argv.insert(command.argv.end(), tool.begin(), tool.end());
  command.standard_output = support::Stream::capture;
  command.standard_error = support::Stream::capture;
  const support::ProcessResult result = support::run(command);
  if (!result.succeeded()) {
    fail(ExitCode::bad_input, "'ninja -t {}' failed in {}: {}", tool.front(), build_folder.string(),
         result.standard_error);
  }
  // "ninja: Entering directory ..." stands before the tool's own output in some versions.
  std::string text = result.standard_output;
  if (text.starts_with("ninja: ")) text.erase(0, std::min(text.find('\n') + 1, text.size()));
  return text;
}

std::vector<ImportedCommand> read_ninja(const fs::path& build_folder, ImportReport& report) {
  std::vector<ImportedCommand> commands = read_compile_commands(
      run_ninja(build_folder, {"compdb", "-x"}), build_folder.string() + "/build.ninja", Origin::ninja, report);
  const auto dependencies = read_ninja_deps(run_ninja(build_folder, {"deps"}));
  for (ImportedCommand& command : commands) {
    const auto known = dependencies.find(command.output);
    if (known != dependencies.end()) command.dependencies = known->second;
  }
  return commands;
}

std::string optional_string(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

bool split_shell_words(std::string_view text, std::vector<std::string>& words) {
  constexpr std::string_view only_for_a_shell = "|&;<>()`$";
  words.clear();
  std::string word;
  bool in_word = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'') {
      const std::size_t end = text.find('\'', i + 1);
      if (end == std::string_view::npos) return false;
      word += text.substr(i + 1, end - i - 1);
      i = end;
      in_word = true;
    } else if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '`' || (text[i] == '$' && i + 1 < text.size() && text[i + 1] != '"')) return false;
        // Inside "...", a backslash is special before these only (POSIX shell, 2.2.3).
        if (text[i] == '\\' && i + 1 < text.size() &&
            std::string_view("\"\\$`\n").find(text[i + 1]) != std::string_view::npos)
          ++i;
        word.push_back(text[i]);
      }
      if (i >= text.size()) return false;
      in_word = true;
    } else if (c == '\\' && i + 1 < text.size()) {
      word.push_back(text[++i]);
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else if (only_for_a_shell.find(c) != std::string_view::npos) {
      return false;
    } else {
      word.push_back(c);
      in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return !words.empty();
}

std::vector<ImportedCommand> read_compile_commands(std::string_view json, std::string_view what, Origin origin,
                                                   ImportReport& report) {
  const Json document = support::parse_json(json, what);
  if (!document.is_array()) fail(ExitCode::bad_input, "{}: is not a list of compile commands", what);
  std::vector<ImportedCommand> commands;
  for (const Json& entry : document) {
    ImportedCommand command;
    command.origin = origin;
    if (entry.is_object()) {
      command.directory = optional_string(entry, "directory");
      command.file = optional_string(entry, "file");
      command.output = optional_string(entry, "output");
    }
    if (command.directory.empty()) {
      note(report, std::string(what) + ": an entry names no directory");
      continue;
    }
    const auto arguments = entry.find("arguments");
    if (arguments != entry.end() && arguments->is_array()) {
      for (const Json& argument : *arguments) {
        if (argument.is_string()) command.argv.push_back(argument.get<std::string>());
      }
    } else if (!split_shell_words(optional_string(entry, "command"), command.argv)) {
      // Ninja lists links and custom commands too; those are no loss.
      if (origin != Origin::ninja)
        note(report, std::string(what) + ": the command for " + command.file + " needs a shell");
      continue;
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

std::map<std::string, std::vector<std::string>> read_ninja_deps(std::string_view text) {
  // "out.o: #deps 2, deps mtime 1690000000000000000 (VALID)", then one path a line behind four blanks, then an empty
  // line.
  std::map<std::string, std::vector<std::string>> dependencies;
  std::vector<std::string>* current = nullptr;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("    ")) {
      if (current != nullptr) current->emplace_back(line.substr(4));
      continue;
    }
    current = nullptr;
    const std::size_t mark = line.rfind(": #deps ");
    if (mark != std::string_view::npos && line.ends_with("(VALID)"))
      current = &dependencies[std::string(line.substr(0, mark))];
  }
  return dependencies;
}

void append_commands(const fs::path& folder, const std::vector<ImportedCommand>& commands, ImportReport& report) {
  const std::string database = absolute_path(current_directory(), folder.string());
  for (const ImportedCommand& command : commands) {
    std::vector<Record> records;
    if (!make_records(command, database, records)) {
      if (command.origin != Origin::ninja) note(report, "the command for " + command.file + " compiles nothing");
      continue;
    }
    for (const Record& record : records) {
      if (const int error = append_record(database, record); error != 0) {
        fail(ExitCode::environment, "cannot write to the compilation database {}: {}", database, std::strerror(error));
      }
      ++report.imported;
    }
  }
}

ImportReport import_compile_commands(const fs::path& folder, const fs::path& file) {
  ImportReport report;
  append_commands(folder,
                  read_compile_commands(support::read_text_file(file), file.string(), Origin::compile_commands, report),
                  report);
  return report;
}

ImportReport import_build(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return import_compile_commands(folder, path);
  if (!fs::is_directory(path, error)) {
    fail(ExitCode::bad_input, "{} is neither a build folder nor a compile_commands.json", path.string());
  }
  ImportReport report;
  if (fs::exists(path / "build.ninja", error) && support::find_program("ninja")) {
    append_commands(folder, read_ninja(path, report), report);
  } else if (fs::exists(path / "compile_commands.json", error)) {
    return import_compile_commands(folder, path / "compile_commands.json");
  } else {
    const std::vector<ImportedCommand> commands = read_cmake_file_api(path, report);
    if (commands.empty()) {
      fail(ExitCode::bad_input,
           "{} holds no build.ninja, no compile_commands.json and no reply of CMake's File API: configure it with "
           "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON, or build it with 'kerncap build'",
           path.string());
    }
    append_commands(folder, commands, report);
  }
  return report;
}

}  // namespace kerncap::compdb
