// CDNA3's 8-bit floats: fp8 with 4 bits of exponent (bias 8) and 3 of mantissa, bf8 with 5 (bias 16) and 2. They have
// no infinity and no negative zero: 0x80 is the only NaN ("FNUZ" formats).
#pragma once

#include <algorithm>

#include "softgpu/isa/float_rules.h"

namespace kerncap::softgpu::isa {

struct SmallFormat {
  int mantissa_bits, bias;
  constexpr u32 largest() const { return 0x7f; }
};
inline constexpr SmallFormat fp8_format{3, 8}, bf8_format{2, 16};
inline constexpr u32 small_nan = 0x80;

inline float small_to_float(u32 bits, SmallFormat format) {
  bits &= 255;
  if (bits == small_nan) return std::numeric_limits<float>::quiet_NaN();
  const u32 mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const int exponent = static_cast<int>((bits & 0x7f) >> format.mantissa_bits);
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), 1 - format.bias - format.mantissa_bits)
                              : std::ldexp(static_cast<float>(mantissa + (1u << format.mantissa_bits)),
                                           exponent - format.bias - format.mantissa_bits);
  return bits & 0x80 ? -magnitude : magnitude;
}

// `fraction` is added to the part below the last place before it is cut off: a random number in [0, 1) for stochastic
// rounding; below zero: round to nearest even. What is too large becomes the NaN, or the largest number with `clamp`
// (MODE's FP16_OVFL).
inline u32 float_to_small(float x, SmallFormat format, bool clamp, double fraction = -1) {
  if (std::isnan(x)) return small_nan;
  const u32 sign = std::signbit(x) ? 0x80u : 0u;
  const double magnitude = std::fabs(static_cast<double>(x));
  const u32 overflow = clamp ? sign | format.largest() : small_nan;
  if (std::isinf(x)) return overflow;
  if (magnitude == 0) return 0;
  int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  const double units = std::ldexp(magnitude, format.mantissa_bits - exponent);
  auto rounded = static_cast<u32>(fraction < 0 ? round_even(units) : std::floor(units + fraction));
  if (rounded == 2u << format.mantissa_bits) {
    rounded /= 2;
    ++exponent;
  }
  if (rounded == 0) return 0;
  const u32 one = 1u << format.mantissa_bits;
  const int field = rounded < one ? 0 : exponent + format.bias;
  const u32 bits = static_cast<u32>(field) << format.mantissa_bits | (rounded & (one - 1));
  return bits > format.largest() ? overflow : sign | bits;
}

}  // namespace kerncap::softgpu::isa
