#include "capture/runtime_table.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace kerncap::capture {
namespace {

template <typename Part>
Part* part_of(AmdExtTable& live, std::size_t offset) {
  if (live.version.minor_id < offset + sizeof(Part)) return nullptr;
  return reinterpret_cast<Part*>(reinterpret_cast<char*>(&live) + offset);
}

}  // namespace

RuntimeTable& runtime() {
  static RuntimeTable* const table = new RuntimeTable;
  return *table;
}

bool amd_layout_is_known(const ApiTableVersion& version) {
  if (version.major_id == 1)
    return version.minor_id == amd_table_size(48) || version.minor_id == amd_table_size(51) ||
           version.minor_id == amd_table_size(55);
  return version.major_id == 2 && version.minor_id >= amd_table_size(67);
}

AmdMiddle* live_middle(AmdExtTable& live) {
  return has_middle(live.version) ? part_of<AmdMiddle>(live, amd_middle_offset) : nullptr;
}
AmdTail* live_tail(AmdExtTable& live) {
  // Before version 2 other entries stood there.
  if (live.version.major_id < 2) return nullptr;
  return part_of<AmdTail>(live,
                          static_cast<std::size_t>(static_cast<std::ptrdiff_t>(amd_common_end) + amd_shift(live)));
}

void copy_amd_table(AmdExtTable& ours, const AmdExtTable& live) {
  auto* to = reinterpret_cast<char*>(&ours);
  const auto* from = reinterpret_cast<const char*>(&live);
  std::memcpy(to, from, amd_middle_offset);
  std::memcpy(to + amd_behind_middle, from + amd_behind_middle + amd_shift(live), amd_common_end - amd_behind_middle);
}

std::string remember_tables(HsaApiTable& table) {
  if (table.core_ == nullptr || table.amd_ext_ == nullptr) return "this HSA runtime hands out no function tables";
  const auto unknown = [](const char* which, const ApiTableVersion& v) {
    return fmt::format(
        "this HSA runtime's {} function table (version {}, {} bytes) is of a layout that this version of Kerncap does "
        "not know; a newer Kerncap may",
        which, v.major_id, v.minor_id);
  };
  if (table.core_->version.major_id > 2) return unknown("core", table.core_->version);
  if (!amd_layout_is_known(table.amd_ext_->version)) return unknown("AMD", table.amd_ext_->version);
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
    return "this HSA runtime's function tables lack what a capture needs";
  runtime() = fresh;
  return {};
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
