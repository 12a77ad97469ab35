#include "softgpu/isa/decode.h"

#include <unordered_map>

#include "softgpu/isa/decoder.h"
#include "softgpu/isa/vmem.h"

namespace kerncap::softgpu::isa {

ParsedOperand Decoder::operand(const std::string& from, Type type, bool vector) {
  ParsedOperand parsed = parse_operand(from, type, context.wave32);
  if (!parsed.valid) {
    problem(fmt::format("operand '{}' is not supported", from));
  } else if (vector && parsed.operand.kind == OperandKind::constant) {
    parsed.operand.row = context.constant_rows(parsed.operand.value);
  }
  return parsed;
}

void Decoder::destination(Operand& into, Type type) {
  const std::string* from = take();
  if (from == nullptr) return;
  const ParsedOperand parsed = operand(*from, type, false);
  into = parsed.operand;
  if (into.kind == OperandKind::constant && *from == "null") {
    into.kind = OperandKind::scalar;
    into.index = reg_discard;
    into.dwords = 2;
  }
  if (into.kind != OperandKind::vector && into.kind != OperandKind::scalar)
    problem(fmt::format("destination '{}' is not supported", *from));
  if (parsed.half != RegisterHalf::whole) out.flags |= flag_preserve_high;
  if (parsed.half == RegisterHalf::high) {
    out.modifiers.op_sel |= 8;
    out.modifiers.has_op_sel = out.modified = true;
  }
}

void Decoder::source(unsigned k, Type type, bool vector) {
  // Dual-issue selects have vcc as their mask without saying so.
  static const std::string implied = "vcc", implied32 = "vcc_lo";
  const bool implicit = type == Type::mask && next_operand == text.operands.size();
  const std::string* from = implicit ? (context.wave32 ? &implied32 : &implied) : take();
  if (from == nullptr) return;
  const ParsedOperand parsed = operand(*from, type, vector);
  out.source[k] = parsed.operand;
  if (parsed.negate) out.modifiers.negate |= 1 << k, out.modified = true;
  if (parsed.absolute) out.modifiers.absolute |= 1 << k, out.modified = true;
  if (parsed.half == RegisterHalf::high) {
    out.modifiers.op_sel |= static_cast<u8>(1 << k);
    out.modifiers.has_op_sel = out.modified = true;
  }
  if (parsed.sign_extend) out.modifiers.sign_extend |= 1 << k, out.modified = true;
  if (vector && type != Type::wide && type != Type::mask && parsed.operand.dwords < dwords_of(type))
    out.source[k].dwords = static_cast<u8>(dwords_of(type));
}

void Decoder::salu() {
  const Instruction& row = *out.instruction;
  if (row.result[0] != Type::none) destination(out.destination, row.result[0]);
  out.destination_dwords = out.destination.dwords;
  unsigned count = 0;
  while (count < 4 && row.sources[count] != Type::none) {
    source(count, row.sources[count], false);
    ++count;
  }
  out.source_count = static_cast<u8>(count);
  if ((row.flags & instruction_signed_k) && count > 0) {
    // The last source is SOPK's 16-bit immediate, which is printed without sign.
    Operand& k = out.source[count - 1];
    k.value = static_cast<u32>(static_cast<i32>(static_cast<i16>(k.value)));
  }
  if (next_operand != text.operands.size()) problem(fmt::format("{} has more operands than expected", text.mnemonic));
  out.execute = row.execute;
}

void Decoder::sopp() {
  // Program control: one immediate of 16 bits in the low half of the encoding (SOPP, SOPK).
  out.immediate = word(0) & 0xffffu;
  const Instruction& row = *out.instruction;
  if (row.result[0] != Type::none) destination(out.destination, row.result[0]);
  unsigned count = 0;
  while (count < 4 && row.sources[count] != Type::none) {
    source(count, row.sources[count], false);
    ++count;
  }
  out.source_count = static_cast<u8>(count);
  out.execute = row.execute;
}

void Decoder::smem() {
  const Instruction& row = *out.instruction;
  if (row.result[0] != Type::none) destination(out.destination, row.result[0]);
  out.destination_dwords = row.bytes / 4;
  unsigned count = 0;
  while (count < 4 && row.sources[count] != Type::none) {
    source(count, row.sources[count], false);
    ++count;
  }
  if (text.modifier("glc") != nullptr) out.flags |= flag_glc;
  if (const auto* offset = text.modifier("offset")) {
    long long value = 0;
    parse_integer(*offset, value);
    out.immediate = static_cast<u32>(value);
  }
  out.source_count = static_cast<u8>(count);
  out.execute = row.execute;
}

namespace {

// "v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v5": both halves read before either writes.
const Operation* run_dual(Wave& w, const Operation* op) {
  const Operation *first = &op->parts[0], *second = &op->parts[1];
  first->execute.load(std::memory_order_relaxed)(w, first);  // into the spare row
  second->execute.load(std::memory_order_relaxed)(w, second);
  blend(w, w.row(op->destination.index), w.row(spare_row), 1, w.exec());
  return following(op);
}

Decoded decode_dual(std::string_view first, std::string_view second, unsigned bytes, std::span<const u8> code,
                    const DecodeContext& context) {
  constexpr std::string_view prefix = "v_dual_";
  Decoded dual;
  for (std::string_view part : {first, second}) {
    while (part.starts_with(' ') || part.starts_with('\t')) part.remove_prefix(1);
    if (!part.starts_with(prefix)) {
      dual.problem = fmt::format("'{}' is not half of a dual instruction", part);
      return dual;
    }
    dual.parts.push_back(decode_text(fmt::format("v_{}", part.substr(prefix.size())), bytes, code, context));
    if (!dual.parts.back().problem.empty()) {
      dual.problem = dual.parts.back().problem;
      return dual;
    }
  }
  dual.dwords = static_cast<u8>(bytes / 4);
  dual.instruction = dual.parts[0].instruction;
  dual.destination = dual.parts[0].destination;
  dual.parts[0].destination.index = spare_row;
  dual.execute = &run_dual;
  return dual;
}

}  // namespace

Decoded decode_text(std::string_view source_text, unsigned bytes, std::span<const u8> code,
                    const DecodeContext& context) {
  if (const auto middle = source_text.find("::"); middle != std::string_view::npos)
    return decode_dual(source_text.substr(0, middle), source_text.substr(middle + 2), bytes, code, context);
  const AssemblyText text = parse_assembly(source_text);
  Decoder decoder{text, context, code, {}};
  decoder.out.dwords = static_cast<u8>(bytes / 4);
  constexpr std::pair<std::string_view, AddressMode> prefixes[] = {{"flat_", AddressMode::flat},
                                                                   {"global_", AddressMode::global},
                                                                   {"scratch_", AddressMode::scratch},
                                                                   {"buffer_", AddressMode::buffer},
                                                                   {"tbuffer_", AddressMode::buffer}};
  std::string_view prefix;
  AddressMode mode{};
  std::string_view name = text.mnemonic;
  for (const auto& [known, its_mode] : prefixes)
    if (name.starts_with(known)) {
      prefix = known;
      mode = its_mode;
    }
  const Instruction* row = find_instruction(name);
  if (row == nullptr && !prefix.empty()) {
    row = find_instruction(name.substr(prefix.size()));
    if (row != nullptr && row->family != Family::vmem) row = nullptr;
  }
  if (row == nullptr) {
    decoder.out.problem = fmt::format("the software GPU has no semantics for {}", text.mnemonic);
    return std::move(decoder.out);
  }
  decoder.out.instruction = row;
  switch (row->family) {
    case Family::valu:
    case Family::vcmp:
    case Family::special_valu:
    case Family::mfma:
      decoder.valu();
      break;
    case Family::salu:
      decoder.salu();
      break;
    case Family::sopp:
      decoder.sopp();
      break;
    case Family::smem:
      decoder.smem();
      break;
    case Family::lds:
      decoder.lds();
      break;
    case Family::vmem:
      if (row->detail != nullptr)
        decoder.memory(mode, prefix);
      else
        decoder.sopp();  // cache maintenance: no operands
      break;
  }
  if (decoder.out.execute == nullptr && decoder.out.problem.empty())
    decoder.out.problem = fmt::format("the software GPU has no semantics for {}", text.mnemonic);
  return std::move(decoder.out);
}

const Instruction* find_instruction(std::string_view name) {
  static const auto* map = [] {
    auto* made = new std::unordered_map<std::string_view, const Instruction*>;
    for (const auto table :
         {integer_instructions(), float_instructions(), convert_instructions(), half_instructions(),
          packed_instructions(), compare_instructions(), special_vector_instructions(), matrix_instructions(),
          wave_matrix_instructions(), sparse_matrix_instructions(), small_float_instructions(), scalar_instructions(),
          scalar_mask_instructions(), program_instructions(), scalar_memory_instructions(), lds_instructions(),
          global_sync_instructions(), memory_instructions(), typed_buffer_instructions()})
      for (const auto& row : table) made->emplace(row.name, &row);
    for (const auto& [alias, known] : instruction_aliases())
      if (const auto found = made->find(known); found != made->end()) made->emplace(alias, found->second);
    return made;
  }();
  const auto found = map->find(name);
  return found == map->end() ? nullptr : found->second;
}

}  // namespace kerncap::softgpu::isa
