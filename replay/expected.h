// Where a comparison takes the state before and the expected state after from: the snapshot, or the snapshot with
// changed inputs and what the captured kernel made of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "core/snapshot/reader.h"
#include "replay/perturbation.h"

namespace kerncap::replay {

// A trial on changed inputs. The captured kernel's process writes `outcome`, the candidate's reads it.
struct Trial {
  Perturbation perturbation;
  std::filesystem::path outcome;
};

class Expected {
 public:
  // Opens the files; lives only while no kernel runs.
  Expected(const std::filesystem::path& snapshot, std::size_t dispatch, const std::optional<Trial>& trial,
           bool with_outcome);

  const snapshot::Reader& reader() const { return reader_; }
  const snapshot::Dispatch& dispatch() const { return reader_.manifest().dispatches[dispatch_]; }
  // `offset` and the size cut on multiples of 8, except at the region's end.
  void before(std::size_t region, std::uint64_t offset, std::span<std::byte> out) const;
  void after(std::size_t region, std::uint64_t offset, std::span<std::byte> out) const;
  bool is_changed_after(std::size_t region, std::uint64_t chunk) const;
  bool is_zero_before(std::size_t region, std::uint64_t chunk) const;

 private:
  snapshot::Reader reader_;
  std::size_t dispatch_;
  const std::optional<Trial>& trial_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> outcome_;  // (region, chunk) -> offset in the file
  int outcome_fd_ = -1;

 public:
  ~Expected();
  Expected(const Expected&) = delete;
  Expected& operator=(const Expected&) = delete;
};

// One record of the outcome file: a chunk that the kernel left other than it was.
struct OutcomeRecord {
  std::uint64_t region = 0, chunk = 0, size = 0;  // followed by `size` bytes
};

}  // namespace kerncap::replay
