#include "capture/runtime_table.h"

#include <algorithm>
#include <cstring>

namespace kerncap::capture {
namespace {

// Between 5.2 and 6.0 version 1 had several layouts; only 5.2's is known here, by its size.
bool layout_is_known(const AmdExtTable& live) {
  if (live.version.major_id == 1) return header_major == 1 && live.version.minor_id == sizeof(AmdExtTable);
  return live.version.major_id == 2 && live.version.minor_id >= amd_common_end + amd_shift(live);
}

template <typename Part>
Part* part_of(AmdExtTable& live, std::size_t offset) {
  if (live.version.major_id < 2 || live.version.minor_id < offset + sizeof(Part)) return nullptr;
  return reinterpret_cast<Part*>(reinterpret_cast<char*>(&live) + offset);
}

}  // namespace

RuntimeTable& runtime() {
  static RuntimeTable* const table = new RuntimeTable;
  return *table;
}

AmdMiddle* live_middle(AmdExtTable& live) { return part_of<AmdMiddle>(live, amd_middle_offset); }
AmdTail* live_tail(AmdExtTable& live) { return part_of<AmdTail>(live, amd_common_end + amd_shift(live)); }

void copy_amd_table(AmdExtTable& ours, const AmdExtTable& live) {
  auto* to = reinterpret_cast<char*>(&ours);
  const auto* from = reinterpret_cast<const char*>(&live);
  std::memcpy(to, from, amd_middle_offset);
  std::memcpy(to + amd_middle_offset, from + amd_middle_offset + amd_shift(live), amd_common_end - amd_middle_offset);
}

bool remember_tables(HsaApiTable& table) {
  if (table.core_ == nullptr || table.amd_ext_ == nullptr) return false;
  if (!layout_is_known(*table.amd_ext_)) return false;
  RuntimeTable fresh;
  std::memcpy(static_cast<void*>(&fresh.core), table.core_,
              std::min<std::size_t>(sizeof fresh.core, table.core_->version.minor_id));
  copy_amd_table(fresh.amd, *table.amd_ext_);
  if (const AmdMiddle* middle = live_middle(*table.amd_ext_)) fresh.middle = *middle;
  if (const AmdTail* tail = live_tail(*table.amd_ext_)) fresh.tail = *tail;
  const CoreApiTable& core = fresh.core;
  const AmdExtTable& amd = fresh.amd;
  if (core.hsa_queue_create_fn == nullptr || core.hsa_executable_freeze_fn == nullptr ||
      core.hsa_executable_iterate_agent_symbols_fn == nullptr || amd.hsa_amd_queue_intercept_create_fn == nullptr ||
      amd.hsa_amd_queue_intercept_register_fn == nullptr || amd.hsa_amd_memory_pool_allocate_fn == nullptr ||
      amd.hsa_amd_memory_async_copy_fn == nullptr || amd.hsa_amd_profiling_get_dispatch_time_fn == nullptr)
    return false;
  runtime() = fresh;
  return true;
}

bool ask_for_loader() {
  RuntimeTable& r = runtime();
  if (r.loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects != nullptr) return true;
  return r.core.hsa_system_get_major_extension_table_fn != nullptr &&
         r.core.hsa_system_get_major_extension_table_fn(HSA_EXTENSION_AMD_LOADER, 1, sizeof r.loader, &r.loader) ==
             HSA_STATUS_SUCCESS &&
         r.loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects != nullptr;
}

}  // namespace kerncap::capture
