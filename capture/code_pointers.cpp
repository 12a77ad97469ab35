#include "capture/code_pointers.h"

#include <cstring>

namespace kerncap::capture {

CodePointerFinder::CodePointerFinder(std::vector<CodeRange> ranges) : ranges_(std::move(ranges)) {
  std::sort(ranges_.begin(), ranges_.end(), [](const auto& a, const auto& b) { return a.base < b.base; });
  if (ranges_.empty()) return;
  low_ = ranges_.front().base;
  for (const CodeRange& range : ranges_) span_ = std::max(span_, range.base + range.size - low_);
}

void CodePointerFinder::scan(std::uint64_t address, std::span<const std::byte> bytes) {
  if (span_ == 0) return;
  const std::uint64_t skip = (8 - address % 8) % 8;
  for (std::uint64_t offset = skip; offset + 8 <= bytes.size(); offset += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + offset, 8);
    if (word - low_ >= span_) continue;  // also below low_: wraps around
    auto range = std::upper_bound(ranges_.begin(), ranges_.end(), word,
                                  [](std::uint64_t value, const CodeRange& r) { return value < r.base; });
    --range;  // word >= low_, so there is one
    if (word - range->base >= range->size) continue;
    if (hits_.size() == limit) {
      complete_ = false;
      return;
    }
    hits_.push_back({address + offset, word, static_cast<std::size_t>(range - ranges_.begin())});
  }
}

std::string CodePointerFinder::name(const std::vector<CodeSymbol>& symbols, std::uint64_t address) {
  auto found = std::upper_bound(symbols.begin(), symbols.end(), address,
                                [](std::uint64_t value, const CodeSymbol& s) { return value < s.address; });
  while (found != symbols.begin()) {
    --found;
    if (address < found->address + std::max<std::uint64_t>(found->size, 1)) return found->name;
    if (address - found->address > (std::uint64_t{1} << 20)) break;  // functions longer than this are not looked for
  }
  return {};
}

}  // namespace kerncap::capture
