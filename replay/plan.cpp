#include "replay/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

using snapshot::Region;
using snapshot::RegionKind;

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t block =
    2u << 20;  // ROCr: SimpleHeap's default_block_size(); also the alignment of large blocks
constexpr std::uint32_t executable_allocation = 2;  // hsa_amd_memory_pool_executable_flag

std::uint64_t align_down(std::uint64_t value, std::uint64_t to) { return value / to * to; }
std::uint64_t align_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

bool is_local(RegionKind kind) {
  return kind == RegionKind::device_coarse || kind == RegionKind::device_fine || kind == RegionKind::device_extended ||
         kind == RegionKind::ipc || kind == RegionKind::vmem;
}

// libhsakmt aligns a block of this size to the largest power of two that fits, at most 2 MiB.
std::uint64_t default_alignment(std::uint64_t size) {
  std::uint64_t alignment = page;
  while (alignment < block && size >= alignment << 1) alignment <<= 1;
  return alignment;
}

Method method_for(RegionKind kind, const PlanOptions& options) {
  switch (kind) {
    case RegionKind::code_object:
      return Method::code_object;
    case RegionKind::registered:
    case RegionKind::managed:
      return Method::registered;
    case RegionKind::vmem:
      return options.vmem_available ? Method::vmem : Method::pool;
    default:
      return Method::pool;
  }
}

bool shares_blocks(const Placement& p) {
  return p.method == Method::pool && is_local(p.kind) && p.kind != RegionKind::vmem && p.agent >= 0 &&
         (p.allocation_flags & executable_allocation) == 0 && p.size < block;
}

bool same_pool(const Placement& a, const Placement& b) {
  return a.method == b.method && a.kind == b.kind && a.agent == b.agent && a.pool_flags == b.pool_flags &&
         a.allocation_flags == b.allocation_flags;
}

// Merges small neighbours of one 2 MiB block, when nothing else lies in that block.
std::vector<Placement> grouped(const std::vector<Placement>& single) {
  std::vector<Placement> result;
  for (std::size_t i = 0; i < single.size();) {
    const Placement& first = single[i];
    const std::uint64_t begin = align_down(first.address, block), end = begin + block;
    std::size_t last = i;
    bool fits = shares_blocks(first) && (result.empty() || result.back().address + result.back().size <= begin);
    while (last < single.size() && single[last].address < end) {
      fits = fits && shares_blocks(single[last]) && same_pool(first, single[last]) &&
             single[last].address + single[last].size <= end;
      ++last;
    }
    if (!fits) {
      result.push_back(first);
      ++i;
      continue;
    }
    Placement merged = first;
    merged.address = begin;
    merged.size = block;
    merged.whole_block = true;
    merged.regions.clear();
    for (; i < last; ++i)
      merged.regions.insert(merged.regions.end(), single[i].regions.begin(), single[i].regions.end());
    result.push_back(std::move(merged));
  }
  return result;
}

}  // namespace

Plan make_plan(const snapshot::Dispatch& dispatch, const PlanOptions& options) {
  Plan plan;
  std::vector<Placement> single;
  // Code objects come from the list of loads, which has the extent that the loader asks for; the regions inside say
  // which bytes were captured.
  for (const snapshot::CodeObjectLoad& load : dispatch.loads) {
    if (load.load_size == 0) continue;
    Placement placement;
    placement.address = align_down(load.load_base, page);
    placement.size = align_up(load.load_base + load.load_size, page) - placement.address;
    placement.method = Method::code_object;
    placement.kind = RegionKind::code_object;
    placement.agent = load.agent;
    placement.code_object = load.digest;
    for (std::size_t i = 0; i < dispatch.regions.size(); ++i) {
      const Region& region = dispatch.regions[i];
      if (region.kind != RegionKind::code_object) continue;
      if (region.address >= placement.address && region.address + region.size <= placement.address + placement.size) {
        placement.regions.push_back(i);
      }
    }
    single.push_back(std::move(placement));
  }
  bool plain_vmem = false, pinned_managed = false, attached = false;
  for (std::size_t i = 0; i < dispatch.regions.size(); ++i) {
    const Region& region = dispatch.regions[i];
    if (region.size == 0) continue;
    if (region.kind == RegionKind::code_object) continue;
    Placement placement;
    placement.address = align_down(region.address, page);
    placement.size = align_up(region.address + region.size, page) - placement.address;
    placement.method = method_for(region.kind, options);
    placement.kind = region.kind;
    placement.agent = region.agent;
    placement.pool_flags = region.pool_flags;
    placement.allocation_flags = region.allocation_flags;
    placement.host_address = region.host_address;
    placement.regions = {i};
    plain_vmem |= region.kind == RegionKind::vmem && placement.method == Method::pool;
    pinned_managed |= region.kind == RegionKind::managed;
    attached |= region.kind == RegionKind::ipc;
    // Two registrations can share a page: one mapping then serves both.
    if (!single.empty() && single.back().method == Method::registered && placement.method == Method::registered &&
        single.back().address + single.back().size > placement.address && single.back().host_address == 0 &&
        placement.host_address == 0) {
      single.back().size = std::max(single.back().address + single.back().size, placement.address + placement.size) -
                           single.back().address;
      single.back().regions.push_back(i);
      continue;
    }
    single.push_back(std::move(placement));
  }
  std::sort(single.begin(), single.end(), [](const Placement& a, const Placement& b) { return a.address < b.address; });
  for (std::size_t i = 1; i < single.size(); ++i) {
    if (single[i - 1].address + single[i - 1].size > single[i].address) {
      support::fail(support::ExitCode::bad_input,
                    "the snapshot's memory at {:#x} ({}) and at {:#x} ({}) overlap; it cannot be restored as captured",
                    single[i - 1].address, snapshot::to_string(single[i - 1].kind), single[i].address,
                    snapshot::to_string(single[i].kind));
    }
  }
  plan.placements = options.group_blocks ? grouped(single) : single;

  for (const Placement& p : plan.placements) {
    const bool local = p.agent >= 0 && (is_local(p.kind) || p.kind == RegionKind::code_object);
    if (local) {
      if (plan.agent_bytes.size() <= static_cast<std::size_t>(p.agent)) plan.agent_bytes.resize(p.agent + 1u);
      plan.agent_bytes[static_cast<std::size_t>(p.agent)] += p.size;
    } else {
      plan.host_bytes += p.size;
    }
    plan.needs_page_alignment |= p.address % default_alignment(p.size) != 0;
    if (!plan.reserve.empty() && plan.reserve.back().address + plan.reserve.back().size == p.address) {
      plan.reserve.back().size += p.size;
    } else {
      plan.reserve.push_back({p.address, p.size});
    }
  }
  for (const Placement& p : plan.placements) {
    if (p.method == Method::registered && p.host_address != 0 && align_down(p.host_address, page) != p.address) {
      plan.reserve.push_back({align_down(p.host_address, page), p.size});
    }
  }
  if (plain_vmem) plan.notes.emplace_back("virtual-memory allocations are replayed as plain device memory");
  if (pinned_managed) plan.notes.emplace_back("managed memory is replayed as pinned host memory");
  if (attached) plan.notes.emplace_back("memory attached from another process is replayed as this process's own");
  return plan;
}

const Placement* placement_of(const Plan& plan, std::size_t region) {
  for (const Placement& placement : plan.placements) {
    if (std::find(placement.regions.begin(), placement.regions.end(), region) != placement.regions.end())
      return &placement;
  }
  return nullptr;
}

}  // namespace kerncap::replay
