#include "softgpu/allocations.h"

#include <linux/kfd_ioctl.h>

#include <algorithm>

#include "softgpu/system_calls.h"

namespace kerncap::softgpu {
namespace {

unsigned permissions_of(std::uint32_t flags) {
  unsigned permissions = permission_read;
  if (flags & KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE) permissions |= permission_write;
  if (flags & KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE) permissions |= permission_execute;
  return permissions;
}

}  // namespace

void Allocations::map_pages(const Allocation& allocation, Device& device) {
  const unsigned permissions = permissions_of(allocation.flags);
  const std::uint64_t size = allocation.twice ? allocation.size / 2 : allocation.size;
  device.memory.map(allocation.address, size, allocation.host(), permissions);
  if (allocation.twice) device.memory.map(allocation.address + size, size, allocation.host(), permissions);
}

void Allocations::unmap_pages(const Allocation& allocation, Device& device) {
  device.memory.unmap(allocation.address, allocation.size);
}

void Allocations::widen(std::uint64_t address, std::uint64_t size) {
  lowest_ = std::min(lowest_.load(), address);
  highest_ = std::max(highest_.load(), address + size);
}

std::uint64_t Allocations::add(std::uint32_t gpu_id, Allocation allocation) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t handle = std::uint64_t{gpu_id} << 32 | next_handle_++;
  allocation.handle = handle;
  if (allocation.user_memory != nullptr)
    widen(reinterpret_cast<std::uint64_t>(allocation.user_memory), allocation.size);
  allocations_.emplace(handle, std::move(allocation));
  return handle;
}

bool Allocations::map(std::uint64_t handle, Device& device) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end()) return false;
  Allocation& allocation = found->second;
  if (std::ranges::find(allocation.mapped, &device) != allocation.mapped.end()) return true;
  map_pages(allocation, device);
  allocation.mapped.push_back(&device);
  return true;
}

bool Allocations::unmap(std::uint64_t handle, Device& device) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(handle);
    if (found == allocations_.end()) return false;
    Allocation& allocation = found->second;
    if (std::erase(allocation.mapped, &device) == 0) return true;
    unmap_pages(allocation, device);
  }
  quiesce_();
  return true;
}

bool Allocations::free(std::uint64_t handle) {
  Allocation freed;
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(handle);
    if (found == allocations_.end()) return false;
    freed = std::move(found->second);
    allocations_.erase(found);
    for (Device* device : freed.mapped) unmap_pages(freed, *device);
  }
  if (!freed.mapped.empty()) quiesce_();
  return true;  // the buffer's memory goes with `freed`, when nobody else holds it
}

std::shared_ptr<Buffer> Allocations::buffer_of(std::uint64_t handle, std::uint32_t* flags) const {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end()) return nullptr;
  if (flags != nullptr) *flags = found->second.flags;
  return found->second.buffer;
}

std::uint64_t Allocations::cookie_of(const std::shared_ptr<Buffer>& buffer) {
  const std::lock_guard lock(mutex_);
  if (buffer->cookie != 0) return buffer->cookie;
  // Numbers are used again after 2^26 buffers; those still alive are skipped.
  constexpr std::uint64_t numbers = (std::uint64_t{1} << 26) - 1;
  for (;;) {
    next_cookie_ = next_cookie_ % numbers + 1;
    std::weak_ptr<Buffer>& entry = cookies_[next_cookie_];
    if (entry.lock() != nullptr) continue;
    entry = buffer;
    return buffer->cookie = next_cookie_ << cookie_shift;
  }
}

std::shared_ptr<Buffer> Allocations::buffer_at(std::uint64_t offset, std::uint64_t* offset_in_buffer) const {
  const std::lock_guard lock(mutex_);
  const auto found = cookies_.find(offset >> cookie_shift);
  if (found == cookies_.end()) return nullptr;
  *offset_in_buffer = offset & ((std::uint64_t{1} << cookie_shift) - 1);
  return found->second.lock();
}

void Allocations::map_shared(Device& device, std::uint64_t address, std::uint64_t size, unsigned permissions) {
  const std::lock_guard lock(mutex_);
  device.memory.map(address, size, reinterpret_cast<std::byte*>(address), permissions);
  std::uint64_t& known = shared_[address];
  known = std::max(known, size);
  widen(address, size);
}

void Allocations::unmap_shared(Device& device, std::uint64_t address, std::uint64_t size) {
  {
    const std::lock_guard lock(mutex_);
    device.memory.unmap(address, size);
  }
  quiesce_();
}

void Allocations::host_unmapped(std::uint64_t address, std::uint64_t size,
                                std::span<const std::unique_ptr<Device>> devices) {
  const std::uint64_t end = address + size;
  if (end <= lowest_.load(std::memory_order_relaxed) || address >= highest_.load(std::memory_order_relaxed)) return;
  bool changed = false;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [handle, allocation] : allocations_) {
      const std::uint64_t host = reinterpret_cast<std::uint64_t>(allocation.user_memory);
      if (host == 0) continue;
      const std::uint64_t length = allocation.twice ? allocation.size / 2 : allocation.size;
      const std::uint64_t first = std::max(host, address), last = std::min(host + length, end);
      if (first >= last) continue;
      for (Device* device : allocation.mapped) {
        device->memory.unmap(allocation.address + (first - host), last - first);
        if (allocation.twice) device->memory.unmap(allocation.address + length + (first - host), last - first);
        changed = true;
      }
    }
    for (auto entry = shared_.begin(); entry != shared_.end();) {
      const std::uint64_t first = std::max(entry->first, address), last = std::min(entry->first + entry->second, end);
      if (first >= last) {
        ++entry;
        continue;
      }
      for (const auto& device : devices) device->memory.unmap(first, last - first);
      changed = true;
      entry = first == entry->first && last == entry->first + entry->second ? shared_.erase(entry) : std::next(entry);
    }
  }
  if (changed) quiesce_();
}

void Allocations::forget_vanished_memory(std::span<const std::unique_ptr<Device>> devices) {
  if (highest_.load(std::memory_order_relaxed) == 0) return;  // nothing was ever registered
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges, gone;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [handle, allocation] : allocations_) {
      if (allocation.user_memory == nullptr || allocation.mapped.empty()) continue;
      ranges.emplace_back(reinterpret_cast<std::uint64_t>(allocation.user_memory),
                          allocation.twice ? allocation.size / 2 : allocation.size);
    }
    ranges.insert(ranges.end(), shared_.begin(), shared_.end());
  }
  for (const auto& [address, size] : ranges) {
    if (raw::all_mapped(address, size)) continue;
    for (std::uint64_t page = address; page < address + size; page += AddressSpace::page_size) {
      if (raw::all_mapped(page, AddressSpace::page_size)) continue;
      if (!gone.empty() && gone.back().first + gone.back().second == page) {
        gone.back().second += AddressSpace::page_size;
      } else {
        gone.emplace_back(page, AddressSpace::page_size);
      }
    }
  }
  for (const auto& [address, size] : gone) host_unmapped(address, size, devices);
}

}  // namespace kerncap::softgpu
