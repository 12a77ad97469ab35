// The few file questions that the wrapper asks, on plain system calls: no exceptions, no locale, nothing to start up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kerncap::compdb {

struct FileIdentity {
  bool exists = false;
  bool regular = false;
  std::uint64_t size = 0, mtime = 0;  // bytes; ns since the epoch
  std::uint64_t device = 0, inode = 0;
};
FileIdentity identify(const std::string& path);

// False when missing, unreadable, not a regular file or larger than `limit`.
bool read_file(const std::string& path, std::uint64_t limit, std::string& content);

// `path` itself when it is absolute, otherwise below `directory`; "." and empty components removed, ".." kept (it means
// something else behind a symbolic link).
std::string absolute_path(std::string_view directory, std::string_view path);

// After symbolic links; absolute_path() when it does not exist.
std::string resolved_path(const std::string& path);

std::string base_name(std::string_view path);
std::string folder_of(std::string_view path);  // "." for a plain name
std::string current_directory();

std::uint64_t hash_bytes(std::string_view bytes);  // XXH3-64

}  // namespace kerncap::compdb
