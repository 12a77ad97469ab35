// Time by counting: how long a kernel "takes" on a clock that depends on nothing but its instructions. The same kernel
// on the same memory always takes the same time, so that small differences between two kernels can be told on any
// machine. The weights are those of one compute unit at 1 GHz, roughly; they predict no real GPU.
#pragma once

#include <cstdint>

#include "softgpu/execution.h"

namespace kerncap::softgpu {

std::uint64_t counted_nanoseconds(const DispatchCounters& counters) noexcept;

}  // namespace kerncap::softgpu
