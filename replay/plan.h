// Where every captured byte has to go: the allocations that a replay makes, worked out from the manifest alone. Pure.
//
// The runtime rounds and groups: allocations in local memory up to 2 MiB share 2 MiB blocks (ROCr's fragment
// allocator), so the application's neighbours inside one block come back as one allocation of the whole block, as the
// hardware saw it; a kernel that reads a little past its buffer then finds memory, as it did in the application.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/snapshot/manifest.h"

namespace kerncap::replay {

enum class Method {
  pool,         // hsa_amd_memory_pool_allocate, steered
  code_object,  // the executable loader, steered
  registered,   // mmap at the fixed address + hsa_amd_memory_lock
  vmem,         // hsa_amd_vmem_*; `pool` where the runtime has no such functions
};

struct Placement {
  std::uint64_t address = 0, size = 0;  // page aligned
  Method method = Method::pool;
  snapshot::RegionKind kind = snapshot::RegionKind::device_coarse;
  std::int32_t agent = -1;  // index into Manifest::agents; -1 = host
  std::uint32_t pool_flags = 0, allocation_flags = 0;
  std::uint64_t host_address = 0;    // registered: the pages' own address
  std::string code_object;           // code_object: digest
  std::vector<std::size_t> regions;  // indices into Dispatch::regions that lie inside
  bool whole_block = false;          // a 2 MiB block around smaller regions: the rest of it is slack
};

struct Range {
  std::uint64_t address = 0, size = 0;
  bool operator==(const Range&) const = default;
};

struct Plan {
  std::vector<Placement> placements;       // ascending addresses, no overlap
  std::vector<Range> reserve;              // merged, ascending: taken before the runtime starts
  std::vector<std::uint64_t> agent_bytes;  // local memory needed, by agent index
  std::uint64_t host_bytes = 0;
  bool needs_page_alignment = false;  // some block is less aligned than the runtime aligns its size by default
  std::vector<std::string> notes;     // substitutions, for the verdict
};

struct PlanOptions {
  bool vmem_available = true;
  bool group_blocks = true;  // false: every small allocation by itself (a block's slack is occupied)
};

// Throws Error{bad_input} when the regions contradict each other.
Plan make_plan(const snapshot::Dispatch& dispatch, const PlanOptions& options);

// Where the region with this index of the dispatch lies; nullptr when the plan leaves it out. Valid as long as the plan.
const Placement* placement_of(const Plan& plan, std::size_t region);

}  // namespace kerncap::replay
