// CMake's File API (cmake-file-api(7)): object kinds codemodel v2 and toolchains v1. What CMake means to run, not what
// it runs: the output, dependency and language options are not in it and are put together here the way CMake's
// generators do.
#include <utility>

#include "core/compdb/file_system.h"
#include "core/compdb/import.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/json.h"

namespace kerncap::compdb {
namespace {

namespace fs = std::filesystem;
using support::Json;

constexpr const char* reply_folder = ".cmake/api/v1/reply";

std::string text(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const Json& list(const Json& object, const char* key) {
  static const Json none = Json::array();
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : none;
}

// The newest index names the current reply files (they sort by time).
fs::path newest_index(const fs::path& reply) {
  fs::path newest;
  std::error_code error;
  for (fs::directory_iterator entry(reply, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("index-") && name > newest.filename().string()) newest = entry->path();
  }
  return newest;
}

class Reply {
 public:
  Reply(const fs::path& build_folder, ImportReport& report) : folder_(build_folder / reply_folder), report_(report) {}

  std::vector<ImportedCommand> commands() {
    const fs::path index_file = newest_index(folder_);
    if (index_file.empty()) return {};
    const Json index = support::read_json_file(index_file);
    Json codemodel;
    for (const Json& object : list(index, "objects")) {
      if (text(object, "kind") == "codemodel") codemodel = open(object);
      if (text(object, "kind") == "toolchains") read_toolchains(open(object));
    }
    if (!codemodel.is_object()) return {};
    const Json paths = codemodel.value("paths", Json::object());
    source_folder_ = text(paths, "source");
    build_folder_ = text(paths, "build");
    for (const Json& configuration : list(codemodel, "configurations")) {
      for (const Json& target : list(configuration, "targets")) read_target(open(target));
    }
    return std::move(commands_);
  }

 private:
  struct Folders {
    std::string source, build;
  };

  Json open(const Json& reference) const {
    const std::string name = text(reference, "jsonFile");
    if (name.empty() || !support::is_safe_relative_path(name)) return {};
    return support::read_json_file(folder_ / name);
  }

  void read_toolchains(const Json& toolchains) {
    for (const Json& toolchain : list(toolchains, "toolchains")) {
      const auto compiler = toolchain.is_object() ? toolchain.find("compiler") : toolchain.end();
      if (compiler != toolchain.end()) compilers_[text(toolchain, "language")] = text(*compiler, "path");
    }
  }

  void read_target(const Json& target) {
    const Json paths = target.is_object() ? target.value("paths", Json::object()) : Json::object();
    const Folders folders = {absolute_path(source_folder_, text(paths, "source")),
                             absolute_path(build_folder_, text(paths, "build"))};
    const Json& groups = list(target, "compileGroups");
    const Json& sources = list(target, "sources");
    for (const Json& group : groups) {
      for (const Json& index : list(group, "sourceIndexes")) {
        if (!index.is_number_unsigned() || index.get<std::size_t>() >= sources.size()) continue;
        add_command(text(target, "name"), folders, group, text(sources[index.get<std::size_t>()], "path"));
      }
    }
  }

  // SOURCE in CMakeFiles/TARGET.dir/SOURCE.o: relative to the target's source or build folder, whichever is shorter,
  // with ".." spelled "__"; a file outside of the project by its whole path
  // (cmLocalGenerator::GetObjectFileNameWithoutTarget).
  std::string object_name(const std::string& file, const Folders& folders) const {
    std::string name;
    for (const auto& [top, folder] :
         {std::pair{source_folder_, folders.source}, std::pair{build_folder_, folders.build}}) {
      if (!file.starts_with(top + "/")) continue;
      std::string relative = fs::path(file).lexically_relative(folder).string();
      if (name.empty() || relative.size() < name.size()) name = std::move(relative);
    }
    if (name.empty()) name = file.substr(1);
    for (std::size_t at = 0; (at = name.find("..", at)) != std::string::npos;) name.replace(at, 2, "__");
    return name;
  }

  void add_command(const std::string& target, const Folders& folders, const Json& group, const std::string& source) {
    const std::string language = text(group, "language");
    const std::string compiler = compilers_[language];
    if (compiler.empty() || source.empty()) {
      ++report_.skipped;
      if (report_.problems.size() < 20) report_.problems.push_back("CMake's reply names no compiler for " + source);
      return;
    }
    ImportedCommand command;
    command.origin = Origin::cmake_file_api;
    command.directory = build_folder_;
    command.file = absolute_path(source_folder_, source);
    command.argv.push_back(compiler);
    for (const Json& define : list(group, "defines")) command.argv.push_back("-D" + text(define, "define"));
    for (const Json& include : list(group, "includes")) {
      const bool system = include.is_object() && include.value("isSystem", false);
      if (system) command.argv.emplace_back("-isystem");
      command.argv.push_back((system ? "" : "-I") + text(include, "path"));
    }
    for (const Json& fragment : list(group, "compileCommandFragments")) {
      std::vector<std::string> words;
      if (split_shell_words(text(fragment, "fragment"), words))
        command.argv.insert(command.argv.end(), words.begin(), words.end());
    }
    const std::string relative = object_name(command.file, folders);
    command.output = absolute_path(folders.build, "CMakeFiles/" + target + ".dir/" + relative + ".o");
    command.argv.insert(command.argv.end(), {"-o", command.output});
    if (language == "HIP") command.argv.insert(command.argv.end(), {"-x", "hip"});
    command.argv.insert(command.argv.end(), {"-c", command.file});
    commands_.push_back(std::move(command));
  }

  fs::path folder_;
  ImportReport& report_;
  std::string source_folder_, build_folder_;
  std::map<std::string, std::string> compilers_;
  std::vector<ImportedCommand> commands_;
};

}  // namespace

std::vector<ImportedCommand> read_cmake_file_api(const fs::path& build_folder, ImportReport& report) {
  return Reply(build_folder, report).commands();
}

}  // namespace kerncap::compdb
