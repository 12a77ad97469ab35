#include "core/compdb/source_files.h"

#include <sys/stat.h>

#include <array>

#include "core/compdb/file_system.h"

namespace kerncap::compdb {
namespace {

constexpr std::uint64_t largest_hashed_source = 64U << 20;
constexpr std::uint32_t missing = UINT32_MAX;

enum class FolderKind { toolchain, user, application };
struct FolderOption {
  std::string_view name;
  FolderKind kind;
};
constexpr auto folder_options = std::to_array<FolderOption>({
    {"-internal-isystem", FolderKind::toolchain},
    {"-internal-externc-isystem", FolderKind::toolchain},
    {"-resource-dir", FolderKind::toolchain},
    {"-c-isystem", FolderKind::user},
    {"-cxx-isystem", FolderKind::user},
    {"-isystem", FolderKind::user},
    {"-idirafter", FolderKind::user},
    {"-iquote", FolderKind::application},
    {"-I", FolderKind::application},
});

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && (path[folder.size()] == '/' || folder == "/");
}

std::size_t longest_match(const std::vector<std::string>& folders, std::string_view path) {
  std::size_t best = 0;
  for (const std::string& folder : folders) {
    if (folder.size() > best && is_below(path, folder)) best = folder.size();
  }
  return best;
}

bool is_operating_system_path(std::string_view path) { return is_below(path, "/usr") || is_below(path, "/opt"); }

void add_unique(std::vector<std::string>& folders, std::string folder) {
  for (const std::string& known : folders) {
    if (known == folder) return;
  }
  folders.push_back(std::move(folder));
}

}  // namespace

void SystemFolders::add_from_arguments(const std::vector<std::string>& argv, const std::string& directory) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string_view argument = argv[i];
    for (const FolderOption& option : folder_options) {
      if (!argument.starts_with(option.name)) continue;
      std::string_view value = argument.substr(option.name.size());
      if (value.empty() && i + 1 < argv.size()) value = argv[++i];
      if (value.empty()) break;
      std::vector<std::string>& folders = option.kind == FolderKind::toolchain ? toolchain_
                                          : option.kind == FolderKind::user    ? user_
                                                                               : application_;
      add_unique(folders, absolute_path(directory, value));
      break;
    }
  }
}

void SystemFolders::add_toolchain_folder(std::string folder) { add_unique(toolchain_, std::move(folder)); }

bool SystemFolders::contains(std::string_view opened_path, std::string_view resolved) const {
  const std::size_t application = longest_match(application_, opened_path);
  if (longest_match(toolchain_, opened_path) > application) return true;
  const std::size_t user = longest_match(user_, opened_path);
  // A folder named by both -I and -isystem is a system one for the compiler as well.
  return user != 0 && user >= application && is_operating_system_path(resolved);
}

bool SourceFileTable::add(const std::string& spelling, std::uint32_t& index) {
  auto [position, fresh] = indices_.try_emplace(spelling, missing);
  if (!fresh) {
    index = position->second;
    return index != missing;
  }
  const std::string opened = absolute_path(directory_, spelling);
  // Hundreds of headers share a few dozen folders, which compilers like to spell with many "..": resolve each once.
  const std::string folder = folder_of(opened);
  auto [known, unknown] = resolved_folders_.try_emplace(folder);
  if (unknown) known->second = resolved_path(folder);
  SourceFile file;
  file.spelling = spelling;
  file.path = (known->second == "/" ? std::string() : known->second) + "/" + base_name(opened);
  struct stat status {};
  if (lstat(file.path.c_str(), &status) != 0) return false;
  if (S_ISLNK(status.st_mode)) {
    file.path = resolved_path(file.path);
    if (stat(file.path.c_str(), &status) != 0) return false;
  }
  if (!S_ISREG(status.st_mode)) return false;
  file.size = static_cast<std::uint64_t>(status.st_size);
  file.mtime = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000U +
               static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  file.system = system_.contains(opened, file.path);
  index = position->second = static_cast<std::uint32_t>(files_.size());
  files_.push_back(std::move(file));
  return true;
}

void SourceFileTable::hash_contents() {
  std::string content;
  for (SourceFile& file : files_) {
    if (!file.system && read_file(file.path, largest_hashed_source, content)) file.hash = hash_bytes(content);
  }
}

}  // namespace kerncap::compdb
