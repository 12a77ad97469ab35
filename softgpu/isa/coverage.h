// Which instructions a target has, found by decoding the encoding space, and which of them have semantics.
#pragma once

#include <map>
#include <string>

namespace kerncap::softgpu::isa {

struct CoverageEntry {
  std::string example;  // text of one encoding
  std::string problem;  // empty: it can be executed
};
// By mnemonic without encoding suffix. `wave32` chooses the disassembler's mode.
std::map<std::string, CoverageEntry> instruction_coverage(const std::string& processor, bool wave32);

// Graphics only (images, interpolation, exports): compute programs on this device never contain them.
bool is_graphics_instruction(const std::string& mnemonic);

}  // namespace kerncap::softgpu::isa
