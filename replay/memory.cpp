#include "replay/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>

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
       "memory at {:#x} ({} bytes, {}) cannot be placed as in the application: the runtime put it at {:#x}; the range "
       "is "
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
  void* pages =
      ::mmap(pointer(host), p.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
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

// Pinned memory, borrowed by one copy at a time; zeros while nobody has it.
struct Staging {
  void* memory = nullptr;
  hsa_signal_t signal{};
  bool busy = false;
};
constexpr std::size_t staging_size = 1 << 20;
std::array<Staging, 8> stagings;  // as many as threads that copy
std::mutex stagings_mutex;
std::condition_variable staging_returned;
hsa_agent_t gpu_agent{}, host_agent{};

class Borrowed {
 public:
  Borrowed() {
    std::unique_lock lock(stagings_mutex);
    const auto is_free = [](const Staging& s) { return !s.busy; };
    staging_returned.wait(lock, [&] { return std::any_of(stagings.begin(), stagings.end(), is_free); });
    staging_ = &*std::find_if(stagings.begin(), stagings.end(), is_free);
    staging_->busy = true;
  }
  ~Borrowed() {
    const std::scoped_lock lock(stagings_mutex);
    staging_->busy = false;
    staging_returned.notify_one();
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  const Staging* operator->() const { return staging_; }

 private:
  Staging* staging_;
};

void transfer(void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent, std::size_t size,
              hsa_signal_t signal) {
  const HsaApi& api = hsa();
  api.hsa_signal_store_relaxed(signal, 1);
  check(api.hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, 0, nullptr, signal),
        fmt::format("copying {} bytes from {} to {}", size, from, to));
  // Positive: still to come. Negative: the runtime reports a failed copy so.
  const auto left =
      api.hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
  if (left < 0) fail(ExitCode::environment, "the GPU's copy engine failed on {} bytes from {} to {}", size, from, to);
}

}  // namespace

void reserve(const Plan& plan) {
  for (std::size_t i = 0; i < plan.reserve.size(); ++i) {
    const Range& range = plan.reserve[i];
    if (reserve_range(range.address, range.size)) continue;
    for (std::size_t taken = 0; taken < i; ++taken)
      release_range(plan.reserve[taken].address, plan.reserve[taken].size);
    throw Occupied{fmt::format("the application's memory at {:#x} ({} bytes) is taken in the replaying process by {}",
                               range.address, range.size, occupants(range.address, range.size))};
  }
}

void allocate(const Plan& plan, const Device& device) {
  device.require_memory(plan);
  for (const Placement& placement : plan.placements) {
    switch (placement.method) {
      case Method::pool:
        allocate_pool(placement, device);
        break;
      case Method::vmem:
        allocate_vmem(placement, device);
        break;
      case Method::registered:
        allocate_registered(placement, device);
        break;
      case Method::code_object:
        break;
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

void start_copying(const Device& device) {
  const HsaApi& api = hsa();
  gpu_agent = device.dispatch_agent().handle;
  host_agent = device.agent(-1).handle;
  Placement like;
  like.kind = RegionKind::host_fine;
  for (Staging& staging : stagings) {
    check(api.hsa_amd_memory_pool_allocate(device.pool(like).handle, staging_size, 0, &staging.memory),
          "allocating a buffer for copies");
    check(api.hsa_amd_agents_allow_access(1, &gpu_agent, nullptr, staging.memory),
          "giving the GPU access to a buffer for copies");
    check(api.hsa_signal_create(0, 0, nullptr, &staging.signal), "creating a signal");
    std::memset(staging.memory, 0, staging_size);
  }
}

void write_memory(bool host, std::uint64_t address, std::span<const std::byte> bytes) {
  if (host) {
    std::memcpy(pointer(address), bytes.data(), bytes.size());
    return;
  }
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), staging_size));
    const Borrowed staging;
    std::memcpy(staging->memory, piece.data(), piece.size());
    transfer(pointer(address), gpu_agent, staging->memory, host_agent, piece.size(), staging->signal);
    std::memset(staging->memory, 0, piece.size());
    address += piece.size();
    bytes = bytes.subspan(piece.size());
  }
}

void read_memory(bool host, std::uint64_t address, std::span<std::byte> bytes) {
  if (host) {
    std::memcpy(bytes.data(), pointer(address), bytes.size());
    return;
  }
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), staging_size));
    const Borrowed staging;
    transfer(staging->memory, host_agent, pointer(address), gpu_agent, piece.size(), staging->signal);
    std::memcpy(piece.data(), staging->memory, piece.size());
    // Or the next run of a kernel could find there what this one computed.
    std::memset(staging->memory, 0, piece.size());
    address += piece.size();
    bytes = bytes.subspan(piece.size());
  }
}

void clear_memory(bool host, std::uint64_t address, std::uint64_t size) {
  if (host) {
    std::memset(pointer(address), 0, size);
    return;
  }
  // By the copy engine as well: a fill is a kernel, and the software GPU runs kernels slowly.
  for (std::uint64_t at = 0; at < size; at += staging_size) {
    const Borrowed staging;  // unused buffers are all zeros
    transfer(pointer(address + at), gpu_agent, staging->memory, host_agent,
             std::min<std::uint64_t>(size - at, staging_size), staging->signal);
  }
}

}  // namespace kerncap::replay
