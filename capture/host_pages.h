// Host memory that the device can reach may be written by host threads with plain stores while a kernel is held, and
// nobody can stop them. What is read is therefore looked at again before the kernel runs.
//
// Memory: 8 bytes for each page of host memory. Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace kerncap::capture {

class HostPages {
 public:
  // `region` is its address. What was read of it from `offset` on (a multiple of the page size).
  void remember(std::uint64_t region, std::uint64_t offset, std::span<const std::byte> bytes);

  // Read again: the offsets of the 64 KiB chunks in which something differs from what is remembered, ascending. The new
  // bytes are remembered.
  std::vector<std::uint64_t> changed(std::uint64_t region, std::uint64_t offset, std::span<const std::byte> bytes);

  void clear() { hashes_.clear(); }

 private:
  std::map<std::uint64_t, std::vector<std::uint64_t>> hashes_;  // of each page; by region
};

}  // namespace kerncap::capture
