#include "softgpu/isa/operand_text.h"

#include <cstdlib>
#include <string>

#include "softgpu/execution.h"
#include "softgpu/isa/assembly_text.h"
#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {
namespace {

struct NamedRegister {
  std::string_view name;
  OperandKind kind;
  u16 index;
  u8 dwords;
};
constexpr NamedRegister named_registers[] = {
    {"vcc", OperandKind::scalar, reg_vcc, 2},
    {"vcc_lo", OperandKind::scalar, reg_vcc, 1},
    {"vcc_hi", OperandKind::scalar, reg_vcc + 1, 1},
    {"exec", OperandKind::scalar, reg_exec, 2},
    {"exec_lo", OperandKind::scalar, reg_exec, 1},
    {"exec_hi", OperandKind::scalar, reg_exec + 1, 1},
    {"m0", OperandKind::scalar, reg_m0, 1},
    {"flat_scratch", OperandKind::scalar, reg_flat_scratch, 2},
    {"flat_scratch_lo", OperandKind::scalar, reg_flat_scratch, 1},
    {"flat_scratch_hi", OperandKind::scalar, reg_flat_scratch + 1, 1},
    {"xnack_mask", OperandKind::scalar, reg_xnack_mask, 2},
    {"xnack_mask_lo", OperandKind::scalar, reg_xnack_mask, 1},
    {"xnack_mask_hi", OperandKind::scalar, reg_xnack_mask + 1, 1},
    {"scc", OperandKind::scc, 0, 1},
    {"src_scc", OperandKind::scc, 0, 1},
    {"vccz", OperandKind::vccz, 0, 1},
    {"src_vccz", OperandKind::vccz, 0, 1},
    {"execz", OperandKind::execz, 0, 1},
    {"src_execz", OperandKind::execz, 0, 1},
    {"null", OperandKind::constant, 0, 2},
};

// Apertures as 64-bit values; a 32-bit read gets the upper half, where the address bits are.
struct NamedValue {
  std::string_view name;
  u64 value;
};
constexpr NamedValue named_values[] = {
    {"src_shared_base", lds_aperture},      {"src_shared_limit", lds_aperture + aperture_size - 1},
    {"src_private_base", scratch_aperture}, {"src_private_limit", scratch_aperture + aperture_size - 1},
    {"src_pops_exiting_wave_id", 0},
};

// Fields of s_getreg/s_setreg (SIDefines.h, Hwreg).
struct HardwareRegister {
  std::string_view name;
  u16 id;
};
constexpr HardwareRegister hardware_registers[] = {
    {"HW_REG_MODE", 1},         {"HW_REG_STATUS", 2},       {"HW_REG_TRAPSTS", 3},        {"HW_REG_HW_ID", 4},
    {"HW_REG_GPR_ALLOC", 5},    {"HW_REG_LDS_ALLOC", 6},    {"HW_REG_IB_STS", 7},         {"HW_REG_SH_MEM_BASES", 15},
    {"HW_REG_TBA_LO", 16},      {"HW_REG_TBA_HI", 17},      {"HW_REG_TMA_LO", 18},        {"HW_REG_TMA_HI", 19},
    {"HW_REG_FLAT_SCR_LO", 20}, {"HW_REG_FLAT_SCR_HI", 21}, {"HW_REG_XNACK_MASK", 22},    {"HW_REG_XCC_ID", 20},
    {"HW_REG_HW_ID1", 23},      {"HW_REG_HW_ID2", 24},      {"HW_REG_SHADER_CYCLES", 29},
};

bool parse_number(std::string_view text, unsigned& value) {
  long long parsed = 0;
  if (!parse_integer(text, parsed) || parsed < 0 || parsed > 0xffffffffll) return false;
  value = static_cast<unsigned>(parsed);
  return true;
}

// v0, v[0:3], s..., a..., ttmp...
bool parse_register(std::string_view text, Operand& out) {
  for (const auto& known : named_registers)
    if (known.name == text) {
      out.kind = known.kind;
      out.index = known.index;
      out.dwords = known.dwords;
      return true;
    }
  unsigned base = 0;
  OperandKind kind = OperandKind::scalar;
  if (text.starts_with("ttmp")) {
    base = reg_ttmp0;
    text.remove_prefix(4);
  } else if (text.starts_with("v") || text.starts_with("a")) {
    base = text.front() == 'a' ? accumulator_base : 0;
    kind = OperandKind::vector;
    text.remove_prefix(1);
  } else if (text.starts_with("s")) {
    text.remove_prefix(1);
  } else {
    return false;
  }
  unsigned first = 0, last = 0;
  if (text.starts_with("[") && text.ends_with("]")) {
    text = text.substr(1, text.size() - 2);
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || !parse_number(text.substr(0, colon), first) ||
        !parse_number(text.substr(colon + 1), last))
      return false;
  } else if (parse_number(text, first)) {
    last = first;
  } else {
    return false;
  }
  const unsigned limit = kind == OperandKind::vector ? max_lane_registers : unsigned{scalar_registers};
  if (last < first || base + last >= limit) return false;
  out.kind = kind;
  out.index = static_cast<u16>(base + first);
  out.dwords = static_cast<u8>(last - first + 1);
  return true;
}

u64 float_bits(double value, std::string_view text, Type type) {
  const bool inverse_two_pi = text.starts_with("0.15915494");
  switch (type) {
    case Type::f64_:
    case Type::b64_:
    case Type::u64_:
    case Type::i64_:
      return inverse_two_pi ? 0x3fc45f306dc9c882u : std::bit_cast<u64>(value);
    case Type::f16_:
    case Type::pk_f16:
      return inverse_two_pi ? 0x3118u : double_to_half(value).bits;
    case Type::bf16_:
      return inverse_two_pi ? 0x3e22u : float_to_bfloat(static_cast<float>(value)).bits;
    default: {
      const u32 bits = inverse_two_pi ? 0x3e22f983u : std::bit_cast<u32>(static_cast<float>(value));
      return type == Type::pk_f32 ? bits | u64{bits} << 32 : bits;
    }
  }
}

// Inline integers are signed; literals have 32 bits: the upper half of an f64, sign-extended for i64, else
// zero-extended.
u64 integer_bits(long long value, bool literal, Type type) {
  switch (type) {
    case Type::f64_:
      return literal && value >= 0 && value <= 0xffffffffll ? static_cast<u64>(value) << 32 : static_cast<u64>(value);
    case Type::i64_:
      return literal ? static_cast<u64>(static_cast<i64>(static_cast<i32>(value))) : static_cast<u64>(value);
    case Type::u64_:
    case Type::b64_:
    case Type::mask:
    case Type::wide:
      return static_cast<u64>(value);
    case Type::pk_f32:
      return static_cast<u32>(value) | static_cast<u64>(value) << 32;
    default:
      return static_cast<u32>(value);
  }
}

bool parse_constant(std::string_view text, Type type, Operand& out) {
  for (const auto& known : named_values)
    if (known.name == text) {
      const bool wide = dwords_of(type) == 2 || type == Type::wide || type == Type::mask;
      out.kind = OperandKind::constant;
      out.value = wide ? known.value : known.value >> 32;
      out.dwords = wide ? 2 : 1;
      return true;
    }
  long long integer = 0;
  if (parse_integer(text, integer)) {
    out.kind = OperandKind::constant;
    out.value = integer_bits(integer, text.find("0x") != std::string_view::npos, type);
    out.dwords = static_cast<u8>(dwords_of(type));
    return true;
  }
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0') return false;
  out.kind = OperandKind::constant;
  out.value = float_bits(value, text.front() == '-' ? text.substr(1) : text, type);
  out.dwords = static_cast<u8>(dwords_of(type));
  return true;
}

// hwreg(NAME or id [, offset, size]) as SOPK's immediate: id in bits 0-5, offset 6-10, size-1 in 11-15.
bool parse_hwreg(std::string_view text, Operand& out) {
  if (!text.starts_with("hwreg(") || !text.ends_with(")")) return false;
  text = text.substr(6, text.size() - 7);
  unsigned field[3] = {0, 0, 32};
  for (unsigned k = 0; k < 3 && !text.empty(); ++k) {
    const auto comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (part.starts_with(" ")) part.remove_prefix(1);
    bool known = parse_number(part, field[k]);
    if (k == 0 && !known)
      for (const auto& reg : hardware_registers)
        if (reg.name == part) {
          field[0] = reg.id;
          known = true;
        }
    if (!known) return false;
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  out.kind = OperandKind::constant;
  out.value = field[0] | field[1] << 6 | (field[2] - 1) << 11;
  return true;
}

bool strip_call(std::string_view& text, std::string_view name) {
  if (!text.starts_with(name) || !text.ends_with(")")) return false;
  text = text.substr(name.size(), text.size() - name.size() - 1);
  return true;
}

}  // namespace

ParsedOperand parse_operand(std::string_view text, Type type, bool wave32) {
  ParsedOperand result;
  if (parse_hwreg(text, result.operand)) {
    result.valid = true;
    return result;
  }
  if (strip_call(text, "sext(")) result.sign_extend = true;
  if (strip_call(text, "neg(")) result.negate = true;
  if (text.size() > 1 && text.front() == '-' && (text[1] < '0' || text[1] > '9')) {
    result.negate = true;
    text.remove_prefix(1);
  }
  if (text.size() > 2 && text.front() == '|' && text.back() == '|') {
    result.absolute = true;
    text = text.substr(1, text.size() - 2);
  }
  if (text.starts_with('v') && (text.ends_with(".l") || text.ends_with(".h"))) {
    result.half = text.back() == 'h' ? RegisterHalf::high : RegisterHalf::low;
    text.remove_suffix(2);
  }
  result.valid = parse_register(text, result.operand) || parse_constant(text, type, result.operand);
  // A mask register of wave32 is one SGPR.
  if (wave32 && type == Type::mask && result.operand.kind == OperandKind::scalar) result.operand.dwords = 1;
  return result;
}

}  // namespace kerncap::softgpu::isa
