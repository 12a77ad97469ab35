// What a code object says of its kernels: plain data, no LLVM, so that the snapshot's manifest can carry it and the
// replayer can read it back without parsing the code object.
//
// Facts: LLVM's "User Guide for AMDGPU Backend", sections "Code Object V3/V4/V5 Metadata" (the NT_AMDGPU_METADATA note)
// and "Kernel Descriptor".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kerncap::codeobject {

struct KernelArgument {
  std::string name;                    // ".name"; empty when the compiler kept none
  std::string type_name;               // ".type_name"; often empty for HIP
  std::string value_kind;              // ".value_kind": by_value, global_buffer, dynamic_shared_pointer, hidden_* ...
  std::uint32_t offset = 0, size = 0;  // bytes in the kernarg segment
  std::string address_space;           // ".address_space": global, constant, local, generic ...; may be empty
  std::string access;                  // ".actual_access" or ".access"; may be empty
  bool is_const = false;
  bool hidden() const { return value_kind.starts_with("hidden_"); }
  bool operator==(const KernelArgument&) const = default;
};

struct Kernel {
  std::string name;    // ".name": the mangled function name
  std::string symbol;  // ".symbol": the descriptor's symbol, usually name + ".kd"
  std::string demangled;
  std::uint32_t kernarg_size = 0, kernarg_alignment = 0;           // bytes
  std::uint32_t group_segment_size = 0, private_segment_size = 0;  // fixed bytes: LDS a workgroup, scratch a work-item
  std::uint32_t sgprs = 0, vgprs = 0, agprs = 0, sgpr_spills = 0, vgpr_spills = 0;
  std::uint32_t wavefront_size = 0, max_flat_workgroup_size = 0;
  bool uses_dynamic_stack = false;
  std::vector<std::uint32_t> required_workgroup_size;  // empty or 3
  std::vector<KernelArgument> arguments;
  bool operator==(const Kernel&) const = default;
};

}  // namespace kerncap::codeobject
