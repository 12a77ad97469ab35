#include "core/compdb/recorded_environment.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace kerncap::compdb {
namespace {

// clang's and gcc's manuals ("Environment Variables"), hipcc's --help, nvcc's manual.
constexpr std::string_view variables[] = {
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "OBJC_INCLUDE_PATH",
    "OBJCPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "GCC_COMPARE_DEBUG",
    "DEPENDENCIES_OUTPUT",
    "SUNPRO_DEPENDENCIES",
    "SOURCE_DATE_EPOCH",
    "CCC_OVERRIDE_OPTIONS",
    "CLANG_CONFIG_FILE_SYSTEM_DIR",
    "CLANG_CONFIG_FILE_USER_DIR",
    "CLANG_NO_DEFAULT_CONFIG",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "PWD",
    "HIP_PATH",
    "HIP_CLANG_PATH",
    "HIP_DEVICE_LIB_PATH",
    "HIP_PLATFORM",
    "HIP_COMPILER",
    "HIP_RUNTIME",
    "HIP_LIB_PATH",
    "HIP_ROCCLR_HOME",
    "ROCM_PATH",
    "HSA_PATH",
    "DEVICE_LIB_PATH",
    "HIPCC_COMPILE_FLAGS_APPEND",
    "HIPCC_LINK_FLAGS_APPEND",
    "HIPCC_VERBOSE",
    "HCC_AMDGPU_TARGET",
    "HIP_CLANG_HCC_COMPAT_MODE",
    "CLANG_TOOLCHAIN_PATH",
    "CUDA_PATH",
    "CUDA_HOME",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "PATH",
};

}  // namespace

std::vector<std::pair<std::string, std::string>> steering_variables(const char* const* environment) {
  std::array<const char*, std::size(variables)> values{};
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    const char* const equals = std::strchr(*entry, '=');
    if (equals == nullptr) continue;
    const std::string_view name(*entry, static_cast<std::size_t>(equals - *entry));
    const auto* found = std::ranges::find(variables, name);
    if (found == std::end(variables)) continue;
    const char*& value = values[static_cast<std::size_t>(found - std::begin(variables))];
    if (value == nullptr) value = equals + 1;  // the first of two is the one that getenv() finds
  }
  std::vector<std::pair<std::string, std::string>> found;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != nullptr) found.emplace_back(variables[i], values[i]);
  }
  return found;
}

}  // namespace kerncap::compdb
