// The HSA runtime's function tables as they were before we replaced entries: everything of ours calls the runtime
// through here, never through the table, so that our own allocations, copies and queues are not intercepted.
//
// Table layouts differ between releases. `version.minor_id` is the size of a table in bytes; an entry that lies beyond
// it does not exist. The core table has been the same from ROCr 5.0 to 7. The AMD table (hsa_api_trace.h of each tag of
// ROCR-Runtime) has had these:
//
//   major 1, 48 entries   5.0 to 5.4   the common part, hsa_amd_queue_cu_get_mask
//   major 1, 51           5.5          spm_* before hsa_amd_queue_cu_get_mask
//   major 1, 55           5.6, 5.7     two entries more in its middle (AmdMiddle), behind hsa_amd_memory_async_copy;
//   dmabuf major 2, 67 and more  6.0 to 7     vmem_* behind that; every later release only appended
//
// The parts that 5.2's headers lack are spelled out below, so that a library built with the headers of any of these
// works with the runtime of any other. Other layouts are refused: in a new major version nothing is known to be where
// it was.
#pragma once

// hsa_api_trace.h includes "inc/hsa_ext_amd.h" unless this is defined; distributions install no such folder.
#ifndef AMD_INTERNAL_BUILD
#define AMD_INTERNAL_BUILD
#endif
#include <hsa_api_trace.h>
#include <hsa_ven_amd_loader.h>

#include <cstddef>
#include <cstdint>
#include <string>
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

// In the layout of the headers that we are built with.
inline constexpr std::size_t amd_middle_offset = offsetof(AmdExtTable, hsa_amd_memory_async_copy_fn) + sizeof(void*);
inline constexpr std::size_t amd_behind_middle = offsetof(AmdExtTable, hsa_amd_agent_memory_pool_get_info_fn);
inline constexpr std::size_t amd_common_end = offsetof(AmdExtTable, hsa_amd_svm_prefetch_async_fn) + sizeof(void*);
static_assert(amd_behind_middle == amd_middle_offset || amd_behind_middle == amd_middle_offset + sizeof(AmdMiddle));

constexpr std::uint32_t amd_table_size(std::size_t entries) {
  return static_cast<std::uint32_t>(sizeof(ApiTableVersion) + entries * sizeof(void*));
}

bool amd_layout_is_known(const ApiTableVersion& version);
constexpr bool has_middle(const ApiTableVersion& version) {
  return version.major_id >= 2 || version.minor_id >= amd_table_size(55);
}

// How far the entries behind AmdMiddle lie from where our headers say.
inline std::ptrdiff_t amd_shift(const AmdExtTable& live) {
  constexpr auto ours = static_cast<std::ptrdiff_t>(amd_behind_middle - amd_middle_offset);
  return (has_middle(live.version) ? static_cast<std::ptrdiff_t>(sizeof(AmdMiddle)) : 0) - ours;
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

// Copies the tables. When an entry that we cannot do without is missing, or a layout is unknown, the result says so and
// nothing may be replaced; otherwise it is empty.
std::string remember_tables(HsaApiTable& table);

// The loader extension; false when the runtime has none. May be called after hsa_init's end only.
bool ask_for_loader();

// Where an entry of the live table may be replaced: null when the runtime's table has none.
template <typename Table, typename Function>
Function* entry(Table& live, Function Table::*member) {
  auto* place = reinterpret_cast<char*>(&(live.*member));
  if constexpr (std::is_same_v<Table, AmdExtTable>) {
    const auto offset = static_cast<std::size_t>(place - reinterpret_cast<char*>(&live));
    if (offset >= amd_common_end) return nullptr;
    if (offset >= amd_behind_middle) place += amd_shift(live);
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
