// The HSA runtime's function tables as they were before we replaced entries: everything of ours calls the runtime
// through here, never through the table, so that our own allocations, copies and queues are not intercepted.
//
// Table layouts differ between releases. `version.minor_id` is the size of a table in bytes; an entry that lies beyond
// it does not exist. The core table has been the same from ROCr 5.2 to 6.4. The AMD table's major version 2 (ROCr 6)
// has two entries more in its middle, behind hsa_amd_memory_async_copy, and new ones at its end: they are spelled out
// below, so that a library built with the headers of either generation works in both. Other layouts are refused.
#pragma once

// hsa_api_trace.h includes "inc/hsa_ext_amd.h" unless this is defined; distributions install no such folder.
#ifndef AMD_INTERNAL_BUILD
#define AMD_INTERNAL_BUILD
#endif
#include <hsa_api_trace.h>
#include <hsa_ven_amd_loader.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

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
struct AmdMiddle {
  hsa_status_t (*memory_async_copy_on_engine)(void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent,
                                              std::size_t size, std::uint32_t count, const hsa_signal_t* dependencies,
                                              hsa_signal_t completion, int engine, bool force);
  void* memory_copy_engine_status;
};

inline constexpr std::uint32_t header_major = HSA_AMD_EXT_API_TABLE_MAJOR_VERSION;  // of the headers we are built with
inline constexpr std::size_t amd_middle_offset = offsetof(AmdExtTable, hsa_amd_memory_async_copy_fn) + sizeof(void*);
inline constexpr std::size_t amd_common_end = offsetof(AmdExtTable, hsa_amd_svm_prefetch_async_fn) + sizeof(void*);

// How far the entries behind AmdMiddle lie from where our headers say.
inline std::size_t amd_shift(const AmdExtTable& live) {
  return header_major < 2 && live.version.major_id >= 2 ? sizeof(AmdMiddle) : 0;
}

struct RuntimeTable {
  CoreApiTable core{};  // entries beyond the runtime's table are null
  AmdExtTable amd{};    // in our headers' layout
  AmdMiddle middle{};
  AmdTail tail{};
  hsa_ven_amd_loader_1_01_pfn_t loader{};  // null until ask_for_loader()
};

// The one instance; never destroyed, because the runtime's threads may outlive static destructors.
RuntimeTable& runtime();

// Copies the tables. Returns false when an entry that we cannot do without is missing; nothing is replaced then.
bool remember_tables(HsaApiTable& table);

// The loader extension; false when the runtime has none. May be called after hsa_init's end only.
bool ask_for_loader();

// Where an entry of the live table may be replaced: null when the runtime's table has none.
template <typename Table, typename Function>
Function* entry(Table& live, Function Table::*member) {
  auto* place = reinterpret_cast<char*>(&(live.*member));
  if constexpr (std::is_same_v<Table, AmdExtTable>) {
    const auto offset = static_cast<std::size_t>(place - reinterpret_cast<char*>(&live));
    if (offset >= amd_common_end) return nullptr;
    if (offset >= amd_middle_offset) place += amd_shift(live);
  }
  auto* function = reinterpret_cast<Function*>(place);
  const auto end = reinterpret_cast<const char*>(function + 1) - reinterpret_cast<const char*>(&live);
  return static_cast<std::size_t>(end) <= live.version.minor_id && *function != nullptr ? function : nullptr;
}

// The parts of the live AMD table that 5.2 lacks, or null.
AmdMiddle* live_middle(AmdExtTable& live);
AmdTail* live_tail(AmdExtTable& live);

// The part that both generations have, into our headers' layout.
void copy_amd_table(AmdExtTable& ours, const AmdExtTable& live);

}  // namespace kerncap::capture
