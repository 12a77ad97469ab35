// What a kernel can get to when it follows pointers from its arguments: the allocations of `--scope reachable`.
//
// Conservative, as a garbage collector is: every word that, taken as an address, lies in an allocation reaches all of
// that allocation; nothing is known of types. An address that is only computed (an index from another allocation, a
// pointer kept as 32 bits, with tag bits or below its object) is not seen, and a replay may then touch memory that is
// not there.
//
// Pure bookkeeping: the owner reads memory and shows it to scan(). Thread-safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/snapshot/manifest.h"

namespace kerncap::capture {

class Reach {
 public:
  // Ascending and disjoint, as in Dispatch::regions. Mapped parts of virtual memory and pieces of managed memory that
  // touch are one allocation: arrays span them.
  explicit Reach(const std::vector<snapshot::Region>& regions);

  void add(std::size_t region);  // a root: reached without a pointer
  // Memory of a reached region; its pieces come in ascending order. Words at multiples of 8 are looked at.
  void scan(std::uint64_t address, std::span<const std::byte> bytes);
  void scan_arguments(std::span<const std::byte> kernarg);  // packed structures, too: words at multiples of 4

  std::optional<std::size_t> next();  // a reached region that has not been handed out yet
  bool idle() const { return queue_.empty(); }
  bool reached(std::size_t region) const { return groups_[group_of_[region]].reached; }

 private:
  struct Group {
    std::uint64_t begin = 0, end = 0;
    std::size_t first = 0, count = 0;  // regions
    bool reached = false;
  };
  void word(std::uint64_t value);

  std::vector<Group> groups_;  // ascending
  std::vector<std::size_t> group_of_;
  std::uint64_t low_ = 0, span_ = 0;
  std::deque<std::size_t> queue_;
  // The part of a word at the end of the last piece: regions need not begin at a multiple of 8.
  std::array<std::byte, 8> cut_{};
  std::uint64_t cut_address_ = 0;
  std::size_t cut_size_ = 0;
};

}  // namespace kerncap::capture
