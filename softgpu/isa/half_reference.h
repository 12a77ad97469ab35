// f16 for the tests, written once more: conversions from exact values, fused multiply-add.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "softgpu/isa/scalar_types.h"

namespace kerncap::softgpu::isa {

// An independent conversion to half from an exact value: nearest, ties to even.
inline half exact_half(long double x) {
  const u16 sign = std::signbit(x) ? 0x8000 : 0;
  const long double m = std::fabs(x);
  if (std::isnan(m)) return {0x7e00};
  if (m >= 65520.0L) return {static_cast<u16>(sign | 0x7c00)};
  int exponent = m == 0 ? -24 : std::max(std::ilogb(m) - 10, -24);
  const long double scaled = std::ldexp(m, -exponent), floor = std::floor(scaled), rest = scaled - floor;
  auto units = static_cast<u64>(floor);
  if (rest > 0.5L || (rest == 0.5L && (units & 1))) ++units;
  if (units == 2048) units = 1024, ++exponent;
  return units < 1024 ? half{static_cast<u16>(sign | units)}
                      : half{static_cast<u16>(sign | ((exponent + 25) << 10) | (units - 1024))};
}
inline long double value_of(half h) {
  const int exponent = h.bits >> 10 & 31;
  const long double sign = h.bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return h.bits & 0x3ff ? std::numeric_limits<long double>::quiet_NaN()
                          : sign * std::numeric_limits<long double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(static_cast<long double>(h.bits & 0x3ff), -24)
                               : std::ldexp(static_cast<long double>(1024 + (h.bits & 0x3ff)), exponent - 25));
}

// A product has 22 bits and the sum spans 80: a __float128 holds it exactly.
inline half exact_half_fma(half a, half b, half c) {
  const __float128 exact = static_cast<__float128>(value_of(a)) * value_of(b) + value_of(c);
  long double nearest = static_cast<long double>(exact);
  if (std::isfinite(nearest) &&
      static_cast<__float128>(nearest) != exact) {  // round to odd, so that halving stays exact
    const bool up = exact > static_cast<__float128>(nearest);
    u64 mantissa;
    std::memcpy(&mantissa, &nearest, 8);
    if ((mantissa & 1) == 0)
      nearest = std::nextafter(
          nearest, up ? std::numeric_limits<long double>::infinity() : -std::numeric_limits<long double>::infinity());
  }
  return exact_half(nearest);
}

}  // namespace kerncap::softgpu::isa
