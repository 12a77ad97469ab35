#include "replay/device.h"

#include <hsa/amd_hsa_queue.h>

#include <algorithm>
#include <cstring>

#include "core/support/error.h"
#include "replay/gpu_clock.h"

namespace kerncap::replay {
namespace {

using support::ExitCode;
using support::fail;

// Written by the runtime's threads; one process, one queue.
Fault memory_fault;
std::atomic<hsa_status_t> queue_status{HSA_STATUS_SUCCESS};

hsa_status_t on_system_event(const hsa_amd_event_t* event, void*) {
  if (event->event_type != HSA_AMD_GPU_MEMORY_FAULT_EVENT) return HSA_STATUS_ERROR;
  memory_fault.address = event->memory_fault.virtual_address;
  memory_fault.reason = event->memory_fault.fault_reason_mask;
  memory_fault.happened.store(true, std::memory_order_release);
  return HSA_STATUS_SUCCESS;  // handled: the runtime then doesn't abort the process
}

void on_queue_error(hsa_status_t status, hsa_queue_t*, void*) { queue_status.store(status); }

hsa_status_t collect_pool(hsa_amd_memory_pool_t handle, void* data) {
  hsa_amd_segment_t segment{};
  bool allocatable = false;
  Pool pool{handle, 0, 0};
  const HsaApi& api = hsa();
  if (api.hsa_amd_memory_pool_get_info(handle, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment) != HSA_STATUS_SUCCESS) {
    return HSA_STATUS_SUCCESS;
  }
  if (segment == HSA_AMD_SEGMENT_GROUP) {
    size_t bytes = 0;
    api.hsa_amd_memory_pool_get_info(handle, HSA_AMD_MEMORY_POOL_INFO_SIZE, &bytes);
    static_cast<DeviceAgent*>(data)->lds_bytes = bytes;
  }
  if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
  api.hsa_amd_memory_pool_get_info(handle, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allocatable);
  if (!allocatable) return HSA_STATUS_SUCCESS;
  api.hsa_amd_memory_pool_get_info(handle, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &pool.flags);
  size_t size = 0;
  api.hsa_amd_memory_pool_get_info(handle, HSA_AMD_MEMORY_POOL_INFO_SIZE, &size);
  pool.size = size;
  static_cast<DeviceAgent*>(data)->pools.push_back(pool);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t first_isa(hsa_isa_t isa, void* data) {
  std::uint32_t length = 0;
  const HsaApi& api = hsa();
  if (api.hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME_LENGTH, &length) != HSA_STATUS_SUCCESS) return HSA_STATUS_SUCCESS;
  std::string name(length, '\0');
  api.hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME, name.data());
  *static_cast<std::string*>(data) = name.c_str();  // the length counts a NUL
  return HSA_STATUS_INFO_BREAK;
}

struct AllAgents {
  std::vector<DeviceAgent> gpus;
  std::optional<DeviceAgent> host;
};

hsa_status_t collect_agent(hsa_agent_t handle, void* data) {
  auto* all = static_cast<AllAgents*>(data);
  const HsaApi& api = hsa();
  hsa_device_type_t type{};
  if (api.hsa_agent_get_info(handle, HSA_AGENT_INFO_DEVICE, &type) != HSA_STATUS_SUCCESS) return HSA_STATUS_SUCCESS;
  DeviceAgent agent;
  agent.handle = handle;
  char name[64] = {};
  api.hsa_agent_get_info(handle, HSA_AGENT_INFO_NAME, name);
  agent.name = name;
  api.hsa_amd_agent_iterate_memory_pools(handle, collect_pool, &agent);
  if (type == HSA_DEVICE_TYPE_GPU) {
    api.hsa_agent_iterate_isas(handle, first_isa, &agent.isa);
    all->gpus.push_back(std::move(agent));
  } else if (type == HSA_DEVICE_TYPE_CPU && !all->host) {
    all->host = std::move(agent);
  }
  return HSA_STATUS_SUCCESS;
}

// Which captured agents a replay cannot do without.
std::vector<bool> needed_agents(const snapshot::Manifest& manifest, const snapshot::Dispatch& dispatch) {
  std::vector<bool> needed(manifest.agents.size(), false);
  const auto need = [&](std::int32_t index) {
    if (index >= 0 && static_cast<std::size_t>(index) < needed.size()) needed[static_cast<std::size_t>(index)] = true;
  };
  need(dispatch.agent);
  for (const auto& region : dispatch.regions) need(region.agent);
  for (const auto& load : dispatch.loads) need(load.agent);
  return needed;
}

void write_packet_header(void* packet, std::uint16_t header, std::uint16_t setup) {
  const std::uint32_t first_word = header | std::uint32_t{setup} << 16;
  __atomic_store_n(static_cast<std::uint32_t*>(packet), first_word, __ATOMIC_RELEASE);
}

constexpr std::uint16_t header_of(hsa_packet_type_t type, bool barrier, hsa_fence_scope_t acquire,
                                  hsa_fence_scope_t release) {
  return static_cast<std::uint16_t>(type << HSA_PACKET_HEADER_TYPE | (barrier ? 1 : 0) << HSA_PACKET_HEADER_BARRIER |
                                    acquire << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                                    release << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

}  // namespace

std::uint64_t DeviceAgent::local_bytes() const {
  std::uint64_t result = 0;
  for (const Pool& pool : pools) result = std::max(result, pool.size);
  return result;
}

Device::Device(const snapshot::Manifest& manifest, const snapshot::Dispatch& dispatch)
    : dispatch_agent_(dispatch.agent) {
  start_hsa();
  const HsaApi& api = hsa();
  AllAgents all;
  check(api.hsa_iterate_agents(collect_agent, &all), "listing the GPUs");
  if (!all.host) fail(ExitCode::environment, "the ROCm runtime lists no CPU agent");
  if (all.gpus.empty()) {
    fail(ExitCode::environment, "this machine has no AMD GPU; --softgpu runs the replay on the software GPU");
  }
  host_ = std::move(*all.host);
  gpus_ = std::move(all.gpus);
  const std::vector<bool> needed = needed_agents(manifest, dispatch);
  map_.assign(manifest.agents.size(), -1);
  std::vector<bool> taken(gpus_.size(), false);
  for (std::size_t i = 0; i < manifest.agents.size(); ++i) {
    if (!needed[i]) continue;
    const snapshot::Agent& captured = manifest.agents[i];
    for (std::size_t g = 0; g < gpus_.size() && map_[i] < 0; ++g) {
      // Features of the ISA (xnack, sramecc) are part of it: code for one setting misbehaves under another.
      const bool same = captured.isa.empty() ? gpus_[g].name == captured.name : gpus_[g].isa == captured.isa;
      if (taken[g] || !same) continue;
      taken[g] = true;
      map_[i] = static_cast<std::int32_t>(g);
    }
    if (map_[i] < 0) {
      std::string have;
      for (const DeviceAgent& gpu : gpus_) have += (have.empty() ? "" : ", ") + gpu.isa;
      fail(
          ExitCode::environment,
          "the snapshot needs {} GPU{} of ISA {}, and this machine has {}; replay it on such a GPU, or on the software "
          "GPU with --softgpu={}",
          std::count(needed.begin(), needed.end(), true),
          std::count(needed.begin(), needed.end(), true) == 1 ? "" : "s",
          captured.isa.empty() ? captured.name : captured.isa, have, captured.name);
    }
  }
  for (const std::int32_t index : map_) {
    if (index >= 0) gpu_handles_.push_back(gpus_[static_cast<std::size_t>(index)].handle);
  }
  check(api.hsa_amd_register_system_event_handler(on_system_event, nullptr), "registering for GPU memory faults");
  check(api.hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &ticks_per_second_), "asking for the clock rate");
  if (ticks_per_second_ == 0) ticks_per_second_ = 1;
  std::uint32_t bdf = 0, domain = 0;
  const auto attribute = [](int number) { return static_cast<hsa_agent_info_t>(number); };
  if (api.hsa_agent_get_info(dispatch_agent().handle, attribute(HSA_AMD_AGENT_INFO_BDFID), &bdf) ==
          HSA_STATUS_SUCCESS &&
      api.hsa_agent_get_info(dispatch_agent().handle, attribute(HSA_AMD_AGENT_INFO_DOMAIN), &domain) ==
          HSA_STATUS_SUCCESS) {
    clock_file_ = shader_clock_file(std::filesystem::path("/sys/bus/pci/devices") / pci_name(domain, bdf));
  }
}

const DeviceAgent& Device::agent(std::int32_t index) const {
  if (index < 0) return host_;
  if (static_cast<std::size_t>(index) >= map_.size() || map_[static_cast<std::size_t>(index)] < 0) {
    fail(ExitCode::bad_input, "the snapshot refers to agent {}, which it does not list", index);
  }
  return gpus_[static_cast<std::size_t>(map_[static_cast<std::size_t>(index)])];
}

const Pool& Device::pool(const Placement& placement) const {
  constexpr std::uint32_t fine = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
  constexpr std::uint32_t coarse = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
  constexpr std::uint32_t kernarg = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT;
  constexpr std::uint32_t extended = 8;  // HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED, newer headers
  std::uint32_t wanted = placement.pool_flags;
  if (wanted == 0) {
    switch (placement.kind) {
      case snapshot::RegionKind::host_kernarg:
        wanted = fine | kernarg;
        break;
      case snapshot::RegionKind::host_fine:
      case snapshot::RegionKind::device_fine:
        wanted = fine;
        break;
      case snapshot::RegionKind::device_extended:
        wanted = extended;
        break;
      default:
        wanted = coarse;
        break;
    }
  }
  const DeviceAgent& owner = agent(placement.agent);
  for (const Pool& candidate : owner.pools) {
    if (candidate.flags == wanted) return candidate;
  }
  // A runtime of another generation flags its pools a little differently: the same granularity is what matters.
  for (const Pool& candidate : owner.pools) {
    if ((candidate.flags & wanted & (fine | coarse | extended)) != 0 &&
        ((wanted & kernarg) == 0 || (candidate.flags & kernarg) != 0)) {
      return candidate;
    }
  }
  fail(ExitCode::environment, "agent {} has no memory pool like the one at {:#x} in the application (flags {:#x})",
       owner.name, placement.address, wanted);
}

const Pool& Device::kernarg_pool() const {
  for (const Pool& pool : host_.pools) {
    if ((pool.flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) != 0) return pool;
  }
  fail(ExitCode::environment, "the ROCm runtime offers no memory for kernel arguments");
}

void Device::require_memory(const Plan& plan) const {
  for (std::size_t i = 0; i < plan.agent_bytes.size(); ++i) {
    if (plan.agent_bytes[i] == 0) continue;
    const DeviceAgent& owner = agent(static_cast<std::int32_t>(i));
    if (plan.agent_bytes[i] > owner.local_bytes()) {
      fail(ExitCode::environment,
           "the snapshot needs {} bytes of local memory on {}, which has {}: replay it on a larger GPU",
           plan.agent_bytes[i], owner.name, owner.local_bytes());
    }
  }
}

void Device::create_queue(const std::string& type) {
  const HsaApi& api = hsa();
  const hsa_queue_type32_t queue_type = type == "cooperative" ? HSA_QUEUE_TYPE_COOPERATIVE
                                        : type == "single"    ? HSA_QUEUE_TYPE_SINGLE
                                                              : HSA_QUEUE_TYPE_MULTI;
  std::uint32_t size = 0;
  check(api.hsa_agent_get_info(dispatch_agent().handle, HSA_AGENT_INFO_QUEUE_MIN_SIZE, &size),
        "asking for queue sizes");
  size = std::max<std::uint32_t>(size, 64);
  check(api.hsa_queue_create(dispatch_agent().handle, size, queue_type, on_queue_error, nullptr, UINT32_MAX, UINT32_MAX,
                             &queue_),
        "creating a queue");
  check(api.hsa_amd_profiling_set_profiler_enabled(queue_, 1), "enabling time stamps on the queue");
  check(api.hsa_signal_create(1, 0, nullptr, &kernel_signal_), "creating a signal");
  check(api.hsa_signal_create(1, 0, nullptr, &fence_signal_), "creating a signal");
}

LaunchResult Device::launch(const Launch& what, std::chrono::milliseconds timeout) {
  const HsaApi& api = hsa();
  api.hsa_signal_store_relaxed(kernel_signal_, 1);
  api.hsa_signal_store_relaxed(fence_signal_, 1);
  // Three packets: a fence that makes our writes visible, the kernel with the application's own header, a fence that
  // makes its writes visible to us whatever release scope that header has.
  const std::uint64_t index = api.hsa_queue_add_write_index_relaxed(queue_, 3);
  const auto packet_at = [&](std::uint64_t i) {
    return static_cast<hsa_kernel_dispatch_packet_t*>(queue_->base_address) + (i & (queue_->size - 1));
  };
  const auto fence_header =
      header_of(HSA_PACKET_TYPE_BARRIER_AND, true, HSA_FENCE_SCOPE_SYSTEM, HSA_FENCE_SCOPE_SYSTEM);
  const auto write_fence = [&](std::uint64_t i, hsa_signal_t signal) {
    hsa_barrier_and_packet_t fence{};
    fence.completion_signal = signal;
    auto* slot = packet_at(i);
    std::memcpy(reinterpret_cast<char*>(slot) + 4, reinterpret_cast<char*>(&fence) + 4, sizeof fence - 4);
  };
  write_fence(index, {0});
  hsa_kernel_dispatch_packet_t dispatch{};
  dispatch.workgroup_size_x = static_cast<std::uint16_t>(what.workgroup[0]);
  dispatch.workgroup_size_y = static_cast<std::uint16_t>(what.workgroup[1]);
  dispatch.workgroup_size_z = static_cast<std::uint16_t>(what.workgroup[2]);
  dispatch.grid_size_x = what.grid[0];
  dispatch.grid_size_y = what.grid[1];
  dispatch.grid_size_z = what.grid[2];
  dispatch.private_segment_size = what.private_segment_size;
  dispatch.group_segment_size = what.group_segment_size;
  dispatch.kernel_object = what.kernel_object;
  dispatch.kernarg_address = reinterpret_cast<void*>(what.kernarg_address);
  dispatch.completion_signal = kernel_signal_;
  std::memcpy(reinterpret_cast<char*>(packet_at(index + 1)) + 4, reinterpret_cast<char*>(&dispatch) + 4,
              sizeof dispatch - 4);
  write_fence(index + 2, fence_signal_);

  const auto start = std::chrono::steady_clock::now();
  write_packet_header(packet_at(index + 2), fence_header, 0);
  write_packet_header(packet_at(index + 1), what.header, what.setup);
  write_packet_header(packet_at(index), fence_header, 0);
  api.hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(index + 2));

  LaunchResult result;
  constexpr std::uint64_t slice_ms = 20;
  for (;;) {
    const auto left = api.hsa_signal_wait_scacquire(fence_signal_, HSA_SIGNAL_CONDITION_LT, 1,
                                                    ticks_per_second_ / 1000 * slice_ms, HSA_WAIT_STATE_BLOCKED);
    const auto now = std::chrono::steady_clock::now();
    if (memory_fault.happened.load(std::memory_order_acquire)) {
      result.end = LaunchEnd::fault;
      result.fault_address = memory_fault.address;
      return result;
    }
    if (const hsa_status_t status = queue_status.load(); status != HSA_STATUS_SUCCESS) {
      result.end = LaunchEnd::queue_error;
      result.reason = status_text(status);
      return result;
    }
    if (left < 1) {
      result.host_ns = std::chrono::duration<double, std::nano>(now - start).count();
      if (clock_file_) result.clock_hz = read_clock(*clock_file_);
      break;
    }
    if (now - start > timeout) {
      result.end = LaunchEnd::timed_out;
      return result;
    }
  }
  // The packet processor takes one from the signal at the kernel's end. Any other value was written by the kernel,
  // which can reach the signal through its dispatch packet; then its time stamps are worth nothing either.
  if (api.hsa_signal_load_relaxed(kernel_signal_) != 0) {
    result.end = LaunchEnd::tampered;
    return result;
  }
  hsa_amd_profiling_dispatch_time_t time{};
  check(api.hsa_amd_profiling_get_dispatch_time(dispatch_agent().handle, kernel_signal_, &time),
        "reading the kernel's time");
  result.device_ns = static_cast<double>(time.end - time.start) * 1e9 / static_cast<double>(ticks_per_second_);
  // The kernel ran between our doorbell and the fence's signal: no honest clock says more than that took.
  constexpr double clock_error = 1.05, clock_step_ns = 20'000;
  if (time.end < time.start || result.device_ns > result.host_ns * clock_error + clock_step_ns)
    result.end = LaunchEnd::tampered;
  return result;
}

void Device::flush_caches() {
  const HsaApi& api = hsa();
  if (flush_buffer_ == nullptr) {
    std::uint32_t caches[4] = {};
    api.hsa_agent_get_info(dispatch_agent().handle, HSA_AGENT_INFO_CACHE_SIZE, caches);
    constexpr std::uint64_t least = 8u << 20;  // the largest L2 of the GPUs that report nothing
    flush_bytes_ = std::max<std::uint64_t>(2 * *std::max_element(std::begin(caches), std::end(caches)), least);
    Placement anywhere;
    anywhere.agent = dispatch_agent_;
    check(api.hsa_amd_memory_pool_allocate(pool(anywhere).handle, flush_bytes_, 0, &flush_buffer_),
          "allocating a buffer to flush the caches");
  }
  check(api.hsa_amd_memory_fill(flush_buffer_, ++flush_value_, flush_bytes_ / 4), "flushing the caches");
}

}  // namespace kerncap::replay
