// Comparing what a kernel left in memory with what it should have left: typed where the type is known, bitwise
// elsewhere. Pure functions over bytes; all may run in parallel on different results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "replay/element_type.h"

namespace kerncap::replay {

enum class NanPolicy {
  equal,      // any NaN equals any NaN (the default): payloads differ between correct compilers
  same_bits,  // NaNs must agree in every bit
  forbidden,  // a NaN in the result is an error, also where one is expected
};
const char* to_string(NanPolicy policy);
std::optional<NanPolicy> nan_policy(std::string_view name);

// An element passes when its bits are equal, or when ANY of the three limits holds. The default is exact. Limits apply
// to floating-point elements only; integers, pointers and bytes are always compared exactly.
struct Tolerance {
  double absolute = 0, relative = 0;  // |actual - expected| <= absolute, <= relative * |expected|
  std::uint64_t ulps = 0;             // units in the last place of the element's own type
  NanPolicy nan = NanPolicy::equal;
  bool exact() const { return absolute == 0 && relative == 0 && ulps == 0 && nan != NanPolicy::forbidden; }
  bool operator==(const Tolerance&) const = default;
};

struct Difference {
  std::uint64_t offset = 0;      // bytes from the start of what was compared
  std::string expected, actual;  // as text
};

struct Statistics {
  std::uint64_t elements = 0;   // compared
  std::uint64_t differing = 0;  // bits differ
  std::uint64_t outside = 0;    // beyond the tolerance: each of them makes the answer "no"
  double max_absolute = 0, max_relative = 0;
  std::uint64_t max_ulps = 0;
  std::uint64_t nans = 0;           // NaN in the result where none was expected
  std::optional<Difference> first;  // the first element outside the tolerance
};

// Compares two equally long spans of elements; `offset` is where they start, for Difference::offset; adds to `result`.
// A tail shorter than an element is compared as bytes.
void compare(ElementType type, const Tolerance& tolerance, std::span<const std::byte> expected,
             std::span<const std::byte> actual, std::uint64_t offset, Statistics& result);

// Distance of two floating-point values of a type in units in the last place: 0 when equal (+0 and -0 are),
// UINT64_MAX when either is NaN.
std::uint64_t ulp_distance(ElementType type, const std::byte* a, const std::byte* b);

}  // namespace kerncap::replay
