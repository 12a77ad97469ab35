// What the index is made of while it is built.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/compdb/database_logs.h"
#include "core/compdb/index_builder.h"
#include "core/compdb/object_contents.h"

namespace kerncap::compdb {

// Hashes get the numbers 0, 1, 2, ... in the order in which they appear: open addressing, because 300 headers of each
// unit go through it.
class NumberTable {
 public:
  std::uint32_t number_of(std::uint64_t hash, bool* fresh = nullptr) {
    if (2 * hashes_.size() >= slots_.size()) grow();
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at] != empty && hashes_[slots_[at]] != hash) at = (at + 1) & (slots_.size() - 1);
    if (fresh != nullptr) *fresh = slots_[at] == empty;
    if (slots_[at] == empty) {
      slots_[at] = static_cast<std::uint32_t>(hashes_.size());
      hashes_.push_back(hash);
    }
    return slots_[at];
  }
  const std::vector<std::uint64_t>& hashes() const { return hashes_; }

 private:
  static constexpr std::uint32_t empty = UINT32_MAX;

  void grow() {
    slots_.assign(std::max<std::size_t>(1024, 2 * slots_.size()), empty);
    for (std::uint32_t i = 0; i < hashes_.size(); ++i) {
      std::size_t at = hashes_[i] & (slots_.size() - 1);
      while (slots_[at] != empty) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = i;
    }
  }
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> slots_;
};

// A record's share of the index, and what is needed of it meanwhile.
struct IndexUnit {
  IndexedUnit entry;
  std::vector<std::uint64_t> keys;                                // outputs, sources, targets, numbers of units
  std::vector<std::uint32_t> headers;                             // numbers of key hashes
  std::vector<std::pair<std::uint64_t, std::uint32_t>> contents;  // key, code object
  bool old = false;           // in the old index: its keys and headers are still there and not here
  bool new_contents = false;  // what the old index says of its contents no longer holds
  bool wants_look = false;

  struct Output {
    std::string path, database;
    RecordedOutput recorded;
  };
  std::unique_ptr<Output> output;  // of new units that want a look
};

// `work(i, worker)` for every i below `count`; workers are numbered from 0.
inline unsigned workers() { return std::max(1U, std::thread::hardware_concurrency()); }
template <typename Work>
void in_parallel(std::size_t count, Work work) {
  const std::size_t threads = std::min<std::size_t>(workers(), (count + 15) / 16);
  std::atomic<std::size_t> next{0};
  const auto loop = [&](std::size_t worker) {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < count;) work(i, worker);
  };
  std::vector<std::jthread> pool;
  for (std::size_t worker = 1; worker < threads; ++worker) pool.emplace_back(loop, worker);
  loop(0);
}

// Looks into the outputs of the units that want it, and notes the code objects they hold.
void look_into_outputs(const std::string& folder, const DatabaseLogs& logs, const IndexFile* old,
                       std::vector<IndexUnit>& units, IndexContent& content, IndexReport& report);

}  // namespace kerncap::compdb
