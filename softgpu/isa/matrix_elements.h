// How matrix instructions (MFMA, SMFMAC) read one number of a lane's registers.
#pragma once

#include "softgpu/isa/half_math.h"
#include "softgpu/isa/small_float.h"

namespace kerncap::softgpu::isa {

enum class Element : u8 { f32, f16, bf16, int8, f64, fp8, bf8, xf32 };

// xf32 is f32 with 10 bits of mantissa; what is below them is rounded to nearest even.
inline float round_to_xf32(float x) {
  if (!std::isfinite(x)) return x;
  const u32 bits = std::bit_cast<u32>(x);
  return std::bit_cast<float>((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}

inline double matrix_element(const u32* rows, unsigned lane, unsigned index, Element type) {
  const auto part = [&](unsigned bits) {
    const unsigned in_dword = 32 / bits;
    return rows[index / in_dword * row_lanes + lane] >> bits * (index % in_dword);
  };
  switch (type) {
    case Element::f32:
      return std::bit_cast<float>(rows[index * row_lanes + lane]);
    case Element::xf32:
      return round_to_xf32(std::bit_cast<float>(rows[index * row_lanes + lane]));
    case Element::f16:
      return half_to_float({static_cast<u16>(part(16))});
    case Element::bf16:
      return bfloat_to_float({static_cast<u16>(part(16))});
    case Element::int8:
      return static_cast<i8>(part(8));
    case Element::fp8:
      return small_to_float(part(8), fp8_format);
    case Element::bf8:
      return small_to_float(part(8), bf8_format);
    case Element::f64:
      return std::bit_cast<double>(rows[2 * index * row_lanes + lane] | u64{rows[(2 * index + 1) * row_lanes + lane]}
                                                                            << 32);
  }
  return 0;
}

}  // namespace kerncap::softgpu::isa
