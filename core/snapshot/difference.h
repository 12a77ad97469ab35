// What differs between the states of a dispatch, or between two dispatches, byte by byte.
//
// Only chunks whose checksums differ are read. Sizes are bytes; addresses are device addresses. Errors: those of
// Reader. Thread-safety: functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/snapshot/reader.h"

namespace kerncap::snapshot {

// Differing bytes of one region.
struct MemoryDifference {
  std::uint64_t address = 0, size = 0;              // the region; the smaller size when they differ
  std::uint64_t bytes = 0;                          // that differ; 0: none, and `first` and `last` say nothing
  std::uint64_t first = 0, last = 0;                // addresses of the first and the last byte that differ
  std::size_t region_first = 0, region_second = 0;  // numbers in their dispatches
  bool operator==(const MemoryDifference&) const = default;
};

struct FieldDifference {
  std::string field, first, second;
  bool operator==(const FieldDifference&) const = default;
};

struct KernargDifference {
  std::uint32_t offset = 0, size = 0;   // bytes of the kernarg segment
  std::optional<std::size_t> argument;  // position in Kernel::arguments, where both kernels have the same layout
  bool operator==(const KernargDifference&) const = default;
};

struct Difference {
  std::vector<FieldDifference> launch;  // kernel, code object, packet, queue
  std::vector<KernargDifference> kernarg;
  std::vector<std::size_t> removed, added;      // regions that only the first, only the second has
  std::vector<FieldDifference> regions;         // size, kind, owner or flags of regions at the same address
  std::vector<MemoryDifference> before, after;  // regions with differing bytes only
  bool same() const;
};

using ReadProgress = std::function<void(std::uint64_t bytes)>;  // may be empty

// Regions that the kernel changed; empty when there is no state after it.
std::vector<MemoryDifference> changes(const Reader& reader, std::size_t dispatch, const ReadProgress& progress);

// Process, position and time of the dispatches are not compared: two runs never agree there.
Difference compare(const Reader& first, std::size_t dispatch_first, const Reader& second, std::size_t dispatch_second,
                   const ReadProgress& progress);

}  // namespace kerncap::snapshot
