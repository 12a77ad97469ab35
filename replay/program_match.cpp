// The pure half of program.h: what a candidate's layout means for captured pointers and variables.
#include <set>

#include "core/support/error.h"
#include "replay/program.h"

namespace kerncap::replay {

using support::ExitCode;
using support::fail;

Patches relocate(const snapshot::Dispatch& dispatch, const CodeImage& captured, const snapshot::CodeObjectLoad& load,
                 const CodeImage& candidate, std::uint64_t candidate_delta) {
  Patches result;
  const auto delta = static_cast<std::uint64_t>(load.load_delta);
  for (const snapshot::CodePointer& pointer : dispatch.code_pointers) {
    if (pointer.code_object != dispatch.code_object) continue;  // other code objects stay where they were
    // Words inside the code object itself are the loader's business, unless a variable that is copied holds them.
    if (pointer.address >= load.load_base && pointer.address - load.load_base < load.load_size) {
      const ImageSymbol* holder = captured.covering(pointer.address - delta);
      if (holder == nullptr || !is_data(*holder) || !holder->is_writable) continue;
    }
    const std::uint64_t original = load.load_base + pointer.offset;
    const ImageSymbol* target = captured.covering(original - delta);
    const std::string name = target != nullptr ? target->name : pointer.symbol;
    const ImageSymbol* counterpart = name.empty() ? nullptr : candidate.find(name);
    if (counterpart == nullptr) {
      fail(ExitCode::bad_input,
           "the word at {:#x} points to {} of the captured code object (offset {:#x}), which the candidate does not "
           "have; "
           "the candidate cannot be run on this memory",
           pointer.address, name.empty() ? "unnamed code or data" : "'" + name + "'", pointer.offset);
    }
    const std::uint64_t inside = target != nullptr ? original - delta - target->address : 0;
    if (inside != 0 && (target->is_function || inside >= counterpart->size)) {
      fail(ExitCode::bad_input,
           "the word at {:#x} points {} bytes into '{}' of the captured code object; there is no such place in the "
           "candidate",
           pointer.address, inside, name);
    }
    const std::uint64_t value = candidate_delta + counterpart->address + inside;
    if (value != original) result.add_word(pointer.address, original, value);
  }
  return result;
}

bool same_layout(const CodeImage& captured, const CodeImage& candidate) {
  for (const ImageSymbol& symbol : captured.symbols) {
    const ImageSymbol* counterpart = candidate.find(symbol.name);
    if (counterpart == nullptr || counterpart->address != symbol.address || counterpart->size != symbol.size)
      return false;
  }
  return true;
}

std::vector<VariablePair> match_variables(const CodeImage& captured, std::uint64_t captured_delta,
                                          const CodeImage& candidate, std::uint64_t candidate_delta,
                                          const std::function<bool(const ImageSymbol&)>& written_by_host,
                                          std::vector<std::string>& missing) {
  std::vector<VariablePair> result;
  std::set<std::uint64_t> seen;
  for (const ImageSymbol& symbol : captured.symbols) {
    if (!is_data(symbol) || (!symbol.is_writable && !written_by_host(symbol))) continue;
    if (!seen.insert(symbol.address).second) continue;
    const ImageSymbol* counterpart = candidate.find(symbol.name);
    if (counterpart == nullptr || !is_data(*counterpart) || counterpart->size != symbol.size) {
      missing.push_back(symbol.name);
      continue;
    }
    result.push_back(
        {symbol.name, captured_delta + symbol.address, candidate_delta + counterpart->address, symbol.size});
  }
  return result;
}

}  // namespace kerncap::replay
