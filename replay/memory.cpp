#include "replay/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>

#include "core/support/error.h"
#include "replay/steering.h"

namespace kerncap::replay {
namespace {

using snapshot::RegionKind;
using support::ExitCode;
using support::fail;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

std::string occupants(std::uint64_t address, std::uint64_t size) {
  std::string text;
  for (const Mapping& mapping : overlapping(own_mappings(), address, size)) {
    text += (text.empty() ? "" : ", ") + describe(mapping);
  }
  return text.empty() ? "nothing that /proc/self/maps shows" : text;
}

[[noreturn]] void misplaced(const Placement& p, std::uint64_t got) {
  fail(ExitCode::environment,
       "memory at {:#x} ({} bytes, {}) cannot be placed as in the application: the runtime put it at {:#x}; the range is "
       "held by {}",
       p.address, p.size, snapshot::to_string(p.kind), got, occupants(p.address, p.size));
}

void allow_access(const Device& device, void* memory, const Placement& p) {
  const auto& gpus = device.gpu_handles();
  check(hsa().hsa_amd_agents_allow_access(static_cast<std::uint32_t>(gpus.size()), gpus.data(), nullptr, memory),
        fmt::format("giving the GPU access to {:#x}", p.address));
}

void allocate_pool(const Placement& p, const Device& device) {
  const Pool& pool = device.pool(p);
  void* memory = nullptr;
  {
    const Steer steer(p.address, p.size);
    check(hsa().hsa_amd_memory_pool_allocate(pool.handle, p.size, p.allocation_flags, &memory),
          fmt::format("allocating {} bytes ({}) for {:#x}", p.size, snapshot::to_string(p.kind), p.address));
  }
  if (number(memory) != p.address) misplaced(p, number(memory));
  // Local memory is its owner's already; host memory and peers need to be told.
  if (p.agent < 0 || device.gpu_handles().size() > 1) allow_access(device, memory, p);
}

void allocate_vmem(const Placement& p, const Device& device) {
  const HsaApi& api = hsa();
  Placement plain = p;
  plain.kind = p.agent < 0 ? RegionKind::host_fine : RegionKind::device_coarse;
  const Pool& pool = device.pool(plain);
  release_range(p.address, p.size);
  void* memory = nullptr;
  check(api.hsa_amd_vmem_address_reserve(&memory, p.size, p.address, 0), fmt::format("reserving {:#x}", p.address));
  // A busy address gives another one with status success.
  if (number(memory) != p.address) misplaced(p, number(memory));
  VmemHandle handle{};
  constexpr int unpinned = 0;  // MEMORY_TYPE_NONE
  check(api.hsa_amd_vmem_handle_create(pool.handle, p.size, unpinned, 0, &handle),
        fmt::format("allocating {} bytes of virtual memory for {:#x}", p.size, p.address));
  check(api.hsa_amd_vmem_map(memory, p.size, 0, handle, 0), fmt::format("mapping virtual memory at {:#x}", p.address));
  std::vector<VmemAccess> access;
  for (const hsa_agent_t gpu : device.gpu_handles()) access.push_back({HSA_ACCESS_PERMISSION_RW, gpu});
  check(api.hsa_amd_vmem_set_access(memory, p.size, access.data(), access.size()),
        fmt::format("giving the GPU access to {:#x}", p.address));
}

void allocate_registered(const Placement& p, const Device& device) {
  const std::uint64_t host = p.host_address == 0 ? p.address : p.host_address / 4096 * 4096;
  release_range(host, p.size);
  void* pages = ::mmap(pointer(host), p.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (number(pages) != host) misplaced(p, number(pages));
  const auto& gpus = device.gpu_handles();
  void* seen_by_gpu = nullptr;
  {
    // Where the GPU's address of registered memory differs from the host's, the runtime allocates it like any other.
    std::optional<Steer> steer;
    if (host != p.address) steer.emplace(p.address, p.size);
    check(hsa().hsa_amd_memory_lock(pages, p.size, const_cast<hsa_agent_t*>(gpus.data()), static_cast<int>(gpus.size()),
                                    &seen_by_gpu),
          fmt::format("registering {} bytes of host memory at {:#x}", p.size, host));
  }
  if (number(seen_by_gpu) != p.address) misplaced(p, number(seen_by_gpu));
}

}  // namespace

void reserve(const Plan& plan) {
  for (const Range& range : plan.reserve) {
    if (reserve_range(range.address, range.size)) continue;
    throw Occupied{fmt::format("the application's memory at {:#x} ({} bytes) is taken in the replaying process by {}",
                               range.address, range.size, occupants(range.address, range.size))};
  }
}

void allocate(const Plan& plan, const Device& device) {
  device.require_memory(plan);
  for (const Placement& placement : plan.placements) {
    switch (placement.method) {
      case Method::pool: allocate_pool(placement, device); break;
      case Method::vmem: allocate_vmem(placement, device); break;
      case Method::registered: allocate_registered(placement, device); break;
      case Method::code_object: break;
    }
  }
}

bool is_host_memory(const Placement& p) {
  return p.method == Method::registered || (p.agent < 0 && p.method == Method::pool);
}

std::uint64_t access_address(const Placement& p, std::uint64_t address) {
  if (p.method != Method::registered || p.host_address == 0) return address;
  return p.host_address / 4096 * 4096 + (address - p.address);
}

void write_memory(bool host, std::uint64_t address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (host) {
    std::memcpy(pointer(address), bytes.data(), bytes.size());
    return;
  }
  check(hsa().hsa_memory_copy(pointer(address), bytes.data(), bytes.size()),
        fmt::format("writing {} bytes to {:#x}", bytes.size(), address));
}

void read_memory(bool host, std::uint64_t address, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  if (host) {
    std::memcpy(bytes.data(), pointer(address), bytes.size());
    return;
  }
  check(hsa().hsa_memory_copy(bytes.data(), pointer(address), bytes.size()),
        fmt::format("reading {} bytes from {:#x}", bytes.size(), address));
}

void clear_memory(bool host, std::uint64_t address, std::uint64_t size) {
  if (host) {
    std::memset(pointer(address), 0, size);
    return;
  }
  const std::uint64_t words = size / 4;
  if (address % 4 == 0 && words != 0) {
    check(hsa().hsa_amd_memory_fill(pointer(address), 0, words), fmt::format("clearing {} bytes at {:#x}", size, address));
    address += words * 4;
    size -= words * 4;
  }
  const std::vector<std::byte> zeros(size);
  write_memory(false, address, zeros);
}

}  // namespace kerncap::replay
