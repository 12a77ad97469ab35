#include "capture/memory_map.h"

#include <algorithm>

namespace kerncap::capture {
namespace {

Allocation part(const Allocation& whole, std::uint64_t begin, std::uint64_t end) {
  Allocation piece = whole;
  piece.address = begin;
  piece.size = end - begin;
  if (piece.host_address != 0) piece.host_address += begin - whole.address;
  return piece;
}

}  // namespace

void MemoryMap::add(const Allocation& allocation) {
  if (allocation.size == 0) return;
  if (allocation.kind == snapshot::RegionKind::registered) {
    const std::uint64_t host = allocation.host_address != 0 ? allocation.host_address : allocation.address;
    const auto found = by_address_.find(allocation.address);
    const bool again = found != by_address_.end() && found->second.kind == snapshot::RegionKind::registered &&
                       found->second.size >= allocation.size;
    ++lock_counts_[host];
    if (again) return;
  }
  remove_range(allocation.address, allocation.size);
  by_address_.emplace(allocation.address, allocation);
}

bool MemoryMap::remove(std::uint64_t address) { return by_address_.erase(address) != 0; }

void MemoryMap::remove_range(std::uint64_t address, std::uint64_t size) {
  const std::uint64_t end = address + size;
  auto it = by_address_.lower_bound(address);
  if (it != by_address_.begin()) {
    const auto previous = std::prev(it);
    if (previous->second.address + previous->second.size > address) it = previous;
  }
  while (it != by_address_.end() && it->first < end) {
    const Allocation whole = it->second;
    it = by_address_.erase(it);
    const std::uint64_t whole_end = whole.address + whole.size;
    if (whole.address < address) by_address_.emplace(whole.address, part(whole, whole.address, address));
    if (whole_end > end) {
      by_address_.emplace(end, part(whole, end, whole_end));
      break;
    }
  }
}

bool MemoryMap::unlock(std::uint64_t host_address) {
  const auto count = lock_counts_.find(host_address);
  if (count == lock_counts_.end()) return false;
  if (--count->second != 0) return true;
  lock_counts_.erase(count);
  const auto found = std::find_if(by_address_.begin(), by_address_.end(), [&](const auto& entry) {
    const Allocation& a = entry.second;
    return a.kind == snapshot::RegionKind::registered &&
           (a.host_address != 0 ? a.host_address : a.address) == host_address;
  });
  if (found != by_address_.end()) by_address_.erase(found);
  return true;
}

const Allocation* MemoryMap::find(std::uint64_t address) const {
  auto it = by_address_.upper_bound(address);
  if (it == by_address_.begin()) return nullptr;
  --it;
  return address < it->second.address + it->second.size ? &it->second : nullptr;
}

std::vector<Allocation> MemoryMap::list() const {
  std::vector<Allocation> all;
  all.reserve(by_address_.size());
  for (const auto& [address, allocation] : by_address_) all.push_back(allocation);
  return all;
}

std::uint64_t MemoryMap::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [address, allocation] : by_address_) sum += allocation.size;
  return sum;
}

void MemoryMap::clear() {
  by_address_.clear();
  lock_counts_.clear();
}

std::vector<Allocation> without(const std::vector<Allocation>& allocations,
                                const std::vector<snapshot::Region>& holes) {
  std::vector<Allocation> rest;
  auto hole = holes.begin();
  for (const Allocation& a : allocations) {
    std::uint64_t begin = a.address;
    const std::uint64_t end = a.address + a.size;
    while (hole != holes.end() && hole->address + hole->size <= begin) ++hole;
    for (auto h = hole; h != holes.end() && h->address < end; ++h) {
      if (h->address > begin) rest.push_back(part(a, begin, h->address));
      begin = std::max(begin, h->address + h->size);
    }
    if (begin < end) rest.push_back(part(a, begin, end));
  }
  return rest;
}

}  // namespace kerncap::capture
