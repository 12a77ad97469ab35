// Fused f16 operations.
#pragma once

#include "softgpu/isa/float_rules.h"
#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {

// a*b is exact in double precision; the sum's lost bits go into its last place (round to odd), so that the rounding to
// half is the only one.
inline half half_fma(half a, half b, half c) {
  const double product = static_cast<double>(half_to_float(a)) * half_to_float(b), addend = half_to_float(c);
  const double sum = product + addend;
  if (!std::isfinite(sum)) return float_to_half(static_cast<float>(sum));
  const double recovered = sum - product, error = (product - (sum - recovered)) + (addend - recovered);
  double odd = sum;
  if (error != 0 && (std::bit_cast<u64>(sum) & 1) == 0) {
    const bool away = (error > 0) == (sum > 0);
    odd = std::bit_cast<double>(std::bit_cast<u64>(sum) + (away ? 1 : -1));
  }
  return double_to_half(odd);
}

// v_dot2_f32_f16: the products are exact in single precision; added low first.
inline float half_dot2(pair_half a, pair_half b, float c) {
  const float low = half_to_float(a.low) * half_to_float(b.low), high = half_to_float(a.high) * half_to_float(b.high);
  return static_cast<float>(static_cast<double>(low) + static_cast<double>(high) + static_cast<double>(c));
}

}  // namespace kerncap::softgpu::isa
