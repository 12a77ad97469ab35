// Reading side of the compilation database: opens the logs of a folder, builds or refreshes the index, answers queries.
//
// Thread-safety: a Database is immutable after construction; const members may be called in parallel. Errors:
// support::Error (bad_input for a database that is not there or of a newer version; damaged records are skipped and
// counted).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/compdb/record.h"

namespace kerncap::compdb {

struct Match {
  // An imported record, or one where a compiler cache answered the only compile that was seen, has no jobs:
  // recover_jobs() in operations.h asks the compiler for them.
  Record record;
  std::string target;  // the code object's target inside the record's output, when the query was about one
  std::string digest;  // its SHA-256
  bool stale = false;  // the output on disk is no longer the one that was recorded
};

struct Statistics {
  std::uint64_t records = 0, translation_units = 0, links = 0, failed = 0, superseded = 0, torn = 0, bytes = 0;
};

struct IndexReport {
  std::uint64_t records = 0, objects_read = 0, code_objects = 0;  // records kept; files looked into now; digests known
};

class Database {
 public:
  explicit Database(std::filesystem::path folder);
  ~Database();
  Database(Database&&) noexcept;

  // The newest good record of every output.
  std::vector<Record> records() const;
  Statistics statistics() const;
  IndexReport index_report() const;
  // Outputs that weren't what had been recorded when the index was built are looked into once more.
  void look_again();

  // All matches are returned; more than one is an ambiguity that the caller reports, never resolves by chance.
  std::vector<Match> find_code_object(std::string_view digest) const;
  std::vector<Match> find_kernel(std::string_view symbol) const;  // mangled function name or ".kd" symbol
  std::vector<Match> find_output(const std::filesystem::path& object) const;
  std::vector<Match> find_source(const std::filesystem::path& source) const;
  std::vector<Match> find_header(const std::filesystem::path& header) const;
  std::vector<Match> find_cuid(std::string_view hex) const;

  // The content of an archived source file; throws Error{bad_input} when it is missing or damaged.
  std::string blob(std::string_view digest) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The database that belongs to `start`: KERNCAP_DB if set, otherwise the nearest `.kerncap` folder in `start` or above
// it. Returns an empty path when there is none.
std::filesystem::path find_database(const std::filesystem::path& start);

}  // namespace kerncap::compdb
