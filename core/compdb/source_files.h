// The table of files that a translation unit read: each spelling once, with where it leads and what it was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/compdb/record.h"

namespace kerncap::compdb {

// Which folders' headers belong to the toolchain: from the driver's jobs (-internal-isystem, -resource-dir, ...).
class SystemFolders {
 public:
  // `argv`: a cc1 job, or a compiler's own command line.
  void add_from_arguments(const std::vector<std::string>& argv, const std::string& directory);
  void add_toolchain_folder(std::string folder);  // everything below is of the toolchain
  bool contains(std::string_view opened_path, std::string_view resolved) const;

 private:
  std::vector<std::string> toolchain_;    // added by the driver; as absolute spellings
  std::vector<std::string> user_;         // -isystem and -idirafter: of the toolchain only below /usr or /opt
  std::vector<std::string> application_;  // -I, -iquote: a longer match here wins
};

class SourceFileTable {
 public:
  SourceFileTable(std::string directory, const SystemFolders& system)
      : directory_(std::move(directory)), system_(system) {}

  // The index of the file in files(); looks at the disk the first time a spelling is seen. False for a file that is not
  // there.
  bool add(const std::string& spelling, std::uint32_t& index);
  // Reads the application's own files and fills in their hash.
  void hash_contents();

  std::vector<SourceFile> take() { return std::move(files_); }

 private:
  std::string directory_;
  const SystemFolders& system_;
  std::vector<SourceFile> files_;
  std::unordered_map<std::string, std::uint32_t> indices_;
  std::unordered_map<std::string, std::string> resolved_folders_;
};

}  // namespace kerncap::compdb
