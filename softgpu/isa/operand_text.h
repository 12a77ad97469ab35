// The text of one operand: a register, a constant, or one of the names of the hardware.
#pragma once

#include <string_view>

#include "softgpu/isa/operation.h"

namespace kerncap::softgpu::isa {

// Which half of a vector register a 16-bit operand is (`v0.l`, `v0.h`: RDNA3's true 16-bit registers).
enum class RegisterHalf : u8 { whole, low, high };

struct ParsedOperand {
  bool valid = false;
  RegisterHalf half = RegisterHalf::whole;
  Operand operand;  // constants: `value`, in the bits that `type` says
  bool negate = false, absolute = false, sign_extend = false;
};

ParsedOperand parse_operand(std::string_view text, Type type, bool wave32);

}  // namespace kerncap::softgpu::isa
