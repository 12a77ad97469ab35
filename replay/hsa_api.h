// The ROCm runtime, loaded when it is wanted: after the captured address ranges are reserved, and with one clear
// sentence where it is missing. Functions that only newer runtimes have are null where they are absent.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>

#include <cstdint>
#include <string>

namespace kerncap::replay {

// The functions this program calls, by name, as declared in hsa.h and hsa_ext_amd.h.
#define KERNCAP_HSA_FUNCTIONS(X)               \
  X(hsa_init)                                  \
  X(hsa_status_string)                         \
  X(hsa_system_get_info)                       \
  X(hsa_system_get_major_extension_table)      \
  X(hsa_iterate_agents)                        \
  X(hsa_agent_get_info)                        \
  X(hsa_agent_iterate_isas)                    \
  X(hsa_isa_get_info_alt)                      \
  X(hsa_queue_create)                          \
  X(hsa_queue_add_write_index_relaxed)         \
  X(hsa_queue_load_read_index_scacquire)       \
  X(hsa_signal_create)                         \
  X(hsa_signal_store_screlease)                \
  X(hsa_signal_store_relaxed)                  \
  X(hsa_signal_wait_scacquire)                 \
  X(hsa_signal_load_relaxed)                   \
  X(hsa_memory_copy)                           \
  X(hsa_code_object_reader_create_from_memory) \
  X(hsa_executable_create_alt)                 \
  X(hsa_executable_load_agent_code_object)     \
  X(hsa_executable_freeze)                     \
  X(hsa_executable_destroy)                    \
  X(hsa_code_object_reader_destroy)            \
  X(hsa_executable_get_symbol_by_name)         \
  X(hsa_executable_symbol_get_info)            \
  X(hsa_amd_agent_iterate_memory_pools)        \
  X(hsa_amd_memory_pool_get_info)              \
  X(hsa_amd_memory_pool_allocate)              \
  X(hsa_amd_memory_pool_free)                  \
  X(hsa_amd_agents_allow_access)               \
  X(hsa_amd_memory_lock)                       \
  X(hsa_amd_memory_fill)                       \
  X(hsa_amd_memory_async_copy)                 \
  X(hsa_amd_profiling_set_profiler_enabled)    \
  X(hsa_amd_profiling_get_dispatch_time)       \
  X(hsa_amd_register_system_event_handler)

// From ROCm 6.0 on; declared here because older headers lack them (signatures from hsa_ext_amd.h 1.6).
struct VmemHandle {
  std::uint64_t handle;
};
struct VmemAccess {
  hsa_access_permission_t permissions;
  hsa_agent_t agent_handle;
};

struct HsaApi {
#define KERNCAP_HSA_MEMBER(name) decltype(&::name) name = nullptr;
  KERNCAP_HSA_FUNCTIONS(KERNCAP_HSA_MEMBER)
#undef KERNCAP_HSA_MEMBER
  hsa_status_t (*hsa_amd_vmem_address_reserve)(void** address, size_t size, uint64_t wanted, uint64_t flags) = nullptr;
  hsa_status_t (*hsa_amd_vmem_handle_create)(hsa_amd_memory_pool_t pool, size_t size, int type, uint64_t flags,
                                             VmemHandle* handle) = nullptr;
  hsa_status_t (*hsa_amd_vmem_map)(void* address, size_t size, size_t offset, VmemHandle handle,
                                   uint64_t flags) = nullptr;
  hsa_status_t (*hsa_amd_vmem_set_access)(void* address, size_t size, const VmemAccess* access, size_t count) = nullptr;
  hsa_ven_amd_loader_1_01_pfn_t loader{};  // filled after hsa_init()

  bool has_vmem() const {
    return hsa_amd_vmem_address_reserve != nullptr && hsa_amd_vmem_handle_create != nullptr &&
           hsa_amd_vmem_map != nullptr && hsa_amd_vmem_set_access != nullptr;
  }
};

// Opens libhsa-runtime64.so.1 (KERNCAP_HSA_LIBRARY names another file). Throws Error{environment}. Once a process.
const HsaApi& hsa();

// hsa_init() and the loader extension. Throws Error{environment}.
void start_hsa();

// Throws Error{environment} "what: the runtime's own words" unless status is success.
void check(hsa_status_t status, const std::string& what);
std::string status_text(hsa_status_t status);

}  // namespace kerncap::replay
