// The index: everything a query needs to find its records without reading the logs. A cache, published by rename and
// rebuilt from the logs whenever it is missing, damaged or behind; it is never the only place where something is known,
// except for the code objects of outputs that have been rebuilt since (IndexedUnit::contents_final).
//
// Mapped, not read: a query touches a few pages. What a query finds is checked against the record itself, so damage
// inside the file, or what is left in it of a superseded unit, can lose an answer but not give a wrong one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/compdb/database.h"
#include "core/support/file.h"

namespace kerncap::compdb {

inline constexpr std::uint32_t no_code_object = UINT32_MAX;

struct TextReference {
  std::uint32_t offset = 0, size = 0;  // in the texts
};

struct IndexedLog {
  TextReference name;             // relative to the database folder
  std::uint64_t seen = 0;         // bytes it had
  std::uint64_t consumed = 0;     // bytes up to the end of the last whole record
  std::uint64_t torn_tail = 0;    // damaged places after it, which may be a record that is being written
  std::uint64_t inode = 0;        // a log that was replaced is another log
  std::uint64_t fingerprint = 0;  // of the bytes around both ends of what is indexed
};

struct RecordLocation {
  std::uint64_t offset = 0;
  std::uint32_t log = 0, size = 0;  // number of the log; size of the frame, 0: nowhere
};

struct IndexedUnit {
  RecordLocation record;         // nowhere: a superseded unit, kept so that the others keep their numbers
  RecordLocation driver_record;  // where a compiler cache answered: the record that has the jobs
  std::uint64_t key = 0, finished = 0;
  std::uint64_t looked_size = 0, looked_mtime = 0;  // state of the output when its contents were looked at
  std::uint64_t argv_hash = 0;
  std::uint32_t kind = 0, exit_status = 0;
  std::uint8_t imported = 0, cached = 0, linked = 0;
  std::uint8_t contents_final = 0;    // looked at while it was what had been recorded
  std::uint8_t contents_pending = 0;  // worth another look
  std::uint8_t padding[3] = {};
  bool dead() const { return record.size == 0; }
};

struct IndexedKey {  // sorted
  std::uint64_t hash = 0;
  std::uint32_t unit = 0, code_object = no_code_object;
  auto operator<=>(const IndexedKey&) const = default;
};

struct IndexedHeader {                          // sorted by hash
  std::uint64_t hash = 0, first = 0, size = 0;  // its units, as deltas in variable-length integers, in the postings
  std::uint32_t last = 0, padding = 0;          // the last of its units: where the next delta starts
};

struct IndexedDigest {
  std::uint8_t digest[32] = {};
  TextReference target;
  std::uint32_t first_kernel = 0, kernels = 0;  // in the list of kernel names
};

// What a key is made of; equal texts of different kinds have different hashes.
enum class KeyKind : char {
  output = 'o',
  source = 's',
  digest = 'd',
  kernel = 'k',
  name = 'n',  // a way to write a kernel's name, codeobject::name_spellings()
  cuid = 'c',
  header = 'h',
  target = 't',  // of the build system, or an architecture
};
std::uint64_t key_hash(KeyKind kind, std::string_view text);

struct IndexContent {
  std::vector<IndexedLog> logs;
  std::vector<IndexedUnit> units;
  std::vector<IndexedKey> keys;
  std::vector<IndexedHeader> headers;
  std::string postings;
  std::vector<IndexedDigest> code_objects;
  std::vector<TextReference> kernels;  // mangled names, one after the other for each code object
  std::vector<TextReference> roots;    // database folders as recorded: where a moved tree used to be
  std::string texts;
  Statistics statistics;
  std::uint64_t pending = 0;                            // units whose output is worth another look
  std::uint64_t live_units = 0, live_code_objects = 0;  // without superseded ones

  TextReference add_text(std::string_view text);
  TextReference add_name(std::string_view text);  // the same text again is the same reference

 private:
  std::unordered_map<std::uint64_t, TextReference> names_;
};

class IndexFile {
 public:
  // Nullopt when there is none, or one that this version does not read.
  static std::optional<IndexFile> open(const std::filesystem::path& path);
  // Quietly does nothing when the folder cannot be written: the index is a cache.
  static void publish(const std::filesystem::path& path, const IndexContent& content);
  static std::string serialise(const IndexContent& content);
  static std::optional<IndexFile> from_bytes(std::string bytes);

  std::span<const IndexedLog> logs() const { return logs_; }
  std::span<const IndexedUnit> units() const { return units_; }
  std::span<const IndexedHeader> headers() const { return headers_; }
  std::span<const IndexedKey> keys() const { return keys_; }
  std::span<const IndexedDigest> code_objects() const { return code_objects_; }
  std::span<const TextReference> kernels() const { return kernels_; }
  std::span<const TextReference> roots() const { return roots_; }
  std::string_view postings() const { return postings_; }
  std::string_view texts() const { return texts_; }
  const Statistics& statistics() const { return statistics_; }
  std::uint64_t pending() const { return pending_; }
  std::uint64_t live_units() const { return live_units_; }
  std::uint64_t live_code_objects() const { return live_code_objects_; }

  std::span<const IndexedKey> find(std::uint64_t hash) const;
  std::vector<std::uint32_t> units_of_header(std::uint64_t hash) const;
  std::string_view text(TextReference reference) const;
  std::vector<std::string_view> kernels_of(const IndexedDigest& code_object) const;

 private:
  bool read(std::string_view bytes);

  std::shared_ptr<const support::MappedFile> mapping_;
  std::shared_ptr<const std::string> bytes_;
  std::span<const IndexedLog> logs_;
  std::span<const IndexedUnit> units_;
  std::span<const IndexedKey> keys_;
  std::span<const IndexedHeader> headers_;
  std::span<const IndexedDigest> code_objects_;
  std::span<const TextReference> kernels_, roots_;
  std::string_view postings_, texts_;
  Statistics statistics_;
  std::uint64_t pending_ = 0, live_units_ = 0, live_code_objects_ = 0;
};

}  // namespace kerncap::compdb
