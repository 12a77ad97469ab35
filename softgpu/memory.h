// The GPU's view of memory: a page table from GPU virtual addresses to host memory with permissions.
//
// Shapes and units: addresses are bytes, 48 bits wide (the canonical lower half: what KFD gives user space); pages are
// 4 KiB. A GPU address is not a host pointer: device memory is a memfd mapped at an alias of ours, and only the page
// table knows where. That is what makes strictness possible: what is not in the table faults, as on hardware.
//
// Thread-safety: map() and unmap() lock; translate() is lock-free and may run beside them from any number of threads. A
// translation that a thread already holds stays readable until the owner of the host memory frees it; the owner
// (the kernel ABI) unmaps first, then waits for running dispatches that may use it, as the real driver does.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace kerncap::softgpu {

enum Permission : unsigned { permission_read = 1, permission_write = 2, permission_execute = 4 };

class AddressSpace {
 public:
  static constexpr unsigned page_bits = 12;
  static constexpr std::uint64_t page_size = std::uint64_t{1} << page_bits;
  static constexpr unsigned address_bits = 48;

  AddressSpace();
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Whole pages: `address`, `size` and `host` are multiples of page_size. Replaces what was mapped there.
  void map(std::uint64_t address, std::uint64_t size, std::byte* host, unsigned permissions);
  void unmap(std::uint64_t address, std::uint64_t size);

  // Host pointer for one byte, or nullptr when the page is absent or lacks one of `permissions`.
  std::byte* translate(std::uint64_t address, unsigned permissions) const noexcept {
    const std::uint64_t entry = leaf(address);
    if ((entry & permissions) != permissions || entry == 0) return nullptr;
    return reinterpret_cast<std::byte*>((entry & ~(page_size - 1)) | (address & (page_size - 1)));
  }

  // Host pointer for `size` bytes when all of them are allowed and contiguous in host memory; otherwise nullptr (the
  // caller then goes page by page, or reports the fault at the first byte that translate() refuses).
  std::byte* translate_range(std::uint64_t address, std::uint64_t size, unsigned permissions) const noexcept {
    std::byte* first = translate(address, permissions);
    if (first == nullptr) return nullptr;
    const std::uint64_t last_page = (address + size - 1) >> page_bits;
    for (std::uint64_t page = (address >> page_bits) + 1; page <= last_page; ++page) {
      const std::uint64_t at = page << page_bits;
      if (translate(at, permissions) != first + (at - address)) return nullptr;
    }
    return first;
  }

  // Grows by one with every map() and unmap(): a thread's own cache of translations is valid while it stays the same.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

 private:
  static constexpr unsigned level_bits = 12;
  static constexpr std::size_t fan_out = std::size_t{1} << level_bits;
  using Leaf = std::array<std::atomic<std::uint64_t>, fan_out>;  // host page | permissions; 0 = absent
  using Middle = std::array<std::atomic<Leaf*>, fan_out>;

  std::uint64_t leaf(std::uint64_t address) const noexcept {
    if (address >> address_bits) return 0;
    const Middle* middle = root_[address >> (page_bits + 2 * level_bits)].load(std::memory_order_acquire);
    if (middle == nullptr) return 0;
    const Leaf* table =
        (*middle)[(address >> (page_bits + level_bits)) & (fan_out - 1)].load(std::memory_order_acquire);
    if (table == nullptr) return 0;
    return (*table)[(address >> page_bits) & (fan_out - 1)].load(std::memory_order_acquire);
  }

  std::array<std::atomic<Middle*>, fan_out> root_{};
  std::atomic<std::uint64_t> generation_{1};
  std::mutex mutex_;
};

}  // namespace kerncap::softgpu
