#include "softgpu/isa/coverage.h"

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
constexpr u32 second_dwords[] = {0x00000000, 0x02020202, 0x04020100, 0x007f0004, 0x80000004, 0x80010204, 0x00020004,
                                 0x7d040204, 0x04120d04, 0x1c0e0501, 0x06060600, 0x007c0000, 0xf8000000, 0x00000100};

}  // namespace

bool is_graphics_instruction(const std::string& mnemonic) {
  for (const char* prefix : {"image_", "v_interp", "exp", "lds_", "ds_gws", "ds_ordered", "tbuffer_",
                             "s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join"})
    if (mnemonic.starts_with(prefix)) return true;
  return false;
}

std::map<std::string, CoverageEntry> instruction_coverage(const std::string& processor, bool wave32) {
  std::map<std::string, CoverageEntry> found;
  Target target;
  if (!find_target(processor, target)) return found;
  Disassembler disassembler(processor, wave32);
  static std::array<u32, 4 * row_lanes> rows{};
  const DecodeContext context{target, wave32, [](u64) { return rows.data(); }};
  for (u32 upper = 0; upper < 0x10000; ++upper) {
    for (const u32 lower : lower_halves(upper)) {
      for (const u32 second : second_dwords) {
        const std::array<u32, 5> words{upper << 16 | lower, second, 0, 0, 0};
        std::array<u8, 20> bytes;
        std::memcpy(bytes.data(), words.data(), bytes.size());
        const auto decoded = disassembler.decode(bytes, 0);
        if (decoded.bytes == 0) continue;
        const AssemblyText text = parse_assembly(decoded.text);
        auto [entry, fresh] = found.try_emplace(text.mnemonic);
        if (fresh || !entry->second.problem.empty()) {
          const std::string problem =
              decode_text(decoded.text, decoded.bytes, {bytes.data(), decoded.bytes}, context).problem;
          if (fresh || problem.empty()) entry->second = {decoded.text, problem};
        }
        if (decoded.bytes == 4) break;  // the second dword is not part of it
      }
    }
  }
  return found;
}

}  // namespace kerncap::softgpu::isa
