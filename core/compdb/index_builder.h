// Bringing the index up to date with the logs and with the outputs on disk.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "core/compdb/index_file.h"

namespace kerncap::compdb {

// The logs of a database, mapped together, so that record locations mean something.
class MappedLogs {
 public:
  explicit MappedLogs(const std::filesystem::path& folder);  // throws Error when a log cannot be read
  std::size_t size() const { return files_.size(); }
  std::string name(std::size_t log) const { return names_[log]; }  // relative to the folder
  std::string_view bytes(std::size_t log) const;
  std::uint64_t inode(std::size_t log) const { return inodes_[log]; }
  // The record at a location; false when there is none (any more).
  bool read(const RecordLocation& location, Record& record) const;

 private:
  std::vector<std::string> names_;
  std::vector<support::MappedFile> files_;
  std::vector<std::uint64_t> inodes_;
};

// Is the index the one of exactly these logs?
bool is_current(const IndexFile& index, const MappedLogs& logs);

// `old` may be empty; what it knows is taken over where it still holds, so that only new records and changed outputs
// are read.
IndexContent build_index(const std::filesystem::path& folder, const MappedLogs& logs, const IndexFile* old,
                         IndexReport& report);

// Where an output recorded in a tree that has moved since is now; `output` itself when it is where it was.
std::string relocated(const std::string& output, const std::string& recorded_database, const std::string& database);

// Is the file what was recorded (by size and time, or by content)?
bool is_as_recorded(const Record& record, const std::string& output);

}  // namespace kerncap::compdb
