#include "softgpu/isa/decode.h"

#include <charconv>
#include <unordered_map>

#include "softgpu/isa/assembly_text.h"
#include "softgpu/isa/operand_text.h"
#include "softgpu/isa/valu.h"
#include "softgpu/isa/vmem.h"

namespace kerncap::softgpu::isa {
namespace {

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
  ParsedOperand operand(const std::string& from, Type type, bool vector) {
    ParsedOperand parsed = parse_operand(from, type, context.wave32);
    if (!parsed.valid) {
      problem(fmt::format("operand '{}' is not supported", from));
    } else if (vector && parsed.operand.kind == OperandKind::constant) {
      parsed.operand.row = context.constant_rows(parsed.operand.value);
    }
    return parsed;
  }

  void destination(Operand& into, Type type) {
    const std::string* from = take();
    if (from == nullptr) return;
    into = operand(*from, type, false).operand;
    if (into.kind == OperandKind::constant && *from == "null") {
      into.kind = OperandKind::scalar;
      into.index = reg_discard;
      into.dwords = 2;
    }
    if (into.kind != OperandKind::vector && into.kind != OperandKind::scalar)
      problem(fmt::format("destination '{}' is not supported", *from));
  }

  void source(unsigned k, Type type, bool vector) {
    // Dual-issue selects have vcc as their mask without saying so.
    static const std::string implied = "vcc", implied32 = "vcc_lo";
    const bool implicit = type == Type::mask && next_operand == text.operands.size();
    const std::string* from = implicit ? (context.wave32 ? &implied32 : &implied) : take();
    if (from == nullptr) return;
    const ParsedOperand parsed = operand(*from, type, vector);
    out.source[k] = parsed.operand;
    if (parsed.negate) out.modifiers.negate |= 1 << k, out.modified = true;
    if (parsed.absolute) out.modifiers.absolute |= 1 << k, out.modified = true;
    if (parsed.sign_extend) out.modifiers.sign_extend |= 1 << k, out.modified = true;
    if (vector && type != Type::wide && type != Type::mask && parsed.operand.dwords < dwords_of(type))
      out.source[k].dwords = static_cast<u8>(dwords_of(type));
  }

  void valu();
  void salu();
  void sopp();
  void memory(AddressMode mode, std::string_view prefix);
  void lds();
  void smem();
  void valu_modifiers();
  bool dpp_control(const std::string& key, const std::string& value);
};

Select select_of(std::string_view name) {
  constexpr std::pair<std::string_view, Select> names[] = {
      {"DWORD", Select::dword},   {"BYTE_0", Select::byte_0}, {"BYTE_1", Select::byte_1}, {"BYTE_2", Select::byte_2},
      {"BYTE_3", Select::byte_3}, {"WORD_0", Select::word_0}, {"WORD_1", Select::word_1}};
  for (const auto& [known, select] : names)
    if (known == name) return select;
  return Select::dword;
}

u8 bits_of(const std::string& list) {
  u8 bits = 0;
  const auto numbers = number_list(list);
  for (std::size_t i = 0; i < numbers.size() && i < 8; ++i) bits |= static_cast<u8>((numbers[i] & 1) << i);
  return bits;
}

// The lane that each lane reads. Rows are 16 lanes; wave shifts and broadcasts are GCN's, row_share and row_xmask
// RDNA's.
bool Decoder::dpp_control(const std::string& key, const std::string& value) {
  auto& lane = out.modifiers.lane;
  long long n = 0;
  parse_integer(value, n);
  const int amount = static_cast<int>(n), last = context.wave32 ? 31 : 63;
  const auto each = [&](auto from) {
    for (int i = 0; i < static_cast<int>(row_lanes); ++i) lane[static_cast<std::size_t>(i)] = static_cast<i8>(from(i));
  };
  const auto in_row = [](int i, int column) { return column < 0 || column > 15 ? -1 : (i & ~15) + column; };
  if (key == "quad_perm" || key == "dpp8") {
    const auto order = number_list(value);
    const int group = key == "dpp8" ? 8 : 4;
    if (static_cast<int>(order.size()) != group) return false;
    each([&](int i) { return (i & ~(group - 1)) + order[static_cast<std::size_t>(i & (group - 1))]; });
  } else if (key == "row_shl")
    each([&](int i) { return in_row(i, i % 16 + amount); });
  else if (key == "row_shr")
    each([&](int i) { return in_row(i, i % 16 - amount); });
  else if (key == "row_ror")
    each([&](int i) { return in_row(i, (i % 16 - amount) & 15); });
  else if (key == "wave_shl")
    each([&](int i) { return i == last ? -1 : i + 1; });
  else if (key == "wave_shr")
    each([&](int i) { return i - 1; });
  else if (key == "wave_rol")
    each([&](int i) { return (i + 1) & last; });
  else if (key == "wave_ror")
    each([&](int i) { return (i - 1) & last; });
  else if (key == "row_mirror")
    each([&](int i) { return in_row(i, 15 - i % 16); });
  else if (key == "row_half_mirror")
    each([&](int i) { return (i & ~7) + (7 - i % 8); });
  else if (key == "row_bcast" && amount == 15)
    each([&](int i) { return i < 16 ? -1 : (i & ~15) - 1; });
  else if (key == "row_bcast" && amount == 31)
    each([&](int i) { return i < 32 ? -1 : 31; });
  else if (key == "row_share" || key == "row_newbcast")
    each([&](int i) { return in_row(i, amount); });
  else if (key == "row_xmask")
    each([&](int i) { return in_row(i, (i % 16) ^ amount); });
  else
    return false;
  out.modifiers.dpp = true;
  // Broadcasts write only the rows that have a row to read from: the others are disabled, whatever bound_ctrl says.
  if (key == "dpp8") out.modifiers.bound_control = true;
  return true;
}

void Decoder::valu_modifiers() {
  Modifiers& m = out.modifiers;
  const bool packed = out.instruction->flags & instruction_packed;
  for (const auto& [key, value] : text.modifiers) {
    long long number = 0;
    parse_integer(value, number);
    bool changes = true;
    if (key == "clamp")
      m.clamp = true;
    else if (key == "mul")
      m.output_scale = number == 4 ? 2 : 1;
    else if (key == "div")
      m.output_scale = -1;
    else if (key == "op_sel")
      m.op_sel = bits_of(value), m.has_op_sel = true;
    else if (key == "op_sel_hi")
      m.op_sel_hi = bits_of(value), m.has_op_sel = true;
    else if (key == "neg_lo")
      m.neg_lo = bits_of(value);
    else if (key == "neg_hi")
      m.neg_hi = bits_of(value);
    else if (key == "src0_sel")
      m.source_select[0] = select_of(value), m.sdwa = true;
    else if (key == "src1_sel")
      m.source_select[1] = select_of(value), m.sdwa = true;
    else if (key == "dst_sel")
      m.destination_select = select_of(value), m.sdwa = true;
    else if (key == "dst_unused")
      m.unused = value == "UNUSED_PRESERVE" ? Unused::preserve
                 : value == "UNUSED_SEXT"   ? Unused::sign_extend
                                            : Unused::pad;
    else if (key == "row_mask")
      m.row_mask = static_cast<u8>(number);
    else if (key == "bank_mask")
      m.bank_mask = static_cast<u8>(number);
    else if (key == "bound_ctrl")
      m.bound_control = true;
    else if (key == "fi")
      m.dpp_fetch_inactive = number != 0;
    else if (key == "cbsz")
      m.cbsz = static_cast<u8>(number);
    else if (key == "abid")
      m.abid = static_cast<u8>(number);
    else if (key == "blgp")
      m.blgp = static_cast<u8>(number);
    else if (dpp_control(key, value))
      changes = true;
    else {
      // row_mirror, row_half_mirror and wave_* carry no number; anything else is not known.
      problem(fmt::format("modifier '{}' is not supported", key));
    }
    out.modified |= changes;
  }
  if (m.sdwa || m.sign_extend) m.sdwa = true;
  // SDWA extends the sign of a whole dword too, which changes nothing.
  if (packed && out.modified && !(out.instruction->flags & instruction_mix)) m.has_op_sel = true;
}

const std::unordered_map<std::string_view, const Instruction*>& saturating() {
  static const auto* map = [] {
    auto* made = new std::unordered_map<std::string_view, const Instruction*>;
    for (const auto& row : integer_instructions())
      if (std::string_view(row.name).ends_with(".clamp"))
        made->emplace(std::string_view(row.name).substr(0, std::string_view(row.name).size() - 6), &row);
    for (const auto& row : packed_instructions())
      if (std::string_view(row.name).ends_with(".clamp"))
        made->emplace(std::string_view(row.name).substr(0, std::string_view(row.name).size() - 6), &row);
    return made;
  }();
  return *map;
}

bool is_integer(Type type) {
  switch (type) {
    case Type::u32_:
    case Type::i32_:
    case Type::u64_:
    case Type::i64_:
    case Type::u16_:
    case Type::i16_:
    case Type::pk_i16:
      return true;
    default:
      return false;
  }
}

void Decoder::valu() {
  const Instruction& row = *out.instruction;
  const bool cmpx_without_destination =
      (row.flags & instruction_writes_exec) && !context.target.cmpx_writes_destination;
  if (row.result[0] != Type::none && !cmpx_without_destination) destination(out.destination, row.result[0]);
  if (row.result[1] != Type::none) destination(out.destination2, row.result[1]);
  unsigned count = 0;
  while (count < 4 && row.sources[count] != Type::none) {
    if (count == 2 && (row.flags & instruction_reads_destination)) {
      out.source[2] = out.destination;
    } else {
      source(count, row.sources[count], true);
    }
    ++count;
  }
  if (next_operand != text.operands.size()) problem(fmt::format("{} has more operands than expected", text.mnemonic));
  out.source_count = static_cast<u8>(count);
  out.destination_dwords = static_cast<u8>(dwords_of(row.result[0]));
  valu_modifiers();
  if (out.modifiers.clamp && is_integer(row.result[0])) {
    const auto found = saturating().find(row.name);
    if (found == saturating().end())
      problem(fmt::format("{} with clamp has no semantics", text.mnemonic));
    else {
      out.instruction = found->second;
      out.modifiers.clamp = false;
    }
  }
  const Type result = row.result[0];
  const bool half_result =
      result == Type::f16_ || result == Type::u16_ || result == Type::i16_ || result == Type::bf16_;
  if (half_result && ((row.flags & instruction_keeps_high) || context.target.preserves_high_half) &&
      !out.modifiers.sdwa)
    out.flags |= flag_preserve_high;
  out.rows = out.instruction->rows;
  out.execute = out.instruction->execute;
  if (out.execute == nullptr) out.execute = row.family == Family::vcmp ? &run_compare : &run_valu;
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
  if (const auto* offset = text.modifier("offset")) {
    long long value = 0;
    parse_integer(*offset, value);
    out.immediate = static_cast<u32>(value);
  }
  out.source_count = static_cast<u8>(count);
  out.execute = row.execute;
}

void Decoder::lds() {
  const Instruction& row = *out.instruction;
  if (row.result[0] != Type::none) destination(out.destination, row.result[0]);
  unsigned count = 0;
  while (count < 4 && row.sources[count] != Type::none) {
    source(count, row.sources[count], true);
    ++count;
  }
  out.source_count = static_cast<u8>(count);
  out.immediate = word(0) & 0xffffu;  // offset0 and offset1, or one 16-bit offset
  if (text.modifier("gds") != nullptr) problem("the global data share is not supported");
  out.execute = row.execute;
}

void Decoder::memory(AddressMode mode, std::string_view prefix) {
  const Instruction& row = *out.instruction;
  const auto kind = static_cast<MemoryKind>(row.result[1] == Type::none ? 0 : static_cast<int>(row.result[1]));
  static_cast<void>(kind);
  const MemoryAccess& access = *static_cast<const MemoryAccess*>(row.detail);
  const auto& operands = text.operands;
  // Operands in the order of the text; `off` where there is no address register.
  const bool is_buffer = mode == AddressMode::buffer;
  const unsigned tail = is_buffer ? 2 : mode == AddressMode::flat ? 0 : 1;  // after address and data
  unsigned data = access.kind == MemoryKind::load ? 0 : 1;
  bool returns = access.kind == MemoryKind::load;
  if (text.modifier("lds") != nullptr) problem("loads to LDS are not supported");
  if (is_buffer) {
    if (operands.size() != 4) return problem(fmt::format("{}{} has an unexpected form", prefix, row.name));
    returns = returns || (access.kind == MemoryKind::atomic && (text.modifier("glc") || text.modifier("sc0")));
    destination(out.destination, Type::wide);
    if (!returns || access.kind == MemoryKind::atomic) out.source[1] = out.destination;
    if (!returns) out.destination = Operand{};
    if (operands[1] != "off") {
      next_operand = 1;
      source(0, Type::wide, true);
    }
    next_operand = 2;
    source(2, Type::wide, false);
    source(3, Type::u32_, false);
  } else {
    const std::size_t fixed = 1 + data + tail;
    if (operands.size() == fixed + 1) {
      returns = true;
      destination(out.destination, Type::wide);
    } else if (operands.size() != fixed) {
      return problem(fmt::format("{}{} has an unexpected form", prefix, row.name));
    }
    if (operands[next_operand] == "off")
      ++next_operand;
    else
      source(0, Type::wide, true);
    if (data) source(1, Type::wide, true);
    if (tail) {
      if (operands[next_operand] == "off")
        ++next_operand;
      else
        source(2, Type::wide, false);
    }
  }
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
  if (returns) out.flags |= flag_glc;
  out.destination2.index = static_cast<u16>(mode);
  out.execute = row.execute;
}

}  // namespace

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
                                                                   {"buffer_", AddressMode::buffer}};
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
          wave_matrix_instructions(), scalar_instructions(), program_instructions(), scalar_memory_instructions(),
          lds_instructions(), memory_instructions()})
      for (const auto& row : table) made->emplace(row.name, &row);
    for (const auto& [alias, known] : instruction_aliases())
      if (const auto found = made->find(known); found != made->end()) made->emplace(alias, found->second);
    return made;
  }();
  const auto found = map->find(name);
  return found == map->end() ? nullptr : found->second;
}

}  // namespace kerncap::softgpu::isa
