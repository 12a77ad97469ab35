// From the text of one instruction to its decoded form.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "softgpu/isa/wave.h"

namespace kerncap::softgpu::isa {

struct DecodeContext {
  const Target& target;
  bool wave32 = false;
  std::function<const u32*(u64)> constant_rows;  // rows of a constant that live as long as the code
};

// Operation without its atomic; `problem` says why there is none.
struct Decoded {
  std::string problem;
  Execute execute = nullptr;
  const Instruction* instruction = nullptr;
  RowFunction rows = nullptr;
  u8 dwords = 0, destination_dwords = 1, source_count = 0, flags = 0;
  u32 immediate = 0;
  Operand destination, destination2;
  std::array<Operand, 4> source;
  bool modified = false;
  Modifiers modifiers;
  std::vector<Decoded> parts;  // dual issue
};

Decoded decode_text(std::string_view text, unsigned bytes, std::span<const u8> code, const DecodeContext& context);

// How an operation finds its addresses; kept in destination2.index of memory operations.
enum class AddressMode : u16 { flat, global, scratch, buffer };

}  // namespace kerncap::softgpu::isa
