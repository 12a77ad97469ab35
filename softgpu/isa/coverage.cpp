#include "softgpu/isa/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "softgpu/isa/assembly_text.h"
#include "softgpu/isa/decode.h"
#include "softgpu/isa/disassembler.h"
#include "softgpu/isa/kernel_info.h"

namespace kerncap::softgpu::isa {
namespace {

// Every format but SOP1 and VOP1 has its opcode in the upper half of the first dword; those two have it in bits 8-16.
// The rest of the encoding is filled with a few patterns, because not every operand is valid everywhere.
std::vector<u32> lower_halves(u32 upper) {
  std::vector<u32> patterns{0x0000, 0x0100, 0x0200, 0x4000, 0x8000, 0xc000, 0x00f9,
                            0x00fa, 0x00ff, 0x0102, 0x02ff, 0x0400, 0x1000};
  const bool opcode_below = (upper & 0xff80) == 0xbe80 || (upper & 0xfe00) == 0x7e00;
  if (opcode_below)
    for (u32 opcode = 0; opcode < 256; ++opcode) {
      patterns.push_back(opcode << 8);
      patterns.push_back(opcode << 8 | 0x02);
      patterns.push_back((opcode << 9 & 0xffff) | 0x100);
    }
  return patterns;
}
// VOP2 and SOP2 have a destination here that says nothing about the opcode: a few are enough.
bool is_redundant(u32 upper) {
  const bool vop2 = (upper & 0x8000) == 0 && (upper & 0x7c00) != 0x7c00;
  const bool sop2 = (upper & 0xc000) == 0x8000 && upper < 0xbe00;
  constexpr u32 destinations[] = {0, 2, 4, 10, 106, 126};
  const u32 destination = upper & (vop2 ? 0x1ff : 0x7f);
  return (vop2 || sop2) &&
         std::find(std::begin(destinations), std::end(destinations), destination) == std::end(destinations);
}
constexpr u32 second_dwords[] = {0x00000000, 0x02020202, 0x04020100, 0x007f0004, 0x80000004, 0x80010204, 0x00020004,
                                 0x7d040204, 0x04120d04, 0x1c0e0501, 0x06060600, 0x007c0000, 0xf8000000, 0x00000100};

// Operands as the execution sees them.
std::string operand_form(const Operand& o, bool vector, const std::map<const u32*, u64>& constants) {
  switch (o.kind) {
    case OperandKind::none:
      return "-";
    case OperandKind::vector:
      return fmt::format("v{}", o.index);
    case OperandKind::scalar:
      return fmt::format("s{}", o.index);
    case OperandKind::constant:
      if (!vector) return fmt::format("{:#x}", o.value);
      if (const auto found = constants.find(o.row); found != constants.end())
        return fmt::format("{:#x}", found->second);
      return "constant";
    case OperandKind::scc:
      return "scc";
    case OperandKind::vccz:
      return "vccz";
    case OperandKind::execz:
      return "execz";
  }
  return "?";
}

std::string modifier_form(const Modifiers& m) {
  std::string text = fmt::format(" n{:x}a{:x}x{:x}o{:x}h{:x}l{:x}g{:x}", m.negate, m.absolute, m.sign_extend, m.op_sel,
                                 m.op_sel_hi, m.neg_lo, m.neg_hi);
  if (m.clamp) text += " clamp";
  if (m.output_scale != 0) text += fmt::format(" scale{}", m.output_scale);
  if (m.sdwa)
    text += fmt::format(" sdwa{}{}{}{}", static_cast<int>(m.source_select[0]), static_cast<int>(m.source_select[1]),
                        static_cast<int>(m.destination_select), static_cast<int>(m.unused));
  if (m.dpp) {
    u32 lanes = 0;
    for (const i8 lane : m.lane) lanes = lanes * 31 + static_cast<u32>(static_cast<u8>(lane));
    text += fmt::format(" dpp{:x}r{:x}b{:x}", lanes, m.row_mask, m.bank_mask);
    if (m.bound_control) text += "z";
    if (m.dpp_fetch_inactive) text += "f";
  }
  if (m.cbsz != 0 || m.abid != 0 || m.blgp != 0) text += fmt::format(" m{}{}{}", m.cbsz, m.abid, m.blgp);
  return text;
}

std::string form_of(const Decoded& decoded, const std::map<const u32*, u64>& constants) {
  if (!decoded.problem.empty()) return "?";
  std::string text;
  if (!decoded.parts.empty()) {
    for (const Decoded& part : decoded.parts) text += (text.empty() ? "" : " :: ") + form_of(part, constants);
    return text;
  }
  const Family family = decoded.instruction->family;
  const bool vector = family != Family::salu && family != Family::sopp && family != Family::smem;
  text = fmt::format("{} {}", decoded.instruction->name, operand_form(decoded.destination, vector, constants));
  const bool memory = family == Family::vmem;
  if (!memory && decoded.destination2.kind != OperandKind::none)
    text += "," + operand_form(decoded.destination2, vector, constants);
  text += " <";
  for (unsigned k = 0; k < 4; ++k) {
    const Operand& o = decoded.source[k];
    if (k >= decoded.source_count && !(memory && o.kind != OperandKind::none)) continue;
    // Addresses of memory instructions are scalars.
    text += (text.back() == '<' ? "" : ",") + operand_form(o, vector && !(memory && k >= 2), constants);
  }
  if (decoded.immediate != 0) text += fmt::format(" i{:x}", decoded.immediate);
  if (memory) text += fmt::format(" @{}", decoded.destination2.index);
  if (memory && decoded.destination2.unused != 0) text += fmt::format(" t{}", decoded.destination2.unused);
  // Whether the upper half stays is the target's business; spellings with halves of registers say it too.
  if (const unsigned flags = decoded.flags & ~unsigned{flag_preserve_high}; flags != 0)
    text += fmt::format(" f{:x}", flags);
  if (decoded.modified) text += modifier_form(decoded.modifiers);
  return text;
}

}  // namespace

namespace {

struct DecodedText {
  Decoded decoded;
  InstructionText text;
  std::map<const u32*, u64> constants;
};
DecodedText decode_one(const CoverageTarget& wanted, std::span<const unsigned char> code) {
  DecodedText result;
  Target target;
  if (!find_target(wanted.processor, target)) return result;
  static std::map<std::string, std::unique_ptr<Disassembler>> disassemblers;
  auto& disassembler = disassemblers[wanted.processor];
  if (disassembler == nullptr) disassembler = std::make_unique<Disassembler>(wanted.processor, wanted.wave32);
  auto instruction = disassembler->decode(code.first(std::min<std::size_t>(code.size(), 20)), 0);
  result.text.bytes = instruction.bytes;
  if (instruction.bytes == 0) return result;
  static std::map<u64, std::unique_ptr<std::array<u32, 2 * row_lanes>>> rows;
  const DecodeContext context{target, wanted.wave32, [&](u64 value) {
                                auto& row = rows[value];
                                if (row == nullptr) row = std::make_unique<std::array<u32, 2 * row_lanes>>();
                                result.constants[row->data()] = value;
                                return static_cast<const u32*>(row->data());
                              }};
  result.decoded = decode_text(instruction.text, instruction.bytes, code.first(instruction.bytes), context);
  result.text.text = std::move(instruction.text);
  result.text.problem = result.decoded.problem;
  return result;
}

}  // namespace

std::string canonical_form(const CoverageTarget& target, std::span<const unsigned char> code) {
  const DecodedText one = decode_one(target, code);
  return one.text.bytes == 0 ? "?" : form_of(one.decoded, one.constants);
}

InstructionText instruction_text(const CoverageTarget& target, std::span<const unsigned char> code) {
  return decode_one(target, code).text;
}

bool is_graphics_instruction(const std::string& mnemonic) {
  for (const char* prefix : {"v_interp", "exp", "lds_", "ds_ordered", "ds_bvh", "image_bvh", "ds_add_gs", "ds_sub_gs",
                             "s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join", "v_screen_partition"})
    if (mnemonic.starts_with(prefix)) return true;
  return false;
}

std::span<const CoverageTarget> coverage_targets() {
  static constexpr CoverageTarget targets[] = {
      {"gfx90a", false}, {"gfx942", false}, {"gfx1030", true}, {"gfx1100", true}};
  return targets;
}

std::map<std::string, CoverageEntry> instruction_coverage(const CoverageTarget& wanted) {
  std::map<std::string, CoverageEntry> found;
  Target target;
  if (!find_target(wanted.processor, target)) return found;
  Disassembler disassembler(wanted.processor, wanted.wave32);
  static std::array<u32, 4 * row_lanes> rows{};
  const DecodeContext context{target, wanted.wave32, [](u64) { return rows.data(); }};
  for (u32 upper = 0; upper < 0x10000; ++upper) {
    if (is_redundant(upper)) continue;
    for (const u32 lower : lower_halves(upper)) {
      for (const u32 second : second_dwords) {
        const std::array<u32, 5> words{upper << 16 | lower, second, 0, 0, 0};
        std::array<u8, 20> bytes;
        std::memcpy(bytes.data(), words.data(), bytes.size());
        const auto decoded = disassembler.decode(bytes, 0);
        if (decoded.bytes == 0) continue;
        const AssemblyText text = parse_assembly(decoded.text);
        if (is_graphics_instruction(text.mnemonic)) continue;
        auto [entry, fresh] = found.try_emplace(text.mnemonic);
        if (fresh || !entry->second.problem.empty()) {
          const std::string problem =
              decode_text(decoded.text, decoded.bytes, {bytes.data(), decoded.bytes}, context).problem;
          if (fresh || problem.empty())
            entry->second = {decoded.text, problem, {bytes.begin(), bytes.begin() + decoded.bytes}};
        }
        // Other second dwords are for those that no valid one was found of.
        if (decoded.bytes == 4 || entry->second.problem.empty()) break;
      }
    }
  }
  return found;
}

}  // namespace kerncap::softgpu::isa
