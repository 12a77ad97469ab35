// Which instructions a target has, found by decoding the encoding space, and which of them have semantics.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace kerncap::softgpu::isa {

struct CoverageEntry {
  std::string example;              // text of one encoding
  std::string problem;              // empty: it can be executed
  std::vector<unsigned char> code;  // of the example
};
struct CoverageTarget {
  const char* processor;
  bool wave32;  // chooses the disassembler's mode
};
// The processors that the documentation lists.
std::span<const CoverageTarget> coverage_targets();

// By mnemonic without encoding suffix; graphics left out.
std::map<std::string, CoverageEntry> instruction_coverage(const CoverageTarget& target);

// What one encoding means, independent of how LLVM spells it: the table's row, registers, constants, modifiers. "?" and
// the reason when it has no semantics.
std::string canonical_form(const CoverageTarget& target, std::span<const unsigned char> code);

// The instruction at the start of some code, and why the software GPU could not execute it (empty: it could).
struct InstructionText {
  unsigned bytes = 0;
  std::string text, problem;
};
InstructionText instruction_text(const CoverageTarget& target, std::span<const unsigned char> code);

// Graphics only (interpolation, exports, ray tracing): compute programs on this device never contain them.
bool is_graphics_instruction(const std::string& mnemonic);

}  // namespace kerncap::softgpu::isa
