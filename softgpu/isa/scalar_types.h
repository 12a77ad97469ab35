// The number formats that instructions work on, and how a host computes them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace kerncap::softgpu::isa {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

// Storage of an IEEE binary16; arithmetic goes through float or double.
struct half {
  u16 bits = 0;
};
struct bfloat {
  u16 bits = 0;
};
// "Any 32/64 bits": an integer for the computation, a float for the source modifiers neg and abs.
struct b32 {
  u32 bits = 0;
};
struct b64 {
  u64 bits = 0;
};
// Two 16-bit values in one register (VOP3P).
struct pk16 {
  u32 bits = 0;
};

inline float half_to_float(half h) {
#ifdef __F16C__
  return _cvtsh_ss(h.bits);
#else
  const u32 sign = u32{h.bits & 0x8000u} << 16, exponent = (h.bits >> 10) & 31, mantissa = h.bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13 | (mantissa ? 0x400000u : 0u));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
#endif
}

// Rounds to nearest even, from the exact value of a double: one rounding only. The truncation to float keeps the lost
// bits in the last place ("round to odd"), which leaves the second rounding exact.
inline half float_to_half(float f) {
#ifdef __F16C__
  return {static_cast<u16>(_cvtss_sh(f, _MM_FROUND_CUR_DIRECTION))};
#else
  const u32 x = std::bit_cast<u32>(f), sign = x >> 16 & 0x8000u, magnitude = x & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<u16>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu))};
  if (magnitude >= 0x47800000u) return {static_cast<u16>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;  // 2^24: the value of a denormal's last place
    return {static_cast<u16>(sign | static_cast<u32>(std::nearbyint(scaled)))};
  }
  const u32 rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23);
  return {static_cast<u16>(sign | rounded >> 13)};
#endif
}

inline float round_to_odd(double d) {
  const float nearest = static_cast<float>(d);
  if (static_cast<double>(nearest) == d || std::isnan(d) || std::isinf(nearest)) {
    if (std::isinf(nearest) && !std::isinf(d)) return std::copysign(std::numeric_limits<float>::max(), nearest);
    return nearest;
  }
  u32 bits = std::bit_cast<u32>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(d)) --bits;
  return std::bit_cast<float>(bits | 1u);
}
inline half double_to_half(double d) { return float_to_half(round_to_odd(d)); }

inline float bfloat_to_float(bfloat b) { return std::bit_cast<float>(u32{b.bits} << 16); }
inline bfloat float_to_bfloat(float f) {
  const u32 x = std::bit_cast<u32>(f);
  if ((x & 0x7fffffffu) > 0x7f800000u) return {static_cast<u16>(x >> 16 | 0x40u)};
  return {static_cast<u16>((x + 0x7fffu + (x >> 16 & 1u)) >> 16)};
}

}  // namespace kerncap::softgpu::isa
