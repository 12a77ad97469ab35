// What a process has allocated or registered with the driver, and where each GPU sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "softgpu/buffer.h"
#include "softgpu/device.h"

namespace kerncap::softgpu {

struct Allocation {
  std::uint64_t handle = 0;
  std::uint64_t address = 0, size = 0;  // of the GPU mapping, bytes; whole pages
  std::uint32_t flags = 0;              // KFD_IOC_ALLOC_MEM_FLAGS_*
  std::shared_ptr<Buffer> buffer;       // or
  std::byte* user_memory = nullptr;     // the application's own pages
  bool twice = false;                   // the second half of the range shows the first again (AQL rings)
  std::vector<Device*> mapped;

  std::byte* host() const { return buffer != nullptr ? buffer->alias() : user_memory; }
};

class Allocations {
 public:
  static constexpr std::uint64_t largest_buffer = std::uint64_t{1} << 36;

  // `quiesce` returns when no engine thread uses an old translation any more; called after every unmap.
  explicit Allocations(std::function<void()> quiesce) : quiesce_(std::move(quiesce)) {}

  // Returns the handle; gives the allocation away.
  std::uint64_t add(std::uint32_t gpu_id, Allocation allocation);
  bool map(std::uint64_t handle, Device& device);
  bool unmap(std::uint64_t handle, Device& device);
  bool free(std::uint64_t handle);
  std::shared_ptr<Buffer> buffer_of(std::uint64_t handle, std::uint32_t* flags = nullptr) const;

  // Cookies: what the application passes to mmap() as offset to get at a buffer.
  std::uint64_t cookie_of(const std::shared_ptr<Buffer>& buffer);
  std::shared_ptr<Buffer> buffer_at(std::uint64_t offset, std::uint64_t* offset_in_buffer) const;

  // Ranges of the application's own memory that devices see at the same address (shared virtual memory).
  void map_shared(Device& device, std::uint64_t address, std::uint64_t size, unsigned permissions);
  void unmap_shared(Device& device, std::uint64_t address, std::uint64_t size);

  // The application takes pages away from its address space: GPUs must not see them any longer. Cheap when none does.
  void host_unmapped(std::uint64_t address, std::uint64_t size, std::span<const std::unique_ptr<Device>> devices);
  // The same for pages that have gone in ways that nobody saw, such as free() inside libc. Before each kernel.
  void forget_vanished_memory(std::span<const std::unique_ptr<Device>> devices);

 private:
  static constexpr unsigned cookie_shift = 36;  // log2 of largest_buffer

  void map_pages(const Allocation& allocation, Device& device);
  void unmap_pages(const Allocation& allocation, Device& device);

  std::function<void()> quiesce_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Allocation> allocations_;
  std::map<std::uint64_t, std::weak_ptr<Buffer>> cookies_;
  std::uint64_t next_handle_ = 1, next_cookie_ = 1;
  std::map<std::uint64_t, std::uint64_t> shared_;  // address -> size
  // Bounds over everything that host_unmapped() could concern; only ever widened.
  std::atomic<std::uint64_t> lowest_{~std::uint64_t{0}}, highest_{0};
  void widen(std::uint64_t address, std::uint64_t size);
};

}  // namespace kerncap::softgpu
