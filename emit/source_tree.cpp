#include "emit/source_tree.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "emit/device_jobs.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;
using compdb::Record;
using compdb::SourceFile;

constexpr std::uint64_t largest_source = std::uint64_t{1} << 30;

std::optional<std::string> read_if_there(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return std::nullopt;
  try {
    return support::read_text_file(path, largest_source);
  } catch (const support::Error&) {
    return std::nullopt;
  }
}

std::uint64_t modification_time(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return 0;
  return std::uint64_t(status.st_mtim.tv_sec) * 1000000000u + std::uint64_t(status.st_mtim.tv_nsec);
}

bool is_as_compiled(const SourceFile& file, const std::string& content) {
  if (content.size() != file.size) return false;
  if (file.hash != 0) return support::xxh3_64(support::bytes_of(content)) == file.hash;
  return file.mtime == 0 || modification_time(file.path) == file.mtime;
}

// The file as it was compiled: on disk when unchanged, else the archived copy.
std::optional<std::string> content_as_compiled(const SourceFile& file, const compdb::Database* blobs, bool& changed) {
  std::optional<std::string> content = read_if_there(file.path);
  if (content && is_as_compiled(file, *content)) return content;
  if (blobs != nullptr && !file.digest.empty()) {
    try {
      return blobs->blob(file.digest);
    } catch (const support::Error&) {
      // Not archived after all: what is on disk is the best there is.
    }
  }
  changed = content.has_value();
  return content;
}

std::vector<std::string> components(const std::string& folder) {
  std::vector<std::string> parts;
  for (const auto& part : fs::path(folder).lexically_normal().relative_path())
    if (!part.empty() && part != "." && part != "..") parts.push_back(part.string());
  return parts;
}

// What build systems trip over (semicolons, dollars, colons, backslashes, line ends) is replaced.
std::string plain_name(std::string path) {
  for (char& c : path) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80;
    if (!plain && std::string_view("/._-+=,@~ ").find(c) == std::string_view::npos) c = '_';
  }
  return path;
}

std::size_t common_length(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::size_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

std::string joined(const std::vector<std::string>& parts, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < parts.size(); ++i) text += (text.empty() ? "" : "/") + parts[i];
  return text;
}

// The tree mirrors the application's folders below the folder that its files share; files that lie elsewhere (a
// library's headers, another disk) keep their whole path below src/_external.
class Mirror {
 public:
  Mirror(const std::string& main_file, const std::vector<std::string>& originals) {
    const auto main_folder = components(fs::path(main_file).parent_path().string());
    const std::size_t required = std::min<std::size_t>(2, main_folder.size());
    std::size_t length = main_folder.size();
    for (const auto& original : originals) {
      const std::size_t shared = common_length(main_folder, components(fs::path(original).parent_path().string()));
      if (shared >= required) length = std::min(length, shared);
    }
    base_.assign(main_folder.begin(), main_folder.begin() + std::ptrdiff_t(length));
  }

  // The overlay maps names, so a project path need not be spelled like the original.
  std::string place(const std::string& original) {
    const auto parts = components(original);
    std::string path = common_length(base_, parts) == base_.size() ? "src/" + joined(parts, base_.size())
                                                                   : "src/_external/" + joined(parts, 0);
    path = plain_name(path);
    const std::string wanted = path;
    for (int i = 2; !taken_.insert(path).second; ++i) path = wanted + "." + std::to_string(i);
    return path;
  }

 private:
  std::set<std::string> taken_;
  std::vector<std::string> base_;
};

}  // namespace

std::string work_directory(const std::string& directory) {
  return plain_name(fs::path(directory).lexically_normal().string());
}

std::string overlay_name(const std::string& directory, const std::string& spelling) {
  if (spelling.starts_with('/')) return fs::path(spelling).lexically_normal().string();
  // The recorded working directory is rebuilt, folder by folder, below one of ours, so that ".." leads to the same
  // names.
  return std::string(work_placeholder) + (fs::path(work_directory(directory)) / spelling).lexically_normal().string();
}

SourceTree collect_sources(const std::vector<const Record*>& records, std::string_view target,
                           const compdb::Database* blobs) {
  struct Use {
    const SourceFile* file = nullptr;
    std::set<std::size_t> device_units;
  };
  std::map<std::string, Use> uses;  // by resolved path
  std::vector<std::string> originals;
  std::string main_file;
  const std::string processor(target.substr(0, target.find(':')));
  for (std::size_t unit = 0; unit < records.size(); ++unit) {
    const Record* record = records[unit];
    std::set<std::uint32_t> device_files;
    for (const auto& pass : record->passes) {
      if (pass.target == "host") continue;
      device_files.insert(pass.files.begin(), pass.files.end());
      if (main_file.empty() && pass.target.starts_with(processor) && !pass.files.empty() &&
          pass.files[0] < record->files.size())
        main_file = record->files[pass.files[0]].path;
    }
    for (std::uint32_t i = 0; i < record->files.size(); ++i) {
      const SourceFile& file = record->files[i];
      if (file.system || file.path.empty()) continue;
      auto& use = uses[file.path];
      if (use.file == nullptr) originals.push_back(file.path);
      // A spelling with a hash is the better witness.
      if (use.file == nullptr || (use.file->hash == 0 && file.hash != 0)) use.file = &file;
      if (device_files.contains(i)) use.device_units.insert(unit);
    }
  }

  SourceTree tree;
  if (originals.empty()) return tree;
  if (main_file.empty()) main_file = originals.front();
  Mirror mirror(main_file, originals);
  for (const auto& original : originals) {
    const Use& use = uses[original];
    TreeFile file;
    file.original = original;
    file.project_path = mirror.place(original);
    file.device_units = use.device_units;
    auto content = content_as_compiled(*use.file, blobs, file.changed);
    if (!content) {
      tree.missing.push_back(original);
      continue;
    }
    file.content = std::move(*content);
    tree.by_original.emplace(original, file.project_path);
    tree.files.push_back(std::move(file));
  }
  if (const auto found = tree.by_original.find(main_file); found != tree.by_original.end())
    tree.main_file = found->second;

  std::map<std::string, std::string> names;
  std::set<std::pair<std::string, std::string>> folders;
  for (const Record* record : records)
    for (const SourceFile& file : record->files) {
      const auto found = tree.by_original.find(file.path);
      if (file.system || found == tree.by_original.end()) continue;
      const std::string name = overlay_name(record->directory, file.spelling.empty() ? file.path : file.spelling);
      names.emplace(name, found->second);
      folders.emplace(fs::path(found->second).parent_path().string(), fs::path(name).parent_path().string());
    }
  for (auto& [name, project_path] : names) tree.overlay.push_back({name, project_path});
  tree.folders.assign(folders.begin(), folders.end());
  return tree;
}

}  // namespace kerncap::emit
