// Reading side of the compilation database: opens the logs of a folder, builds or refreshes the index, answers queries.
//
// Thread-safety: const members may be called in parallel, although a question without an answer may refresh the index
// inside. Errors:
// support::Error (bad_input for a database that is not there or of a newer version; damaged records are skipped and
// counted).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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
  std::vector<std::string> kernels;  // the mangled names of its kernels, or of those that were asked for
  bool stale = false;                // the output on disk is no longer the one that was recorded
};

// A translation unit in short: some answers have thousands of them, and a whole record takes 100 KB of memory.
struct UnitSummary {
  struct CodeObject {
    std::string digest, target;
    std::vector<std::string> kernels;  // mangled names
  };
  std::string source, output;  // absolute
  std::string language;
  std::vector<std::string> device_targets;
  Origin origin = Origin::recorded;
  bool stale = false;  // as in Match
  std::vector<CodeObject> code_objects;
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

  // The newest good record of every output, one after the other; all at once are for small databases only.
  void visit(const std::function<void(Record&&)>& each) const;
  std::vector<Record> records() const;
  Statistics statistics() const;
  IndexReport index_report() const;
  // Outputs that weren't what had been recorded when the index was built are looked into once more.
  void look_again();

  // All matches are returned; more than one is an ambiguity that the caller reports, never resolves by chance.
  std::vector<Match> find_code_object(std::string_view digest) const;
  std::vector<Match> find_kernel(std::string_view symbol) const;  // mangled function name or ".kd" symbol
  // By any way to write a kernel's name (codeobject::name_spellings), or by a pattern (codeobject::NamePattern): a
  // pattern with a wildcard looks at every kernel of the database.
  std::vector<Match> find_kernels_named(std::string_view pattern) const;
  std::vector<Match> find_cuid(std::string_view hex) const;
  std::vector<Match> find_output(const std::filesystem::path& object) const;
  std::vector<Match> find_source(const std::filesystem::path& source) const;
  // Of the code objects in a file that need not have been recorded: a static or shared library, an executable, a raw
  // code object.
  std::vector<Match> find_contents(const std::filesystem::path& file) const;
  // Every unit that read the file, with the kernels that it reaches there.
  std::vector<UnitSummary> find_header(const std::filesystem::path& header) const;
  // Every unit of a target: of the build system (CMake, Meson), or a GPU architecture with or without features.
  std::vector<UnitSummary> find_target(std::string_view name) const;

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
