#include "softgpu/device.h"

#include <dlfcn.h>
#include <linux/kfd_ioctl.h>

#include <cstring>
#include <ctime>

namespace kerncap::softgpu {
namespace {

constexpr const char* interpreter_library = "libkerncap-softgpu-isa.so";

// The interpreter lies beside this library. RTLD_LOCAL: it brings an LLVM that must not meet the one inside
// comgr. RTLD_DEEPBIND is left out, because it would give it another malloc than the application's.
IsaEntryPoint load_interpreter(std::string* problem) {
  Dl_info here{};
  static const char anchor = 0;
  if (dladdr(&anchor, &here) == 0 || here.dli_fname == nullptr) {
    *problem = "the software GPU cannot find its own library";
    return nullptr;
  }
  std::string path = here.dli_fname;
  const std::size_t slash = path.rfind('/');
  path = (slash == std::string::npos ? std::string() : path.substr(0, slash + 1)) + interpreter_library;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    *problem = std::string("the software GPU cannot load its instruction interpreter: ") + dlerror();
    return nullptr;
  }
  auto entry = reinterpret_cast<IsaEntryPoint>(dlsym(library, isa_entry_point));
  if (entry == nullptr) *problem = path + " is not the software GPU's instruction interpreter";
  return entry;
}

}  // namespace

std::uint64_t system_nanoseconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

bool Device::charge(std::uint64_t bytes) noexcept {
  if (bytes > vram) return false;
  // First ours, then the look at everybody's: of two processes that want the last bytes at the same time both may be
  // refused, but never both get them.
  own_usage().fetch_add(bytes);
  if (used() <= vram) return true;
  own_usage().fetch_sub(bytes);
  return false;
}

std::shared_ptr<Buffer> Device::doorbell_page() {
  const std::lock_guard lock(mutex);
  if (doorbells == nullptr) {
    doorbells =
        Buffer::create(this, doorbell_bytes, KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE);
    if (doorbells != nullptr) std::memset(doorbells->alias(), 0xff, doorbell_bytes);
  }
  return doorbells;
}

int Device::take_doorbell() {
  const auto page = doorbell_page();
  if (page == nullptr) return -1;
  const std::lock_guard lock(mutex);
  for (unsigned slot = 0; slot < doorbell_count; ++slot) {
    if (doorbell_taken[slot]) continue;
    doorbell_taken[slot] = true;
    // The first packet has index 0, so "nothing rung yet" is all ones.
    std::memset(page->alias() + slot * 8, 0xff, 8);
    return static_cast<int>(slot);
  }
  return -1;
}

void Device::give_doorbell(int slot) {
  const std::lock_guard lock(mutex);
  doorbell_taken[slot] = false;
}

InstructionSet* Device::instructions(std::string* problem) {
  const std::lock_guard lock(mutex);
  if (instructions_ == nullptr) {
    const IsaEntryPoint entry = load_interpreter(problem);
    if (entry == nullptr) return nullptr;
    const char* error = nullptr;
    instructions_.reset(entry(isa_interface_version, architecture->processor, &error));
    if (instructions_ == nullptr)
      *problem = std::string(architecture->processor) + ": " + (error != nullptr ? error : "refused");
  }
  return instructions_.get();
}

}  // namespace kerncap::softgpu
