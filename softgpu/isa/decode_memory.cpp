// Memory instructions: LDS, flat, global, scratch, buffers.
#include "softgpu/isa/decoder.h"
#include "softgpu/isa/vmem.h"

namespace kerncap::softgpu::isa {
namespace {

// The format in a typed buffer instruction (MTBUF): data format in bits 19-22 and number format in 23-25 on GFX9, one
// number in bits 19-25 later.
u32 typed_format(u32 first_word) { return first_word >> 19 & 127; }

}  // namespace

void Decoder::lds() {
  const Instruction& row = *out.instruction;
  if (row.result[0] != Type::none) destination(out.destination, row.result[0]);
  unsigned count = 0;
  while (count < 4 && row.sources[count] != Type::none) {
    source(count, row.sources[count], true);
    ++count;
  }
  if (next_operand != text.operands.size()) problem(fmt::format("{} has more operands than expected", text.mnemonic));
  out.source_count = static_cast<u8>(count);
  out.immediate = word(0) & 0xffffu;  // offset0 and offset1, or one 16-bit offset
  out.execute = row.execute;
  // The global data share is one more LDS, of the device; global wave sync always has the modifier.
  if (text.modifier("gds") != nullptr && !(row.flags & instruction_global_sync)) out.execute = &run_gds;
}

void Decoder::buffer_operands(const Instruction& row, std::string_view prefix) {
  const MemoryAccess& access = *static_cast<const MemoryAccess*>(row.detail);
  const auto& operands = text.operands;
  const bool to_lds = row.execute == &run_memory_to_lds || (out.flags & flag_lds) != 0;
  const bool from_lds = row.execute == &run_lds_to_memory;
  const std::size_t expected = from_lds ? 2 : to_lds ? 3 : 4;
  if (operands.size() != expected) return problem(fmt::format("{}{} has an unexpected form", prefix, row.name));
  if (!to_lds && !from_lds) {
    const bool returns = access.kind == MemoryKind::load ||
                         (access.kind == MemoryKind::atomic && (text.modifier("glc") || text.modifier("sc0")));
    destination(out.destination, Type::wide);
    if (access.kind != MemoryKind::load) out.source[1] = out.destination;
    if (returns)
      out.flags |= flag_glc;
    else
      out.destination = Operand{};
  }
  if (!from_lds) {
    if (operands[next_operand] == "off")
      ++next_operand;
    else
      source(0, Type::wide, true);
  }
  source(2, Type::wide, false);
  source(3, Type::u32_, false);
}

void Decoder::memory(AddressMode mode, std::string_view prefix) {
  const Instruction& row = *out.instruction;
  const MemoryAccess& access = *static_cast<const MemoryAccess*>(row.detail);
  const auto& operands = text.operands;
  out.execute = row.execute;
  if (text.modifier("lds") != nullptr && row.execute == &run_memory) {
    out.flags |= flag_lds;
    out.execute = &run_memory_to_lds;
  }
  out.destination2.index = static_cast<u16>(mode);
  if (mode == AddressMode::buffer) {
    buffer_operands(row, prefix);
    if (prefix == "tbuffer_") out.destination2.unused = 1 + typed_format(word(0));
  } else {
    // Operands in the order of the text; `off` where there is no address register.
    const bool to_lds = row.execute == &run_memory_to_lds, adds_lane = row.flags & instruction_adds_lane;
    const unsigned tail = mode == AddressMode::flat ? 0 : 1;  // the scalar address
    const bool data = access.kind != MemoryKind::load, always = access.kind == MemoryKind::load && !to_lds;
    const std::size_t fixed = (adds_lane ? 0 : 1) + (data ? 1 : 0) + tail;
    if (operands.size() == fixed + 1 && !to_lds && access.kind != MemoryKind::store) {
      out.flags |= flag_glc;
      destination(out.destination, Type::wide);
    } else if (operands.size() != fixed || always) {
      return problem(fmt::format("{}{} has an unexpected form", prefix, row.name));
    }
    const auto optional = [&](unsigned k, bool vector) {
      if (next_operand < operands.size() && operands[next_operand] == "off")
        ++next_operand;
      else
        source(k, Type::wide, vector);
    };
    if (!adds_lane) optional(0, true);
    if (data) source(1, Type::wide, true);
    if (tail) optional(2, false);
  }
  memory_modifiers();
}

void Decoder::memory_modifiers() {
  for (const auto& [key, value] : text.modifiers) {
    long long number = 0;
    parse_integer(value, number);
    if (key == "offset")
      out.immediate = static_cast<u32>(static_cast<i32>(number));
    else if (key == "offen")
      out.flags |= flag_offen;
    else if (key == "idxen")
      out.flags |= flag_idxen;
    else if (key == "tfe")
      problem("modifier 'tfe' is not supported");
    else if (key == "addr64")
      problem("modifier 'addr64' is not supported");
  }
}

}  // namespace kerncap::softgpu::isa
