// Files and folders that are either whole or absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kerncap::support {

// Whole-file reads. Throw Error{bad_input} when missing/unreadable or larger than `limit` bytes.
std::string read_text_file(const std::filesystem::path& path, std::uint64_t limit = std::uint64_t{1} << 32);

// A file that appears under its name only by commit(): written beside it, synced, renamed. The destructor throws the
// temporary file away and never commits, because a destructor cannot tell success from unwinding.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path, unsigned mode = 0600);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> data);  // throws Error{environment} on any failure (disk full, ...)
  void write(std::string_view text);
  void commit();
  const std::filesystem::path& temporary_path() const { return temporary_; }

 private:
  std::filesystem::path path_, temporary_;
  int fd_ = -1;
};

// Shorthand: AtomicFile + write + commit.
void write_file_atomically(const std::filesystem::path& path, std::string_view text, unsigned mode = 0600);

// A folder (0700) that appears under its name only by commit(): `.NAME.<pid>-<random>.tmp` beside it, renamed when
// whole. With `replace`, an existing folder is exchanged for the new one (renameat2 RENAME_EXCHANGE) and removed only
// afterwards; without it, commit() fails when the name is taken. The destructor removes what was not committed.
class AtomicFolder {
 public:
  AtomicFolder(std::filesystem::path final_path, bool replace);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::filesystem::path& path() const { return temporary_; }  // where to write meanwhile
  void commit();

 private:
  std::filesystem::path final_, temporary_;
  bool replace_ = false, committed_ = false;
};

// Gives the finished file or folder `from` the name `to` (same file system). With `replace`, what had the name is
// exchanged for it and removed only afterwards; without it, Error{usage} when the name is taken.
void put_in_place(const std::filesystem::path& from, const std::filesystem::path& to, bool replace);

// A read-only mapping of a whole file; empty files map to an empty span. Throws Error{bad_input} when unreadable.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// A private (0700) temporary folder, removed with all its content by the destructor.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string_view prefix = "kerncap");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Is `relative` a plain relative path that stays inside its folder ("a/b", not "/a", "../a", "a/../../b", "")?
// Every file name that comes out of a snapshot or project goes through this.
bool is_safe_relative_path(std::string_view relative);

// write(2)/read(2) until done; throw Error{environment} naming `what`.
void write_all(int fd, std::span<const std::byte> data, std::string_view what);

}  // namespace kerncap::support
