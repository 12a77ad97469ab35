// Finding words in captured memory that point into loaded code: function tables, vtables, addresses of device globals.
//
// Thread-safety: scan() by one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capture/companion.h"
#include "core/snapshot/manifest.h"

namespace kerncap::capture {

struct CodeRange {
  std::uint64_t base = 0, size = 0;
  std::int64_t delta = 0;  // loaded minus ELF address
  std::string digest;
};

class CodePointerFinder {
 public:
  static constexpr std::size_t limit = 65536;  // words kept; complete() is false past that

  explicit CodePointerFinder(std::vector<CodeRange> ranges);
  void scan(std::uint64_t address, std::span<const std::byte> bytes);  // 8-byte aligned words of [address, ...)
  bool complete() const { return complete_; }

  // Ascending addresses; `symbols_of(digest)` names the targets.
  template <typename SymbolsOf>
  std::vector<snapshot::CodePointer> take(SymbolsOf&& symbols_of);

 private:
  struct Hit {
    std::uint64_t address, target;
    std::size_t range;
  };
  static std::string name(const std::vector<CodeSymbol>& symbols, std::uint64_t address);

  std::vector<CodeRange> ranges_;  // ascending
  std::uint64_t low_ = 0, span_ = 0;
  std::vector<Hit> hits_;
  bool complete_ = true;
};

template <typename SymbolsOf>
std::vector<snapshot::CodePointer> CodePointerFinder::take(SymbolsOf&& symbols_of) {
  std::vector<snapshot::CodePointer> out;
  std::sort(hits_.begin(), hits_.end(), [](const Hit& a, const Hit& b) { return a.address < b.address; });
  for (const Hit& hit : hits_) {
    const CodeRange& range = ranges_[hit.range];
    const std::uint64_t in_elf = hit.target - static_cast<std::uint64_t>(range.delta);
    out.push_back({hit.address, range.digest, hit.target - range.base, name(symbols_of(range.digest), in_elf)});
  }
  return out;
}

}  // namespace kerncap::capture
