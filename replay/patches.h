// Words of the captured memory that must be other ones in this process: code pointers into a candidate, kernel
// arguments that belong to the process. Applied to the state before and to the expected state after, so that what is
// compared is the kernel's work and not the process. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kerncap::replay {

class Patches {
 public:
  // `original`: what the snapshot has there; as long as `bytes`.
  void add(std::uint64_t address, std::span<const std::byte> original, std::span<const std::byte> bytes);
  void add_word(std::uint64_t address, std::uint64_t original, std::uint64_t value);
  void add_all(const Patches& others);

  // Overwrites what falls into [address, address + bytes.size()).
  void apply(std::uint64_t address, std::span<std::byte> bytes) const;
  // The same for a later state: only bytes that still are the original ones, because a kernel may have overwritten
  // them.
  void apply_where_original(std::uint64_t address, std::span<std::byte> bytes) const;

  bool touches(std::uint64_t address, std::uint64_t size) const;
  bool empty() const { return patches_.empty(); }
  std::size_t size() const { return patches_.size(); }

 private:
  struct Patch {
    std::uint64_t address = 0;
    std::vector<std::byte> original, bytes;
  };
  void apply(std::uint64_t address, std::span<std::byte> bytes, bool only_original) const;

  std::vector<Patch> patches_;  // ascending
  std::uint64_t longest_ = 0;
};

}  // namespace kerncap::replay
