// v_trig_preop_f64: 53 bits of 2/pi at a position that depends on the argument's exponent (Payne-Hanek reduction).
#include <iterator>

#include "softgpu/isa/float_rules.h"

namespace kerncap::softgpu::isa {
namespace {

// The first 1216 fraction bits of 2/pi, computed with Machin's formula in integer arithmetic.
constexpr u64 two_over_pi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};
constexpr unsigned fraction_bits = 64 * std::size(two_over_pi), significant_bits = 53;
constexpr unsigned table_bits = 1201;  // what the hardware holds

u64 bits_from(unsigned first) {
  u64 result = 0;
  for (unsigned k = first; k < first + significant_bits; ++k) {
    const bool bit = k < table_bits && k < fraction_bits && (two_over_pi[k / 64] >> (63 - k % 64) & 1);
    result = result << 1 | u64{bit};
  }
  return result;
}

}  // namespace

double trigonometric_preoperation(double x, u32 segment) {
  constexpr int large = 1077, huge = 1968;  // exponent fields from the instruction's definition
  const int exponent = exponent_field(x);
  unsigned shift = (segment & 31) * significant_bits;
  if (exponent > large) shift += static_cast<unsigned>(exponent - large);
  int scale = -static_cast<int>(significant_bits) - static_cast<int>(shift);
  if (exponent >= huge) scale += 128;
  return std::ldexp(static_cast<double>(bits_from(shift)), scale);
}

}  // namespace kerncap::softgpu::isa
