#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "capture/tests/stand_in_parts.h"

namespace kerncap::capture::testing {

void* pages(std::size_t size) {
  void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

namespace {

// ---- the machine --------------------------------------------------------------------------------------------------

hsa_status_t system_get_info(hsa_system_info_t what, void* out) {
  KERNCAP_COUNT();
  if (what == HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY) return put(out, std::uint64_t{1000000000});
  if (what == HSA_SYSTEM_INFO_VERSION_MAJOR || what == HSA_SYSTEM_INFO_VERSION_MINOR) return put(out, std::uint16_t{1});
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
hsa_status_t iterate_agents(hsa_status_t (*callback)(hsa_agent_t, void*), void* data) {
  KERNCAP_COUNT();
  callback(cpu, data);
  callback(gpu, data);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t agent_get_info(hsa_agent_t agent, hsa_agent_info_t what, void* out) {
  KERNCAP_COUNT();
  if (what == HSA_AGENT_INFO_DEVICE)
    return put(out, agent.handle == gpu.handle ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU);
  if (what == HSA_AGENT_INFO_NAME) {
    std::strcpy(static_cast<char*>(out), "gfx90a");
    return HSA_STATUS_SUCCESS;
  }
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
hsa_status_t agent_iterate_isas(hsa_agent_t, hsa_status_t (*)(hsa_isa_t, void*), void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t isa_get_info_alt(hsa_isa_t, hsa_isa_info_t, void*) { return HSA_STATUS_ERROR; }
hsa_status_t iterate_pools(hsa_agent_t agent, hsa_status_t (*callback)(hsa_amd_memory_pool_t, void*), void* data) {
  KERNCAP_COUNT();
  if (agent.handle == cpu.handle)
    for (const std::uint64_t pool : {host_fine, host_coarse}) callback({pool}, data);
  else
    for (const std::uint64_t pool : {device_coarse, device_fine, device_extended}) callback({pool}, data);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t pool_get_info(hsa_amd_memory_pool_t pool, hsa_amd_memory_pool_info_t what, void* out) {
  KERNCAP_COUNT();
  switch (what) {
    case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
      return put(out, HSA_AMD_SEGMENT_GLOBAL);
    case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
      return put(out, std::uint32_t{pool.handle == host_coarse || pool.handle == device_coarse ? 4u
                                    : pool.handle == device_extended                           ? 8u
                                                                                               : 2u});
    case HSA_AMD_MEMORY_POOL_INFO_SIZE:
      return put(out, std::size_t{1} << 30);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
      return put(out, true);
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

// ---- memory -------------------------------------------------------------------------------------------------------

hsa_status_t pool_allocate(hsa_amd_memory_pool_t, std::size_t size, std::uint32_t, void** out) {
  KERNCAP_COUNT();
  *out = pages(size);
  return *out != nullptr ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}
hsa_status_t pool_free(void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;  // the pages stay, so that a stale read shows as wrong content and not as a crash
}
hsa_status_t memory_allocate(hsa_region_t, std::size_t size, void** out) {
  KERNCAP_COUNT();
  *out = pages(size);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_free(void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_copy(void* to, const void* from, std::size_t size) {
  KERNCAP_COUNT();
  std::memcpy(to, from, size);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t allow_access(std::uint32_t, const hsa_agent_t*, const std::uint32_t*, const void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_lock(void* host, std::size_t, hsa_agent_t*, int, void** out) {
  KERNCAP_COUNT();
  *out = host;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_lock_to_pool(void* host, std::size_t, hsa_agent_t*, int, hsa_amd_memory_pool_t, std::uint32_t,
                                 void** out) {
  KERNCAP_COUNT();
  *out = host;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_unlock(void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t svm_attributes_set(void*, std::size_t, hsa_amd_svm_attribute_pair_t*, std::size_t) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t pointer_info(const void*, hsa_amd_pointer_info_t* info, void* (*)(std::size_t), std::uint32_t*,
                          hsa_agent_t**) {
  KERNCAP_COUNT();
  info->agentOwner = gpu;
  info->global_flags = 4;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t ipc_attach(const hsa_amd_ipc_memory_t*, std::size_t size, std::uint32_t, const hsa_agent_t*, void** out) {
  KERNCAP_COUNT();
  *out = pages(size);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t ipc_detach(void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t interop_map(std::uint32_t, hsa_agent_t*, int, std::uint32_t, std::size_t* size, void** out, std::size_t*,
                         const void**) {
  KERNCAP_COUNT();
  *size = 128 << 10;
  *out = pages(*size);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t interop_unmap(void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t vmem_handle_create(hsa_amd_memory_pool_t, std::size_t, int, std::uint64_t, VmemHandle* out) {
  KERNCAP_COUNT();
  static std::uint64_t next = 1;
  out->handle = next++;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t vmem_map(void*, std::size_t, std::size_t, VmemHandle, std::uint64_t) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t vmem_unmap(void*, std::size_t) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t async_copy(void* to, hsa_agent_t, const void* from, hsa_agent_t, std::size_t size, std::uint32_t,
                        const hsa_signal_t*, hsa_signal_t completion) {
  KERNCAP_COUNT();
  std::memcpy(to, from, size);
  complete(completion);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_fill(void* to, std::uint32_t value, std::size_t count) {
  KERNCAP_COUNT();
  std::fill_n(static_cast<std::uint32_t*>(to), count, value);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t async_copy_on_engine(void* to, hsa_agent_t, const void* from, hsa_agent_t, std::size_t size, std::uint32_t,
                                  const hsa_signal_t*, hsa_signal_t completion, int, bool) {
  KERNCAP_COUNT();
  std::memcpy(to, from, size);
  complete(completion);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t async_copy_rect(const hsa_pitched_ptr_t* to, const hsa_dim3_t*, const hsa_pitched_ptr_t* from,
                             const hsa_dim3_t*, const hsa_dim3_t* range, hsa_agent_t, hsa_amd_copy_direction_t,
                             std::uint32_t, const hsa_signal_t*, hsa_signal_t completion) {
  KERNCAP_COUNT();
  std::memcpy(to->base, from->base, range->x);
  complete(completion);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t profiling_enable(hsa_queue_t*, int) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t profiling_time(hsa_agent_t, hsa_signal_t, hsa_amd_profiling_dispatch_time_t* out) {
  KERNCAP_COUNT();
  *out = {1000, 3500};
  return HSA_STATUS_SUCCESS;
}
hsa_status_t event_handler(hsa_amd_system_event_callback_t, void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}

}  // namespace

void fill_machine(CoreApiTable& core, AmdExtTable& amd, AmdMiddle& middle, AmdTail& tail) {
  core.hsa_system_get_info_fn = system_get_info;
  core.hsa_iterate_agents_fn = iterate_agents;
  core.hsa_agent_get_info_fn = agent_get_info;
  core.hsa_agent_iterate_isas_fn = agent_iterate_isas;
  core.hsa_isa_get_info_alt_fn = isa_get_info_alt;
  amd.hsa_amd_agent_iterate_memory_pools_fn = iterate_pools;
  amd.hsa_amd_memory_pool_get_info_fn = pool_get_info;
  core.hsa_memory_allocate_fn = memory_allocate;
  core.hsa_memory_free_fn = memory_free;
  core.hsa_memory_copy_fn = memory_copy;
  amd.hsa_amd_memory_pool_allocate_fn = pool_allocate;
  amd.hsa_amd_memory_pool_free_fn = pool_free;
  amd.hsa_amd_agents_allow_access_fn = allow_access;
  amd.hsa_amd_memory_lock_fn = memory_lock;
  amd.hsa_amd_memory_lock_to_pool_fn = memory_lock_to_pool;
  amd.hsa_amd_memory_unlock_fn = memory_unlock;
  amd.hsa_amd_svm_attributes_set_fn = svm_attributes_set;
  amd.hsa_amd_pointer_info_fn = pointer_info;
  amd.hsa_amd_ipc_memory_attach_fn = ipc_attach;
  amd.hsa_amd_ipc_memory_detach_fn = ipc_detach;
  amd.hsa_amd_interop_map_buffer_fn = interop_map;
  amd.hsa_amd_interop_unmap_buffer_fn = interop_unmap;
  amd.hsa_amd_memory_async_copy_fn = async_copy;
  amd.hsa_amd_memory_async_copy_rect_fn = async_copy_rect;
  amd.hsa_amd_memory_fill_fn = memory_fill;
  amd.hsa_amd_profiling_set_profiler_enabled_fn = profiling_enable;
  amd.hsa_amd_profiling_get_dispatch_time_fn = profiling_time;
  amd.hsa_amd_register_system_event_handler_fn = event_handler;
  middle.memory_async_copy_on_engine = async_copy_on_engine;
  tail.vmem_handle_create = vmem_handle_create;
  tail.vmem_map = vmem_map;
  tail.vmem_unmap = vmem_unmap;
}

}  // namespace kerncap::capture::testing
