// Changed inputs: a second state of memory on which a candidate must agree with the captured kernel.
//
// One captured dispatch is one example. A kernel that leaves an output alone because it already holds the right values,
// or that has the results built in, passes on it; on values it has never seen, it doesn't. Changes are a function of
// seed and address alone, so that two processes make the same state without talking. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/element_type.h"

namespace kerncap::replay {

struct Perturbation {
  enum class Kind {
    scale_floats,  // each finite value by a few percent, zero to a small number; sign and size stay plausible
    flip_bytes,    // every byte: only for memory whose old content should not matter
  };
  struct Stretch {
    std::uint64_t address = 0, size = 0;
    ElementType element = ElementType::bytes;
    Kind kind = Kind::scale_floats;
  };
  std::uint64_t seed = 0;
  std::vector<Stretch> stretches;  // begin on a multiple of the element size

  bool touches(std::uint64_t address, std::uint64_t size) const;
  // Changes the part of `bytes`, which hold memory from `address` on, that lies in a stretch. Elements that reach past
  // an end of `bytes` or of the stretch stay as they are, so callers must cut on multiples of 8.
  void apply(std::uint64_t address, std::span<std::byte> bytes) const;
};

}  // namespace kerncap::replay
