// Reads and writes of GPU memory by the packet processors. Everything goes through a page table; addresses may be any
// value, because packets are the application's.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "softgpu/memory.h"

namespace kerncap::softgpu {

// A naturally aligned word in GPU memory, or null. A word never straddles a page when it is aligned.
template <typename Word>
std::atomic<Word>* word_at(const AddressSpace& memory, std::uint64_t address, unsigned permissions) {
  if (address % sizeof(Word) != 0) return nullptr;
  return reinterpret_cast<std::atomic<Word>*>(memory.translate(address, permissions));
}

// Bytes that are there from `address` on: as far as pages are mapped with the permission and contiguous in the host.
inline std::uint64_t contiguous(const AddressSpace& memory, std::uint64_t address, std::uint64_t limit,
                                unsigned permissions, std::byte** host) {
  *host = memory.translate(address, permissions);
  if (*host == nullptr) return 0;
  std::uint64_t length = AddressSpace::page_size - (address & (AddressSpace::page_size - 1));
  while (length < limit && memory.translate(address + length, permissions) == *host + length) {
    length += AddressSpace::page_size;
  }
  return length < limit ? length : limit;
}

// Copies out of or into GPU memory. Returns the number of bytes done; fewer than `size` means a fault at address +
// done.
inline std::uint64_t read_gpu(const AddressSpace& memory, std::uint64_t address, void* to, std::uint64_t size) {
  std::uint64_t done = 0;
  while (done < size) {
    std::byte* host = nullptr;
    const std::uint64_t length = contiguous(memory, address + done, size - done, permission_read, &host);
    if (length == 0) break;
    std::memcpy(static_cast<std::byte*>(to) + done, host, length);
    done += length;
  }
  return done;
}

inline std::uint64_t write_gpu(const AddressSpace& memory, std::uint64_t address, const void* from,
                               std::uint64_t size) {
  std::uint64_t done = 0;
  while (done < size) {
    std::byte* host = nullptr;
    const std::uint64_t length = contiguous(memory, address + done, size - done, permission_write, &host);
    if (length == 0) break;
    std::memcpy(host, static_cast<const std::byte*>(from) + done, length);
    done += length;
  }
  return done;
}

}  // namespace kerncap::softgpu
