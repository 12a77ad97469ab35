#include "cli/database_choice.h"

#include <algorithm>
#include <array>

#include "core/compdb/database.h"
#include "core/support/process.h"

namespace kerncap::cli {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

fs::path named(const Program& program, const std::string& flag) {
  const fs::path folder = !flag.empty() ? fs::path(flag) : program.settings.database;
  if (folder.empty()) return {};
  if (!is_folder(folder)) {
    fail(ExitCode::environment,
         "there is no compilation database at '{}'; record one with: kerncap build --db {} -- <build command>",
         folder.string(), folder.string());
  }
  return fs::absolute(folder);
}

struct FolderFlag {
  std::string_view program, flag;
};
constexpr std::array<FolderFlag, 6> folder_flags{
    {{"cmake", "--build"}, {"cmake", "-B"}, {"ninja", "-C"}, {"make", "-C"}, {"gmake", "-C"}, {"meson", "-C"}}};

// `meson setup [options] BUILD [SOURCE]`: the first word that is neither an option nor the value of one.
fs::path meson_build_folder(const std::vector<std::string>& command) {
  const auto setup = std::ranges::find(command, "setup");
  for (auto word = setup; word != command.end() && ++word != command.end();) {
    const std::string& before = *(word - 1);
    if (!word->starts_with('-') && (!before.starts_with('-') || before.find('=') != std::string::npos)) return *word;
  }
  return {};
}

}  // namespace

fs::path required_database(const Program& program, const std::string& flag) {
  if (fs::path folder = named(program, flag); !folder.empty()) return folder;
  if (fs::path folder = compdb::find_database(fs::current_path()); !folder.empty()) return folder;
  fail(ExitCode::environment,
       "there is no compilation database here or above; record one with 'kerncap build -- <build command>', or name it "
       "with --db");
}

fs::path database_for(const Program& program, const std::string& flag, std::string_view code_object,
                      const std::vector<std::string>& application) {
  if (fs::path folder = named(program, flag); !folder.empty()) return folder;
  std::vector<fs::path> candidates{compdb::find_database(fs::current_path())};
  for (const std::string& word : application) {  // the program, or the script that an interpreter runs
    const auto path = support::find_program(word);
    if (path) candidates.push_back(compdb::find_database(fs::absolute(*path).parent_path()));
  }
  std::erase_if(candidates, [](const fs::path& path) { return path.empty(); });
  for (const fs::path& candidate : candidates) {
    if (!compdb::Database(candidate).find_code_object(code_object).empty()) return candidate;
  }
  return candidates.empty() ? fs::path() : candidates.front();
}

fs::path database_to_record(const Program& program, const std::string& flag, const std::vector<std::string>& command) {
  fs::path folder = !flag.empty() ? fs::path(flag) : program.settings.database;
  if (folder.empty()) {
    fs::path build_folder = fs::current_path();
    const std::string tool = fs::path(command.front()).filename().string();
    for (std::size_t i = 1; i < command.size(); ++i) {
      for (const auto& [name, option] : folder_flags) {
        if (tool != name || !command[i].starts_with(option)) continue;
        if (command[i].size() > option.size()) {  // -Cdir, --build=dir
          std::string_view rest = std::string_view(command[i]).substr(option.size());
          if (rest.starts_with('=')) rest.remove_prefix(1);
          if (!option.starts_with("--")) build_folder = fs::path(rest);
        } else if (i + 1 < command.size()) {
          build_folder = fs::path(command[i + 1]);
        }
      }
    }
    if (tool == "meson") {
      if (const fs::path named_folder = meson_build_folder(command); !named_folder.empty()) build_folder = named_folder;
    }
    folder = build_folder / ".kerncap";
  }
  folder = fs::absolute(folder).lexically_normal();
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (error)
    fail(ExitCode::environment, "cannot make the folder for the database '{}': {}", folder.string(), error.message());
  return folder;
}

}  // namespace kerncap::cli
