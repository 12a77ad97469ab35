#include "capture/reachable.h"

#include <algorithm>
#include <cstring>

namespace kerncap::capture {
namespace {

bool one_allocation(const snapshot::Region& a, const snapshot::Region& b) {
  using snapshot::RegionKind;
  return a.address + a.size == b.address && a.kind == b.kind &&
         (a.kind == RegionKind::vmem || a.kind == RegionKind::managed);
}

std::uint64_t load(const std::byte* from) {
  std::uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

Reach::Reach(const std::vector<snapshot::Region>& regions) {
  for (std::size_t r = 0; r < regions.size(); ++r) {
    if (r == 0 || !one_allocation(regions[r - 1], regions[r]))
      groups_.push_back({regions[r].address, regions[r].address, r, 0, false});
    groups_.back().end = regions[r].address + regions[r].size;
    ++groups_.back().count;
    group_of_.push_back(groups_.size() - 1);
  }
  if (groups_.empty()) return;
  low_ = groups_.front().begin;
  span_ = groups_.back().end - low_;
}

void Reach::add(std::size_t region) {
  Group& group = groups_[group_of_[region]];
  if (std::exchange(group.reached, true)) return;
  for (std::size_t r = group.first; r < group.first + group.count; ++r) queue_.push_back(r);
}

void Reach::word(std::uint64_t value) {
  if (value - low_ >= span_) return;  // also below low_: wraps around
  auto group = std::upper_bound(groups_.begin(), groups_.end(), value,
                                [](std::uint64_t address, const Group& g) { return address < g.begin; });
  --group;  // value >= low_, so there is one
  if (value < group->end && !group->reached) add(group->first);
}

void Reach::scan(std::uint64_t address, std::span<const std::byte> bytes) {
  std::uint64_t offset = (8 - address % 8) % 8;
  if (offset != 0 && cut_size_ + offset == 8 && cut_address_ + cut_size_ == address && bytes.size() >= offset) {
    std::memcpy(cut_.data() + cut_size_, bytes.data(), offset);
    word(load(cut_.data()));
  }
  for (; offset + 8 <= bytes.size(); offset += 8) word(load(bytes.data() + offset));
  cut_size_ = offset < bytes.size() ? bytes.size() - offset : 0;
  cut_address_ = address + offset;
  if (cut_size_ != 0) std::memcpy(cut_.data(), bytes.data() + offset, cut_size_);
}

void Reach::scan_arguments(std::span<const std::byte> kernarg) {
  for (std::size_t offset = 0; offset + 8 <= kernarg.size(); offset += 4) word(load(kernarg.data() + offset));
}

std::optional<std::size_t> Reach::next() {
  if (queue_.empty()) return std::nullopt;
  const std::size_t region = queue_.front();
  queue_.pop_front();
  return region;
}

}  // namespace kerncap::capture
