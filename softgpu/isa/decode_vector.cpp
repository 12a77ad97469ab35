// Vector instructions: operands, SDWA, DPP, op_sel and the other modifiers.
#include <unordered_map>

#include "softgpu/isa/decoder.h"

namespace kerncap::softgpu::isa {
namespace {

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

}  // namespace

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
  // Integer dot products have whole registers, but some assemblers print which halves they do not choose.
  bool halves_matter = !packed || (out.instruction->flags & instruction_mix) || out.instruction->family == Family::mfma;
  for (const Type type : out.instruction->sources)
    halves_matter |= type == Type::pk_f16 || type == Type::pk_i16 || type == Type::pk_f32;
  for (const auto& [key, value] : text.modifiers) {
    if (!halves_matter && (key == "op_sel" || key == "op_sel_hi")) continue;
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
      // The last number of the text is the destination's, however many sources there are; the encoding has it in bit 3.
      m.op_sel = packed ? bits_of(value) : static_cast<u8>(word(0) >> 11 & 15), m.has_op_sel = true;
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
  if (out.modifiers.clamp && is_integer(row.result[0]) && !(row.flags & instruction_own_modifiers)) {
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

}  // namespace kerncap::softgpu::isa
