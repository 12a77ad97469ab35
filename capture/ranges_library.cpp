// libkerncap-ranges.so: preloaded when a capture is limited to a ROCTX range. Stands before the four range functions of
// libroctx64 (roctx.h, version 4.1: roctxRangePushA, roctxRangePop, roctxRangeStartA, roctxRangeStop), notes the range
// and passes on. The names in the ABI are the library's, the rest is ours.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "capture/ranges.h"

namespace kerncap::capture {
namespace {

// The application's own library. It may have been opened with RTLD_LOCAL, where RTLD_NEXT does not look.
void* next(const char* function) {
  if (void* found = ::dlsym(RTLD_NEXT, function)) return found;
  for (const char* library : {"libroctx64.so.4", "libroctx64.so", "librocprofiler-sdk-roctx.so.1",
                              "librocprofiler-sdk-roctx.so.0", "librocprofiler-sdk-roctx.so"})
    if (void* handle = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD))
      if (void* found = ::dlsym(handle, function)) return found;
  return nullptr;
}

template <typename Function>
Function find(std::atomic<void*>& known, const char* name) {
  void* function = known.load(std::memory_order_acquire);
  if (function == nullptr) known.store(function = next(name), std::memory_order_release);
  return reinterpret_cast<Function>(function);
}

Ranges& watched() {
  static Ranges& all = [&]() -> Ranges& {
    if (const char* glob = std::getenv(range_variable)) ranges().watch(glob);
    return ranges();
  }();
  return all;
}

bool inside() { return watched().inside(); }

std::size_t names(char* lines, std::size_t size) {
  std::size_t used = 0;
  for (const std::string& name : watched().names()) {
    if (used + name.size() + 1 > size) break;
    std::memcpy(lines + used, name.data(), name.size());
    lines[used + name.size()] = '\n';
    used += name.size() + 1;
  }
  return used;
}

}  // namespace
}  // namespace kerncap::capture

#define KERNCAP_EXPORT extern "C" __attribute__((visibility("default")))

KERNCAP_EXPORT int roctxRangePushA(const char* message) {
  using namespace kerncap::capture;
  static std::atomic<void*> known{nullptr};
  const int level = watched().push(message);
  const auto real = find<int (*)(const char*)>(known, "roctxRangePushA");
  return real != nullptr ? real(message) : level;
}

KERNCAP_EXPORT int roctxRangePop() {
  using namespace kerncap::capture;
  static std::atomic<void*> known{nullptr};
  const int level = watched().pop();
  const auto real = find<int (*)()>(known, "roctxRangePop");
  return real != nullptr ? real() : level;
}

KERNCAP_EXPORT std::uint64_t roctxRangeStartA(const char* message) {
  using namespace kerncap::capture;
  static std::atomic<void*> known{nullptr};
  static std::atomic<std::uint64_t> own{0};
  const auto real = find<std::uint64_t (*)(const char*)>(known, "roctxRangeStartA");
  const std::uint64_t id = real != nullptr ? real(message) : ++own;
  watched().start(id, message);
  return id;
}

KERNCAP_EXPORT void roctxRangeStop(std::uint64_t id) {
  using namespace kerncap::capture;
  static std::atomic<void*> known{nullptr};
  watched().stop(id);
  if (const auto real = find<void (*)(std::uint64_t)>(known, "roctxRangeStop")) real(id);
}

KERNCAP_EXPORT const kerncap::capture::RangeSource kerncap_ranges_1 = {kerncap::capture::inside,
                                                                       kerncap::capture::names};
