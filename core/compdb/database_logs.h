// The logs of a database, open together, so that record locations mean something. Records are read, not mapped: a query
// touches a few of them, and a mapping would count whole neighbourhoods of each as its memory.
//
// Thread-safety: const members may be called in parallel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/compdb/index_file.h"
#include "core/compdb/record.h"
#include "core/compdb/record_view.h"

namespace kerncap::compdb {

class DatabaseLogs {
 public:
  explicit DatabaseLogs(const std::filesystem::path& folder);  // throws Error when a log cannot be read
  ~DatabaseLogs();
  DatabaseLogs(const DatabaseLogs&) = delete;
  DatabaseLogs& operator=(const DatabaseLogs&) = delete;

  std::size_t size() const { return logs_.size(); }
  const std::string& name(std::size_t log) const { return logs_[log].name; }  // relative to the folder
  std::uint64_t length(std::size_t log) const { return logs_[log].length; }   // bytes, when it was opened
  std::uint64_t inode(std::size_t log) const { return logs_[log].inode; }
  // Of the bytes around both ends of the first `consumed`.
  std::uint64_t fingerprint(std::size_t log, std::uint64_t consumed) const;

  // The record at a location; false when there is none (any more).
  bool read(const RecordLocation& location, Record& record) const;
  // The same in short; the view lives in `skimmer` and `bytes`.
  bool skim(const RecordLocation& location, RecordSkimmer& skimmer, std::string& bytes) const;
  // The frame as it stands in the log, checked.
  bool read_frame(const RecordLocation& location, std::string& bytes, Frame& frame) const;

  // A log's content as it was when it was opened, mapped for a scan.
  class Mapping {
   public:
    Mapping(const DatabaseLogs& logs, std::size_t log);  // throws Error
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
    void forget_up_to(std::uint64_t offset);  // what lies before is no longer needed in memory

   private:
    void* data_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t forgotten_ = 0;
  };

 private:
  struct Log {
    std::string name;
    int fd = -1;
    std::uint64_t length = 0, inode = 0;
  };
  void close_all();
  bool read_bytes(std::size_t log, std::uint64_t offset, std::size_t size, std::string& bytes) const;

  std::vector<Log> logs_;
};

}  // namespace kerncap::compdb
