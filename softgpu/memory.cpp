#include "softgpu/memory.h"

#include <algorithm>

namespace kerncap::softgpu {

AddressSpace::AddressSpace() = default;

AddressSpace::~AddressSpace() {
  for (auto& slot : root_) {
    Middle* middle = slot.load(std::memory_order_relaxed);
    if (middle == nullptr) continue;
    for (auto& table : *middle) delete table.load(std::memory_order_relaxed);
    delete middle;
  }
}

// Tables are never freed while the address space lives, because readers hold no lock.
void AddressSpace::map(std::uint64_t address, std::uint64_t size, std::byte* host, unsigned permissions) {
  const std::lock_guard lock(mutex_);
  std::uint64_t entry = reinterpret_cast<std::uint64_t>(host) | permissions;
  std::uint64_t page = address >> page_bits;
  const std::uint64_t end = (address + size) >> page_bits;
  while (page < end) {
    auto& middle_slot = root_[page >> (2 * level_bits)];
    Middle* middle = middle_slot.load(std::memory_order_relaxed);
    if (middle == nullptr) {
      middle = new Middle{};
      middle_slot.store(middle, std::memory_order_release);
    }
    auto& table_slot = (*middle)[(page >> level_bits) & (fan_out - 1)];
    Leaf* table = table_slot.load(std::memory_order_relaxed);
    if (table == nullptr) {
      table = new Leaf{};
      table_slot.store(table, std::memory_order_release);
    }
    const std::uint64_t stop = std::min(end, (page | (fan_out - 1)) + 1);
    for (; page < stop; ++page, entry += page_size) {
      (*table)[page & (fan_out - 1)].store(entry, std::memory_order_release);
    }
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

void AddressSpace::unmap(std::uint64_t address, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  std::uint64_t page = address >> page_bits;
  const std::uint64_t end = (address + size) >> page_bits;
  while (page < end) {
    const std::uint64_t stop = std::min(end, (page | (fan_out - 1)) + 1);
    Middle* middle = root_[page >> (2 * level_bits)].load(std::memory_order_relaxed);
    Leaf* table =
        middle == nullptr ? nullptr : (*middle)[(page >> level_bits) & (fan_out - 1)].load(std::memory_order_relaxed);
    if (table == nullptr) {
      page = stop;
      continue;
    }
    for (; page < stop; ++page) (*table)[page & (fan_out - 1)].store(0, std::memory_order_release);
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace kerncap::softgpu
