#include "replay/compare.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace kerncap::replay {
namespace {

constexpr std::array nan_names{"equal", "same-bits", "forbidden"};

// Maps the bits of a sign-magnitude float to integers that grow with the value; +0 and -0 both become 0.
template <typename Bits, typename Signed>
Signed ordered(const std::byte* bytes) {
  Bits bits;
  std::memcpy(&bits, bytes, sizeof bits);
  constexpr Bits sign = Bits{1} << (sizeof(Bits) * 8 - 1);
  const auto magnitude = static_cast<Signed>(bits & static_cast<Bits>(~sign));
  return (bits & sign) != 0 ? static_cast<Signed>(-magnitude) : magnitude;
}

template <typename Bits, typename Signed>
std::uint64_t distance(const std::byte* a, const std::byte* b) {
  const auto x = ordered<Bits, Signed>(a), y = ordered<Bits, Signed>(b);
  return x > y ? static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)
               : static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x);
}

// One element whose bits differ (or any element under NanPolicy::forbidden). Returns whether it passes.
bool judge(ElementType type, const Tolerance& tolerance, const std::byte* expected, const std::byte* actual,
           bool same_bits, Statistics& result) {
  const double want = element_value(type, expected), got = element_value(type, actual);
  if (!is_floating(type)) {
    const double error = std::abs(got - want);
    result.max_absolute = std::max(result.max_absolute, error);
    if (want != 0) result.max_relative = std::max(result.max_relative, error / std::abs(want));
    return false;
  }
  const bool want_nan = std::isnan(want), got_nan = std::isnan(got);
  if (got_nan && !want_nan) ++result.nans;
  if (want_nan || got_nan) {
    if (tolerance.nan == NanPolicy::forbidden && got_nan) return false;
    if (want_nan && got_nan) return same_bits || tolerance.nan == NanPolicy::equal;
    return false;
  }
  if (same_bits) return true;
  const double error = std::abs(got - want);  // infinite when exactly one side is
  const std::uint64_t ulps = ulp_distance(type, expected, actual);
  result.max_absolute = std::max(result.max_absolute, error);
  if (want != 0 && std::isfinite(want)) result.max_relative = std::max(result.max_relative, error / std::abs(want));
  result.max_ulps = std::max(result.max_ulps, ulps);
  if (tolerance.exact()) return false;
  // An infinity never passes for a number by a tolerance: overflow is not a rounding error.
  if (std::isinf(want) != std::isinf(got)) return false;
  return ulps <= tolerance.ulps || error <= tolerance.absolute || error <= tolerance.relative * std::abs(want);
}

}  // namespace

const char* to_string(NanPolicy policy) { return nan_names[static_cast<std::size_t>(policy)]; }

std::optional<NanPolicy> nan_policy(std::string_view name) {
  const auto found = std::find(nan_names.begin(), nan_names.end(), name);
  if (found == nan_names.end()) return std::nullopt;
  return static_cast<NanPolicy>(found - nan_names.begin());
}

std::uint64_t ulp_distance(ElementType type, const std::byte* a, const std::byte* b) {
  if (std::isnan(element_value(type, a)) || std::isnan(element_value(type, b))) {
    return std::numeric_limits<std::uint64_t>::max();
  }
  switch (size_of(type)) {
    case 2:
      return distance<std::uint16_t, std::int32_t>(a, b);
    case 4:
      return distance<std::uint32_t, std::int64_t>(a, b);
    default:
      return distance<std::uint64_t, std::int64_t>(a, b);
  }
}

void compare(ElementType type, const Tolerance& tolerance, std::span<const std::byte> expected,
             std::span<const std::byte> actual, std::uint64_t offset, Statistics& result) {
  const std::size_t length = std::min(expected.size(), actual.size());
  const std::size_t element = size_of(type);
  const std::size_t whole = length / element * element;
  const bool look_at_equal = is_floating(type) && tolerance.nan == NanPolicy::forbidden;
  result.elements += whole / element;
  if (look_at_equal || std::memcmp(expected.data(), actual.data(), whole) != 0) {
    for (std::size_t at = 0; at < whole; at += element) {
      const std::byte *want = expected.data() + at, *got = actual.data() + at;
      const bool same = std::memcmp(want, got, element) == 0;
      if (same && !look_at_equal) continue;
      if (!same) ++result.differing;
      if (judge(type, tolerance, want, got, same, result)) continue;
      ++result.outside;
      if (!result.first) result.first = Difference{offset + at, element_text(type, want), element_text(type, got)};
    }
  }
  if (whole < length) {
    compare(ElementType::bytes, tolerance, expected.subspan(whole, length - whole),
            actual.subspan(whole, length - whole), offset + whole, result);
  }
}

}  // namespace kerncap::replay
