#include "capture/runtime_table.h"

#include <algorithm>
#include <cstring>

namespace kerncap::capture {
namespace {

constexpr std::uint32_t first_major_with_tail = 2;  // HSA_AMD_EXT_API_TABLE_MAJOR_VERSION of ROCr 6.0

template <typename Table>
void copy_known_part(Table& target, const Table& source) {
  std::memcpy(static_cast<void*>(&target), &source, std::min<std::size_t>(sizeof target, source.version.minor_id));
}

}  // namespace

RuntimeTable& runtime() {
  static RuntimeTable* const table = new RuntimeTable;
  return *table;
}

AmdTail* live_tail(AmdExtTable& table) {
  if (table.version.major_id < first_major_with_tail || table.version.minor_id < amd_tail_offset + sizeof(AmdTail))
    return nullptr;
  return reinterpret_cast<AmdTail*>(reinterpret_cast<char*>(&table) + amd_tail_offset);
}

bool remember_tables(HsaApiTable& table) {
  if (table.core_ == nullptr || table.amd_ext_ == nullptr) return false;
  RuntimeTable fresh;
  copy_known_part(fresh.core, *table.core_);
  copy_known_part(fresh.amd, *table.amd_ext_);
  if (const AmdTail* tail = live_tail(*table.amd_ext_)) {
    fresh.tail = *tail;
    fresh.has_tail = true;
  }
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
