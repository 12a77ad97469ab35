// What only the software GPU can do for a judge: run a kernel with other contents in memory that nobody wrote, with
// another order of workgroups and waves, and with a clock that counts instructions. A GPU of silicon has none of it.
#pragma once

#include <cstdint>

namespace kerncap::replay {

struct Circumstances {
  std::uint64_t seed = 0;    // order of workgroups and waves; 0: the usual one
  std::uint64_t poison = 0;  // what registers, LDS and private memory hold at first; 0: zeros
  bool counter_clock = false;
  bool operator==(const Circumstances&) const = default;
};

// Does this process run on the software GPU?
bool on_software_gpu();

// For the kernels that start from now on. Nothing happens on other GPUs.
void set_circumstances(const Circumstances& wanted);

}  // namespace kerncap::replay
