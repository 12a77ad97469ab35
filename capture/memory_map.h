// What the device can see at this moment: pure bookkeeping, no call of the runtime.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/snapshot/manifest.h"

namespace kerncap::capture {

struct Allocation {
  std::uint64_t address = 0, size = 0;
  snapshot::RegionKind kind = snapshot::RegionKind::device_coarse;
  std::uint64_t pool = 0;   // hsa_amd_memory_pool_t / hsa_region_t handle; 0 when there is none
  std::uint64_t agent = 0;  // hsa_agent_t handle of the owner when known without the pool
  bool host = false;        // the bytes lie in host memory that we may read directly
  bool pool_known = false;  // kind, flags and owner are those of `pool`
  std::uint32_t pool_flags = 0, allocation_flags = 0;
  std::uint64_t host_address = 0;  // registered: where the host sees the bytes
};

class MemoryMap {
 public:
  // A new range. Whatever it overlaps is stale (freed behind our back) and cut away, except that locking the same host
  // pages again only counts: unlock() must be called as often.
  void add(const Allocation& allocation);
  // The whole allocation that begins at `address`; false when there is none (allocated before us, or freed twice).
  bool remove(std::uint64_t address);
  // Any part: allocations that reach beyond it keep the rest (vmem unmap, released managed ranges).
  void remove_range(std::uint64_t address, std::uint64_t size);
  // Registered host pages are unlocked by their host address.
  bool unlock(std::uint64_t host_address);

  const Allocation* find(std::uint64_t address) const;  // the one that covers it
  std::vector<Allocation> list() const;                 // ascending, disjoint
  std::uint64_t bytes() const;
  void clear();

 private:
  std::map<std::uint64_t, Allocation> by_address_;
  std::map<std::uint64_t, unsigned> lock_counts_;  // registered: host address -> times locked
};

// Cuts `holes` out of allocations: what is left of each, ascending. Both inputs ascend and are disjoint in themselves.
std::vector<Allocation> without(const std::vector<Allocation>& allocations, const std::vector<snapshot::Region>& holes);

}  // namespace kerncap::capture
