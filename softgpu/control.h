// What a test bench changes while a program runs: the order in which workgroups and waves take their turns, what
// memory that nobody has written holds, and which clock the time stamps of kernels come from.
//
// The preloaded library exports it, so that a program may ask whether it runs on the software GPU and steer it:
//   auto* control = reinterpret_cast<ControlFunction>(dlsym(RTLD_DEFAULT, "kerncap_softgpu_control"));
// Values hold for kernels that start afterwards, on every queue of the process. From any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace kerncap::softgpu {

struct Control {
  std::uint32_t size = sizeof(Control);  // of the caller's structure, which has these fields at least
  std::uint32_t counter_clock = 0;       // 1: kernels last as long as their instruction counts say (counter_clock.h)
  std::uint64_t seed = 0;                // as KERNCAP_SOFTGPU_SEED
  std::uint64_t poison = 0;              // as KERNCAP_SOFTGPU_POISON
};
using ControlFunction = int (*)(const Control*);  // 0, or -1 when the structure is none that this version knows
inline constexpr const char* control_entry_point = "kerncap_softgpu_control";

// What the environment said, until somebody calls the function.
struct Controls {
  std::atomic<bool> counter_clock{false};
  std::atomic<std::uint64_t> seed{0}, poison{0};
};
Controls& controls() noexcept;
int set_controls(const Control* wanted) noexcept;

}  // namespace kerncap::softgpu
