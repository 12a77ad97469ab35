#include "replay/hsa_api.h"

#include <dlfcn.h>

#include <cstdlib>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

using support::ExitCode;
using support::fail;

template <typename Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

HsaApi& mutable_api() {
  static HsaApi* const api = [] {
    const char* const chosen = std::getenv("KERNCAP_HSA_LIBRARY");
    const char* const name = chosen != nullptr ? chosen : "libhsa-runtime64.so.1";
    void* library = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr && chosen == nullptr) {
      // The usual place of AMD's own packages, which the dynamic loader may not know.
      library = ::dlopen("/opt/rocm/lib/libhsa-runtime64.so.1", RTLD_NOW | RTLD_GLOBAL);
    }
    if (library == nullptr) {
      const char* const reason = ::dlerror();
      fail(ExitCode::environment,
           "the ROCm runtime cannot be loaded ({}); install it or add its folder to LD_LIBRARY_PATH",
           reason != nullptr ? reason : name);
    }
    auto* result = new HsaApi;  // never freed: the runtime outlives main()
#define KERNCAP_HSA_LOAD(name)                                                                               \
  if (!look_up(library, #name, result->name)) {                                                              \
    fail(ExitCode::environment, "the ROCm runtime has no function '{}'; it is too old for a replay", #name); \
  }
    KERNCAP_HSA_FUNCTIONS(KERNCAP_HSA_LOAD)
#undef KERNCAP_HSA_LOAD
    look_up(library, "hsa_amd_vmem_address_reserve", result->hsa_amd_vmem_address_reserve);
    look_up(library, "hsa_amd_vmem_handle_create", result->hsa_amd_vmem_handle_create);
    look_up(library, "hsa_amd_vmem_map", result->hsa_amd_vmem_map);
    look_up(library, "hsa_amd_vmem_set_access", result->hsa_amd_vmem_set_access);
    return result;
  }();
  return *api;
}

}  // namespace

const HsaApi& hsa() { return mutable_api(); }

void start_hsa() {
  HsaApi& api = mutable_api();
  const hsa_status_t status = api.hsa_init();
  if (status != HSA_STATUS_SUCCESS) {
    fail(ExitCode::environment,
         "the ROCm runtime does not start ({}); is there a GPU, and may this user open /dev/kfd? Without one, "
         "--softgpu runs the replay on the software GPU",
         status_text(status));
  }
  check(api.hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof api.loader, &api.loader),
        "asking the runtime for its loader extension");
}

std::string status_text(hsa_status_t status) {
  const char* text = nullptr;
  if (hsa().hsa_status_string(status, &text) == HSA_STATUS_SUCCESS && text != nullptr) return text;
  return "status " + std::to_string(static_cast<unsigned>(status));
}

void check(hsa_status_t status, const std::string& what) {
  if (status != HSA_STATUS_SUCCESS) fail(ExitCode::environment, "{} failed: {}", what, status_text(status));
}

}  // namespace kerncap::replay
