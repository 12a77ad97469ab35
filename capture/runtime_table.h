// The HSA runtime's function tables as they were before we replaced entries: everything of ours calls the runtime
// through here, never through the table, so that our own allocations, copies and queues are not intercepted.
//
// Table layouts differ between releases. `version.minor_id` is the size of a table in bytes; an entry that lies beyond
// it does not exist. Up to hsa_amd_svm_prefetch_async the AMD table is the same in ROCr 5.2 and 6.4; from there on the
// layout of major version 2 (hsa_api_trace.h of ROCr 6.0 and later) is spelled out in AmdTail, whatever headers we are
// built with.
#pragma once

// hsa_api_trace.h includes "inc/hsa_ext_amd.h" unless this is defined; distributions install no such folder.
#ifndef AMD_INTERNAL_BUILD
#define AMD_INTERNAL_BUILD
#endif
#include <hsa_api_trace.h>
#include <hsa_ven_amd_loader.h>

#include <cstddef>
#include <cstdint>

namespace kerncap::capture {

// hsa_amd_vmem_alloc_handle_t and hsa_amd_memory_access_desc_t of ROCr 6; 5.2's headers have neither.
struct VmemHandle {
  std::uint64_t handle;
};

struct AmdTail {
  void* spm_acquire;
  void* spm_release;
  void* spm_set_dest_buffer;
  void* queue_cu_get_mask;
  void* portable_export_dmabuf;
  void* portable_close_dmabuf;
  hsa_status_t (*vmem_address_reserve)(void** va, std::size_t size, std::uint64_t address, std::uint64_t flags);
  hsa_status_t (*vmem_address_free)(void* va, std::size_t size);
  hsa_status_t (*vmem_handle_create)(hsa_amd_memory_pool_t pool, std::size_t size, int type, std::uint64_t flags,
                                     VmemHandle* handle);
  hsa_status_t (*vmem_handle_release)(VmemHandle handle);
  hsa_status_t (*vmem_map)(void* va, std::size_t size, std::size_t offset, VmemHandle handle, std::uint64_t flags);
  hsa_status_t (*vmem_unmap)(void* va, std::size_t size);
};
inline constexpr std::size_t amd_tail_offset =
    offsetof(AmdExtTable, hsa_amd_svm_prefetch_async_fn) + sizeof(void*);  // ROCr 6: spm_acquire

struct RuntimeTable {
  CoreApiTable core{};  // entries beyond the runtime's table are null
  AmdExtTable amd{};
  AmdTail tail{};
  hsa_ven_amd_loader_1_01_pfn_t loader{};  // null until ask_for_loader()
  bool has_tail = false;
};

// The one instance; never destroyed, because the runtime's threads may outlive static destructors.
RuntimeTable& runtime();

// Copies the tables. Returns false when an entry that we cannot do without is missing; nothing is replaced then.
bool remember_tables(HsaApiTable& table);

// The loader extension; false when the runtime has none. May be called after hsa_init's end only.
bool ask_for_loader();

// Where an entry of the live table may be replaced: null when the runtime's table ends before it.
template <typename Table, typename Function>
Function* entry(Table& table, Function Table::*member) {
  Function* place = &(table.*member);
  const auto end = reinterpret_cast<const char*>(place + 1) - reinterpret_cast<const char*>(&table);
  return static_cast<std::size_t>(end) <= table.version.minor_id && *place != nullptr ? place : nullptr;
}

// The tail of the live AMD table, or null.
AmdTail* live_tail(AmdExtTable& table);

}  // namespace kerncap::capture
