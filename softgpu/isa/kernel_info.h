// What a kernel's descriptor says about its waves. Layouts: LLVM's AMDGPUUsage, "Kernel Descriptor"; amd_kernel_code_t
// (code object v2, still used by ROCr's own kernels) has the fields used here at the same offsets.
#pragma once

#include <string>

#include "softgpu/execution.h"
#include "softgpu/isa/wave.h"

namespace kerncap::softgpu::isa {

struct KernelInfo {
  u64 entry = 0;
  u32 private_bytes = 0, group_bytes = 0;
  bool wave32 = false;
  bool private_segment_buffer = false, dispatch_pointer = false, queue_pointer = false, kernarg_pointer = false;
  bool dispatch_id = false, flat_scratch = false, private_segment_size = false;
  bool scratch_offset = false, workgroup_info = false;
  std::array<bool, 3> workgroup_id{};
  unsigned user_scalars = 0, work_item_dimensions = 0;
  unsigned preload_dwords = 0, preload_offset = 0;
  unsigned vector_registers = 0, accumulator_offset = 0;
  u32 mode = 0;
};

// Returns a sentence when the descriptor cannot be read or makes no sense, else an empty string.
std::string read_kernel_info(const AddressSpace& memory, u64 kernel_object, const Target& target, KernelInfo& info);

// False when the processor is not one of ours.
bool find_target(const std::string& processor, Target& target);

}  // namespace kerncap::softgpu::isa
