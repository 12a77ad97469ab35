#pragma once

#include <cstdint>

namespace common {

// SplitMix64: the same numbers from a seed with every compiler and standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

  // In [0, bound).
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

  // In [low, high).
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11) * (1.0 / 9007199254740992.0));
  }

 private:
  std::uint64_t state_;
};

}  // namespace common
