// The kernarg segment of a replayed dispatch: the captured bytes, with what belongs to the process made new. Pure.
//
// Facts: LLVM's "User Guide for AMDGPU Backend", "Code Object V3-V5 Metadata", the hidden_* value kinds.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/codeobject/kernel.h"

namespace kerncap::replay {

struct ProcessValues {                                             // of the replaying process
  std::uint64_t queue = 0;                                         // hsa_queue_t*
  std::uint64_t host_calls = 0;                                    // HostCallBuffer*; 0: nobody answers
  std::uint32_t shared_base = 0, private_base = 0;                 // aperture bases, upper halves (amd_queue_t)
  std::array<std::uint32_t, 3> grid{1, 1, 1}, workgroup{1, 1, 1};  // work-items, as in the packet
  unsigned dimensions = 1;
};

struct KernargResult {
  std::vector<std::byte> bytes;
  struct Rewrite {
    std::uint32_t offset = 0, size = 0;
    std::string what;
  };
  std::vector<Rewrite> rewrites;  // bytes that differ from the captured ones on purpose
  std::vector<std::string> notes;
};

// `kernel` is the layout to fill: the captured kernel's own, or a candidate's. Throws Error{bad_input} when a
// candidate's parameters are not the captured kernel's (count, offsets, sizes).
KernargResult build_kernarg(const codeobject::Kernel& captured, std::span<const std::byte> captured_bytes,
                            const codeobject::Kernel& kernel, const ProcessValues& values);

}  // namespace kerncap::replay
