// The text of one operand: a register, a constant, or one of the names of the hardware.
#pragma once

#include <string_view>

#include "softgpu/isa/operation.h"

namespace kerncap::softgpu::isa {

struct ParsedOperand {
  bool valid = false;
  Operand operand;  // constants: `value`, in the bits that `type` says
  bool negate = false, absolute = false, sign_extend = false;
};

ParsedOperand parse_operand(std::string_view text, Type type, bool wave32);

}  // namespace kerncap::softgpu::isa
