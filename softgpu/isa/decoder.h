// Inside of the decoder: one instruction's text on its way to an operation. decode.cpp has the entry and scalar
// instructions, decode_vector.cpp the vector ones with their modifiers, decode_memory.cpp memory.
#pragma once

#include <fmt/format.h>

#include "softgpu/isa/assembly_text.h"
#include "softgpu/isa/decode.h"
#include "softgpu/isa/operand_text.h"
#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {

struct Decoder {
  const AssemblyText& text;
  const DecodeContext& context;
  std::span<const u8> code;
  Decoded out;
  std::size_t next_operand = 0;

  u32 word(unsigned index) const {
    u32 value = 0;
    std::memcpy(&value, code.data() + index * 4, 4);
    return value;
  }
  void problem(std::string what) {
    if (out.problem.empty()) out.problem = std::move(what);
  }
  const std::string* take() {
    if (next_operand >= text.operands.size()) {
      problem(fmt::format("{} has fewer operands than expected", text.mnemonic));
      return nullptr;
    }
    return &text.operands[next_operand++];
  }

  // A vector instruction's constants become rows.
  ParsedOperand operand(const std::string& from, Type type, bool vector);
  void destination(Operand& into, Type type);
  void source(unsigned k, Type type, bool vector);
  void valu();
  void salu();
  void sopp();
  void memory(AddressMode mode, std::string_view prefix);
  void buffer_operands(const Instruction& row, std::string_view prefix);
  void memory_modifiers();
  void lds();
  void smem();
  void valu_modifiers();
  bool dpp_control(const std::string& key, const std::string& value);
};

}  // namespace kerncap::softgpu::isa
