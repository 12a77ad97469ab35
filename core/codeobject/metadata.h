// The NT_AMDGPU_METADATA note: MessagePack, as "User Guide for AMDGPU Backend" lays it out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/codeobject/byte_view.h"
#include "core/codeobject/kernel.h"
#include "core/support/json.h"

namespace kerncap::codeobject {

struct Metadata {
  std::string target;  // amdhsa.target without the triple; empty before code object version 4
  std::vector<Kernel> kernels;
};

// Nesting and sizes are checked; throws Error{bad_input}.
Metadata read_metadata(std::span<const std::byte> note, std::string_view name);

}  // namespace kerncap::codeobject
