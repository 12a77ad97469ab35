// A record in short, read in place: what the index and answers with thousands of units need of it. Strings are not
// copied, jobs, passes and the environment are walked over, and nothing is allocated once the buffers have grown; about
// ten times as fast as decode_record(), and without its 100 KB a unit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/compdb/frame.h"
#include "core/compdb/record.h"

struct ZSTD_DCtx_s;

namespace kerncap::compdb {

struct Skipped {};
template <typename Item>
struct SkippedList {};
enum class Text : std::uint32_t {};  // number of a string in the record's table

// Named like the members of Record; see record_layout.h.
struct RecordView {
  struct File {
    Text spelling{}, path{}, digest{};
    Skipped size, mtime, hash, system;
  };
  struct SkippedVariable {
    Skipped first, second;
  };
  struct SkippedJob {
    Skipped tool, target, output;
    SkippedList<Skipped> argv;
  };
  struct SkippedPass {
    Skipped target;
    SkippedList<Skipped> files;
  };
  struct CompilerView {
    Skipped path, resolved, size, mtime, family;
  };

  RecordKind kind{};
  Origin origin{};
  Skipped host;
  Text database{};
  std::uint64_t started = 0, wall = 0;
  Text directory{};
  SkippedList<Skipped> argv;
  std::vector<Text> expanded_argv;
  SkippedList<SkippedVariable> environment;
  CompilerView compiler;
  Text language{}, source{}, output{};
  std::uint64_t output_size = 0, output_mtime = 0, output_hash = 0;
  SkippedList<Skipped> inputs;
  std::vector<Text> device_targets;
  bool linked = false;
  Skipped rdc, new_driver, compressed, lto;
  bool configure_check = false, cached = false;
  Skipped replayable;
  SkippedList<SkippedJob> jobs;
  std::vector<File> files;
  SkippedList<SkippedPass> passes;
  int exit_status = 0;
  Skipped not_replayable_reason;
};

// Keeps its buffers from record to record: use one a thread. What it gives out lives until the next read().
class RecordSkimmer {
 public:
  RecordSkimmer();
  ~RecordSkimmer();
  RecordSkimmer(const RecordSkimmer&) = delete;
  RecordSkimmer& operator=(const RecordSkimmer&) = delete;

  // False for frames of other types and versions and for damage. The frame's checksum has been checked by whoever found
  // it.
  bool read(const Frame& frame);

  const RecordView& record() const { return record_; }
  std::string_view text(Text text) const { return strings_[static_cast<std::size_t>(text)]; }
  const std::vector<std::string_view>& strings() const { return strings_; }

 private:
  struct Cursor;
  bool unpack(const Frame& frame, std::string_view& payload);

  ZSTD_DCtx_s* context_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::string_view> strings_;
  RecordView record_;
};

}  // namespace kerncap::compdb
