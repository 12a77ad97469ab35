#include "replay/patches.h"

#include <algorithm>
#include <cstring>

namespace kerncap::replay {

void Patches::add(std::uint64_t address, std::span<const std::byte> original, std::span<const std::byte> bytes) {
  Patch patch{address, {original.begin(), original.end()}, {bytes.begin(), bytes.end()}};
  const auto place = std::upper_bound(patches_.begin(), patches_.end(), address,
                                      [](std::uint64_t a, const Patch& p) { return a < p.address; });
  longest_ = std::max<std::uint64_t>(longest_, bytes.size());
  patches_.insert(place, std::move(patch));
}

void Patches::add_word(std::uint64_t address, std::uint64_t original, std::uint64_t value) {
  add(address, std::as_bytes(std::span(&original, 1)), std::as_bytes(std::span(&value, 1)));
}

void Patches::add_all(const Patches& others) {
  for (const Patch& patch : others.patches_) add(patch.address, patch.original, patch.bytes);
}

void Patches::apply(std::uint64_t address, std::span<std::byte> bytes) const { apply(address, bytes, false); }

void Patches::apply_where_original(std::uint64_t address, std::span<std::byte> bytes) const {
  apply(address, bytes, true);
}

void Patches::apply(std::uint64_t address, std::span<std::byte> bytes, bool only_original) const {
  const std::uint64_t end = address + bytes.size();
  const std::uint64_t from = address > longest_ ? address - longest_ : 0;
  auto patch = std::lower_bound(patches_.begin(), patches_.end(), from,
                                [](const Patch& p, std::uint64_t a) { return p.address < a; });
  for (; patch != patches_.end() && patch->address < end; ++patch) {
    const std::uint64_t first = std::max(patch->address, address);
    const std::uint64_t last = std::min(patch->address + patch->bytes.size(), end);
    if (first >= last) continue;
    std::byte* const target = bytes.data() + (first - address);
    const std::size_t inside = first - patch->address, size = last - first;
    if (only_original && std::memcmp(target, patch->original.data() + inside, size) != 0) continue;
    std::memcpy(target, patch->bytes.data() + inside, size);
  }
}

bool Patches::touches(std::uint64_t address, std::uint64_t size) const {
  return std::any_of(patches_.begin(), patches_.end(), [&](const Patch& p) {
    return p.address < address + size && address < p.address + p.bytes.size();
  });
}

}  // namespace kerncap::replay
