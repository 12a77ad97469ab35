// Rules of the hardware's floating point that several instructions share.
#pragma once

#include "softgpu/isa/scalar_types.h"

namespace kerncap::softgpu::isa {

// IEEE 754-2008 minNum/maxNum with -0 < +0; a signaling NaN is quieted by the host's arithmetic.
template <class T>
T minimum(T a, T b) {
  if (a != a) return b != b ? a + b : b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T maximum(T a, T b) {
  if (a != a) return b != b ? a + b : b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
// With a NaN the smallest of the three.
template <class T>
T median(T a, T b, T c) {
  if (a != a || b != b || c != c) return minimum(minimum(a, b), c);
  return maximum(minimum(a, b), minimum(maximum(a, b), c));
}
// To the nearest even integer, whatever MODE's rounding is.
inline float round_even(float x) { return __builtin_roundevenf(x); }
inline double round_even(double x) { return __builtin_roundeven(x); }

// The exponent field.
inline int exponent_field(float x) { return static_cast<int>(std::bit_cast<u32>(x) >> 23 & 255); }
inline int exponent_field(double x) { return static_cast<int>(std::bit_cast<u64>(x) >> 52 & 2047); }

template <class T>
struct DivideConstants;
template <>
struct DivideConstants<float> {
  static constexpr int far_apart = 96, tiny_numerator = 23, scale = 64, underflow = -150, top = 255, bias = 127;
};
template <>
struct DivideConstants<double> {
  static constexpr int far_apart = 768, tiny_numerator = 53, scale = 128, underflow = -1075, top = 2047, bias = 1023;
};

// Operations as in the CDNA instruction set manuals (V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP).
template <class T>
T divide_scale(T s0, T s1, T s2, bool& flag) {
  using C = DivideConstants<T>;
  constexpr auto is_denormal = [](T x) { return x != 0 && std::fabs(x) < std::numeric_limits<T>::min(); };
  flag = false;
  const auto same = [](T a, T b) { return a == b; };
  if (s2 == 0 || s1 == 0) return std::numeric_limits<T>::quiet_NaN();
  if (exponent_field(s2) - exponent_field(s1) >= C::far_apart) {
    flag = true;
    return same(s0, s1) ? std::ldexp(s0, C::scale) : s0;
  }
  if (is_denormal(s1)) return std::ldexp(s0, C::scale);
  const bool tiny_reciprocal = is_denormal(T(1) / s1),
             tiny_quotient = is_denormal(s2 / s1) || (s2 / s1 == 0 && s2 != 0);
  if (tiny_reciprocal && tiny_quotient) {
    // The manuals print an upward scale here, with which the largest denominators would overflow; downward is what
    // makes the reciprocal normal and the quotient exact.
    flag = true;
    return same(s0, s1) ? std::ldexp(s0, -C::scale) : s0;
  }
  if (tiny_reciprocal) return std::ldexp(s0, -C::scale);
  if (tiny_quotient) {
    flag = true;
    return same(s0, s2) ? std::ldexp(s0, C::scale) : s0;
  }
  if (exponent_field(s2) <= C::tiny_numerator) return std::ldexp(s0, C::scale);
  return s0;
}

template <class T>
T divide_fma(T s0, T s1, T s2, bool flag) {
  using C = DivideConstants<T>;
  const T result = std::fma(s0, s1, s2);
  return flag ? std::ldexp(result, exponent_field(s2) > C::bias ? C::scale : -C::scale) : result;
}

template <class T>
T divide_fixup(T s0, T s1, T s2) {
  using C = DivideConstants<T>;
  const bool negative = std::signbit(s1) != std::signbit(s2);
  const auto with_sign = [negative](T x) { return negative ? -x : x; };
  constexpr T infinity = std::numeric_limits<T>::infinity();
  if (std::isnan(s2)) return s2 + s2;  // quieted
  if (std::isnan(s1)) return s1 + s1;
  if ((s1 == 0 && s2 == 0) || (std::isinf(s1) && std::isinf(s2))) return -std::numeric_limits<T>::quiet_NaN();
  if (s1 == 0 || std::isinf(s2)) return with_sign(infinity);
  if (std::isinf(s1) || s2 == 0) return with_sign(T(0));
  if (exponent_field(s2) - exponent_field(s1) < C::underflow) return with_sign(T(0));
  if (exponent_field(s1) == C::top) return with_sign(infinity);
  if (std::isnan(s0)) return with_sign(infinity);  // the refinement of a quotient that overflows ends as inf - inf
  return with_sign(std::fabs(s0));
}

// v_trig_preop_f64: a segment of 2/pi for the argument reduction of large numbers.
double trigonometric_preoperation(double x, u32 segment);

}  // namespace kerncap::softgpu::isa
