// What the replaced libc functions share. Only interpose_*.cpp include this.
//
// Rules for all of them: a path or descriptor that is not ours goes to the next definition unchanged; nothing throws
// across; errno is set as libc would set it.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <string_view>

#include "softgpu/driver.h"

#define KERNCAP_EXPORT extern "C" [[gnu::visibility("default")]]

namespace kerncap::softgpu {

// The definition that would have been called without us, found when it is first needed.
template <typename Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  Function* get() {
    Function* known = function_.load(std::memory_order_relaxed);
    if (known == nullptr) {
      known = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
      function_.store(known, std::memory_order_relaxed);
    }
    return known;
  }
  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    return get()(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

// The driver, when `path` is in its tree; null: not our business.
inline Driver* owner_of(const char* path) {
  if (path == nullptr || !VirtualTree::owns(path)) return nullptr;
  return Driver::get();
}

// Runs `body`; what it throws becomes ENOMEM and `failure`, because C code is calling.
template <typename Result, typename Body>
Result guarded(Result failure, Body body) noexcept {
  try {
    return body();
  } catch (...) {
    errno = ENOMEM;
    return failure;
  }
}

// An absolute path for (folder descriptor, path), when the descriptor is one of our folders. Else empty.
std::string path_in_folder(int folder, const char* path);

// Opens a node of the tree: a descriptor, or -1 and errno.
int open_node(Driver& driver, const char* path, int flags);

}  // namespace kerncap::softgpu
