#include "softgpu/control.h"

#include <cstddef>

#include "softgpu/counter_clock.h"

namespace kerncap::softgpu {

Controls& controls() noexcept {
  static constinit Controls values;
  return values;
}

int set_controls(const Control* wanted) noexcept {
  if (wanted == nullptr || wanted->size < offsetof(Control, poison) + sizeof wanted->poison) return -1;
  Controls& values = controls();
  values.counter_clock = wanted->counter_clock != 0;
  values.seed = wanted->seed;
  values.poison = wanted->poison;
  return 0;
}

std::uint64_t counted_nanoseconds(const DispatchCounters& c) noexcept {
  // Cycles in which a SIMD of GCN is kept busy by a wave of 64: a vector instruction issues over four of them (AMD's
  // "Vega" Instruction Set Architecture, chapter 1); the other weights are of that order.
  constexpr std::uint64_t valu = 4, salu = 1, smem = 4, lds = 8, vmem = 8, branch = 2, bytes_per_cycle = 64,
                          workgroup = 32;
  constexpr std::uint64_t simds = 4;  // of a compute unit
  const std::uint64_t cycles = c.valu * valu + c.salu * salu + c.smem * smem + c.lds * lds + c.vmem * vmem +
                               c.branches * branch + (c.bytes_read + c.bytes_written) / bytes_per_cycle +
                               c.workgroups * workgroup;
  return cycles / simds + 1000;  // a launch takes its microsecond
}

}  // namespace kerncap::softgpu
