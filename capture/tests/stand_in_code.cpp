#include <algorithm>
#include <cstring>
#include <optional>

#include "capture/tests/stand_in_parts.h"

namespace kerncap::capture::testing {
namespace {

// ---- code ---------------------------------------------------------------------------------------------------------

struct Executable {
  std::vector<std::byte> bytes;
  std::byte* base = nullptr;
  std::vector<StandInKernel> kernels;
};
std::optional<Executable> executable;
constexpr std::uint64_t loaded_size = 8192;

hsa_status_t executable_freeze(hsa_executable_t, const char*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t executable_destroy(hsa_executable_t) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t reader_create(const void*, std::size_t, hsa_code_object_reader_t* out) {
  KERNCAP_COUNT();
  out->handle = 71;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t reader_destroy(hsa_code_object_reader_t) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t iterate_agent_symbols(hsa_executable_t e, hsa_agent_t a,
                                   hsa_status_t (*callback)(hsa_executable_t, hsa_agent_t, hsa_executable_symbol_t,
                                                            void*),
                                   void* data) {
  KERNCAP_COUNT();
  for (std::size_t i = 0; i < executable->kernels.size(); ++i) callback(e, a, {i}, data);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t symbol_get_info(hsa_executable_symbol_t symbol, hsa_executable_symbol_info_t what, void* out) {
  KERNCAP_COUNT();
  const StandInKernel& kernel = executable->kernels.at(symbol.handle);
  switch (what) {
    case HSA_EXECUTABLE_SYMBOL_INFO_TYPE:
      return put(out, HSA_SYMBOL_KIND_KERNEL);
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH:
      return put(out, static_cast<std::uint32_t>(kernel.symbol.size()));
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME:
      std::memcpy(out, kernel.symbol.data(), kernel.symbol.size());
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
      return put(out, reinterpret_cast<std::uint64_t>(executable->base) + 64 * (symbol.handle + 1));
    default:
      return put(out, std::uint32_t{16});
  }
}
hsa_status_t loader_iterate(hsa_executable_t e,
                            hsa_status_t (*callback)(hsa_executable_t, hsa_loaded_code_object_t, void*), void* data) {
  KERNCAP_COUNT();
  callback(e, {1}, data);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t loader_info(hsa_loaded_code_object_t, hsa_ven_amd_loader_loaded_code_object_info_t what, void* out) {
  KERNCAP_COUNT();
  switch (what) {
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT:
      return put(out, gpu);
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE:
      return put(out, executable->base);
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE:
      return put(out, loaded_size);
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA:
      return put(out, executable->base);
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE:
      return put(out, std::uint32_t{HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY});
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE:
      return put(out, executable->bytes.data());
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE:
      return put(out, std::uint64_t{executable->bytes.size()});
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}
hsa_status_t extension_table(std::uint16_t, std::uint16_t, std::size_t, void* out) {
  KERNCAP_COUNT();
  hsa_ven_amd_loader_1_01_pfn_t loader{};
  loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects = loader_iterate;
  loader.hsa_ven_amd_loader_loaded_code_object_get_info = loader_info;
  return put(out, loader);
}

}  // namespace

void fill_code(CoreApiTable& core) {
  core.hsa_system_get_major_extension_table_fn = extension_table;
  core.hsa_executable_freeze_fn = executable_freeze;
  core.hsa_executable_destroy_fn = executable_destroy;
  core.hsa_executable_iterate_agent_symbols_fn = iterate_agent_symbols;
  core.hsa_executable_symbol_get_info_fn = symbol_get_info;
  core.hsa_code_object_reader_create_from_memory_fn = reader_create;
  core.hsa_code_object_reader_destroy_fn = reader_destroy;
}

std::vector<std::uint64_t> load_code(CoreApiTable& core, const std::vector<std::byte>& bytes,
                                     const std::vector<StandInKernel>& all) {
  executable = Executable{bytes, static_cast<std::byte*>(pages(loaded_size)), all};
  std::vector<std::uint64_t> objects;
  for (std::size_t i = 0; i < all.size(); ++i) {
    objects.push_back(reinterpret_cast<std::uint64_t>(executable->base) + 64 * (i + 1));
    set_kernel(objects.back(), all[i].run);
  }
  hsa_code_object_reader_t reader{};
  core.hsa_code_object_reader_create_from_memory_fn(executable->bytes.data(), executable->bytes.size(), &reader);
  core.hsa_executable_freeze_fn({81}, nullptr);
  return objects;
}

void overwrite_code() { std::fill(executable->bytes.begin(), executable->bytes.end(), std::byte{0xff}); }

}  // namespace kerncap::capture::testing
