// The pure half of program.h: what a candidate's layout means for captured pointers and variables.
#include <set>

#include "core/support/error.h"
#include "replay/program.h"

namespace kerncap::replay {

using support::ExitCode;
using support::fail;

Patches relocate(const snapshot::Dispatch& dispatch, const CodeImage& captured, std::uint64_t captured_base,
                 const CodeImage& candidate, std::uint64_t base) {
  Patches result;
  for (const snapshot::CodePointer& pointer : dispatch.code_pointers) {
    if (pointer.code_object != dispatch.code_object) continue;  // other code objects stay where they were
    // Words inside the code object itself are the loader's business, unless a variable that is copied holds them.
    if (pointer.address >= captured_base && pointer.address - captured_base < captured.memory_size) {
      const ImageSymbol* holder = captured.covering(pointer.address - captured_base);
      if (holder == nullptr || !is_variable(*holder)) continue;
    }
    // Offsets are from load_base, and ELF addresses of a code object start at 0.
    const ImageSymbol* target = captured.covering(pointer.offset);
    const std::string name = target != nullptr ? target->name : pointer.symbol;
    const ImageSymbol* counterpart = name.empty() ? nullptr : candidate.find(name);
    if (counterpart == nullptr) {
      fail(ExitCode::bad_input,
           "the word at {:#x} points to {} of the captured code object (offset {:#x}), which the candidate does not have; "
           "the candidate cannot be run on this memory",
           pointer.address, name.empty() ? "unnamed code or data" : "'" + name + "'", pointer.offset);
    }
    const std::uint64_t inside = target != nullptr ? pointer.offset - target->address : 0;
    if (inside != 0 && (target->is_function || inside >= counterpart->size)) {
      fail(ExitCode::bad_input,
           "the word at {:#x} points {} bytes into '{}' of the captured code object; there is no such place in the "
           "candidate", pointer.address, inside, name);
    }
    const std::uint64_t value = base + counterpart->address + inside;
    const std::uint64_t original = captured_base + pointer.offset;
    if (value != original) result.add_word(pointer.address, original, value);
  }
  return result;
}

bool same_layout(const CodeImage& captured, const CodeImage& candidate) {
  for (const ImageSymbol& symbol : captured.symbols) {
    const ImageSymbol* counterpart = candidate.find(symbol.name);
    if (counterpart == nullptr || counterpart->address != symbol.address || counterpart->size != symbol.size) return false;
  }
  return true;
}

std::vector<VariablePair> match_variables(const CodeImage& captured, std::uint64_t captured_base,
                                          const CodeImage& candidate, std::uint64_t base,
                                          std::vector<std::string>& missing) {
  std::vector<VariablePair> result;
  std::set<std::uint64_t> seen;
  for (const ImageSymbol& symbol : captured.symbols) {
    if (!is_variable(symbol) || !seen.insert(symbol.address).second) continue;
    const ImageSymbol* counterpart = candidate.find(symbol.name);
    if (counterpart == nullptr || !is_variable(*counterpart) || counterpart->size != symbol.size) {
      missing.push_back(symbol.name);
      continue;
    }
    result.push_back({symbol.name, captured_base + symbol.address, base + counterpart->address, symbol.size});
  }
  return result;
}

}  // namespace kerncap::replay
