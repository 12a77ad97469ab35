// The importers behind import_build(), one for each kind of knowledge that a build tree holds.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/compdb/operations.h"
#include "core/compdb/record.h"

namespace kerncap::compdb {

// One command as a build tool tells it.
struct ImportedCommand {
  std::string directory, file, output;  // output may be empty: then the command says it
  std::vector<std::string> argv;
  Origin origin = Origin::compile_commands;
  std::vector<std::string> dependencies;  // what the build tool knows of headers; may be empty
};

// A shell command line as build tools write it into JSON: words, quotes, backslashes. Nothing is expanded or executed;
// false when the text holds what only a shell can carry out (pipes, substitutions, several commands).
bool split_shell_words(std::string_view text, std::vector<std::string>& words);

// Text of a compile_commands.json, or what `ninja -t compdb` prints.
std::vector<ImportedCommand> read_compile_commands(std::string_view json, std::string_view what, Origin origin,
                                                   ImportReport& report);
// What `ninja -t deps` prints: the headers of each output.
std::map<std::string, std::vector<std::string>> read_ninja_deps(std::string_view text);
// The newest reply of CMake's File API below `build_folder`; empty when there is none.
std::vector<ImportedCommand> read_cmake_file_api(const std::filesystem::path& build_folder, ImportReport& report);

// Turns commands into records and appends them to the database.
void append_commands(const std::filesystem::path& folder, const std::vector<ImportedCommand>& commands,
                     ImportReport& report);

}  // namespace kerncap::compdb
