// Integer and bitwise vector instructions that are functions of their lanes.
#include <algorithm>

#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {
namespace {

constexpr unsigned accumulates = instruction_reads_destination;

template <class T>
T saturate(i64 value) {
  return static_cast<T>(std::clamp<i64>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}
constexpr u32 signed24(u32 a) { return static_cast<u32>(static_cast<i32>(a << 8) >> 8); }
u32 absolute_difference(u32 a, u32 b) { return a > b ? a - b : b - a; }
u32 sum_of_byte_differences(u32 a, u32 b) {
  u32 sum = 0;
  for (unsigned k = 0; k < 32; k += 8) sum += absolute_difference(a >> k & 255, b >> k & 255);
  return sum;
}
u32 reverse_bits(u32 x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
// v_perm_b32: bytes 0-3 of the second source, 4-7 of the first; 8-11 signs, 12 zero, above 0xff.
u32 permute_bytes(u32 a, u32 b, u32 selector) {
  const u64 bytes = b | u64{a} << 32;
  u32 result = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const u32 choice = selector >> 8 * k & 255;
    u32 byte;
    if (choice <= 7)
      byte = static_cast<u32>(bytes >> 8 * choice) & 255;
    else if (choice <= 11)
      byte = bytes >> (16 * (choice - 8) + 15) & 1 ? 255 : 0;
    else
      byte = choice == 12 ? 0 : 255;
    result |= byte << 8 * k;
  }
  return result;
}
// v_lerp_u8: averages of bytes, rounded up where the third source's byte is odd.
u32 average_bytes(u32 a, u32 b, u32 c) {
  u32 result = 0;
  for (unsigned k = 0; k < 32; k += 8) result |= (((a >> k & 255) + (b >> k & 255) + (c >> k & 1)) >> 1 & 255) << k;
  return result;
}
template <class T>
T median(T a, T b, T c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}
u64 quad_sad(u64 a, u32 b, u64 c) {
  u64 result = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const u32 part = sum_of_byte_differences(static_cast<u32>(a >> 8 * k), b) + static_cast<u32>(c >> 16 * k & 0xffff);
    result |= u64{part & 0xffff} << 16 * k;
  }
  return result;
}
u32 masked_sad(u32 a, u32 b, u32 c) {
  u32 sum = c;
  for (unsigned k = 0; k < 32; k += 8)
    if ((b >> k & 255) != 0) sum += absolute_difference(a >> k & 255, b >> k & 255);
  return sum;
}
u64 masked_quad_sad(u64 a, u32 b, u64 c) {
  u64 result = 0;
  for (unsigned k = 0; k < 4; ++k)
    result |= u64{masked_sad(static_cast<u32>(a >> 8 * k), b, static_cast<u32>(c >> 16 * k & 0xffff)) & 0xffff}
              << 16 * k;
  return result;
}

}  // namespace

std::span<const Instruction> integer_instructions() {
  using U1 = u32(u32);
  using U2 = u32(u32, u32);
  using U3 = u32(u32, u32, u32);
  using I2 = i32(i32, i32);
  using I3 = i32(i32, i32, i32);
  using H2 = u16(u16, u16);
  static const auto* table =
      new std::vector<Instruction>{
          lanewise<b32(b32)>([](b32 a) { return a; }, "v_mov_b32"),
          lanewise<b64(b64)>([](b64 a) { return a; }, "v_mov_b64"),
          lanewise<U1>([](u32 a) { return a; }, "v_accvgpr_read_b32"),
          lanewise<U1>([](u32 a) { return a; }, "v_accvgpr_write_b32"),
          lanewise<U1>([](u32 a) { return a; }, "v_accvgpr_mov_b32"),
          lanewise<U1>([](u32 a) { return ~a; }, "v_not_b32"),
          lanewise<U1>([](u32 a) { return reverse_bits(a); }, "v_bfrev_b32"),
          lanewise<U1>([](u32 a) { return a == 0 ? ~0u : static_cast<u32>(std::countl_zero(a)); }, "v_ffbh_u32"),
          lanewise<U1>([](u32 a) { return a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a)); }, "v_ffbl_b32"),
          lanewise<U1>(
              [](u32 a) {
                const u32 x = a ^ static_cast<u32>(static_cast<i32>(a) >> 31);
                return x == 0 ? ~0u : static_cast<u32>(std::countl_zero(x));
              },
              "v_ffbh_i32"),
          lanewise<U2>([](u32 a, u32 b) { return a & b; }, "v_and_b32"),
          lanewise<U2>([](u32 a, u32 b) { return a | b; }, "v_or_b32"),
          lanewise<U2>([](u32 a, u32 b) { return a ^ b; }, "v_xor_b32"),
          lanewise<U2>([](u32 a, u32 b) { return ~(a ^ b); }, "v_xnor_b32"),
          lanewise<U2>([](u32 a, u32 b) { return a + b; }, "v_add_u32"),
          lanewise<U2>([](u32 a, u32 b) { return a - b; }, "v_sub_u32"),
          lanewise<U2>([](u32 a, u32 b) { return b - a; }, "v_subrev_u32"),
          lanewise<U2>([](u32 a, u32 b) { return a + b < a ? ~0u : a + b; }, "v_add_u32.clamp"),
          lanewise<U2>([](u32 a, u32 b) { return a < b ? 0u : a - b; }, "v_sub_u32.clamp"),
          lanewise<U2>([](u32 a, u32 b) { return b < a ? 0u : b - a; }, "v_subrev_u32.clamp"),
          lanewise<I2>([](i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) + static_cast<u32>(b)); },
                       "v_add_i32"),
          lanewise<I2>([](i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) - static_cast<u32>(b)); },
                       "v_sub_i32"),
          lanewise<I2>([](i32 a, i32 b) { return saturate<i32>(i64{a} + b); }, "v_add_i32.clamp"),
          lanewise<I2>([](i32 a, i32 b) { return saturate<i32>(i64{a} - b); }, "v_sub_i32.clamp"),
          lanewise<U2>([](u32 a, u32 b) { return a << (b & 31); }, "v_lshl_b32"),
          lanewise<U2>([](u32 a, u32 b) { return b << (a & 31); }, "v_lshlrev_b32"),
          lanewise<U2>([](u32 a, u32 b) { return b >> (a & 31); }, "v_lshrrev_b32"),
          lanewise<i32(u32, i32)>([](u32 a, i32 b) { return b >> (a & 31); }, "v_ashrrev_i32"),
          lanewise<u64(u32, u64)>([](u32 a, u64 b) { return b << (a & 63); }, "v_lshlrev_b64"),
          lanewise<u64(u32, u64)>([](u32 a, u64 b) { return b >> (a & 63); }, "v_lshrrev_b64"),
          lanewise<i64(u32, i64)>([](u32 a, i64 b) { return b >> (a & 63); }, "v_ashrrev_i64"),
          lanewise<u64(u64, u32, u64)>([](u64 a, u32 b, u64 c) { return (a << (b & 7)) + c; }, "v_lshl_add_u64"),
          lanewise<I2>([](i32 a, i32 b) { return std::min(a, b); }, "v_min_i32"),
          lanewise<I2>([](i32 a, i32 b) { return std::max(a, b); }, "v_max_i32"),
          lanewise<U2>([](u32 a, u32 b) { return std::min(a, b); }, "v_min_u32"),
          lanewise<U2>([](u32 a, u32 b) { return std::max(a, b); }, "v_max_u32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return std::min(std::min(a, b), c); }, "v_min3_u32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return std::max(std::max(a, b), c); }, "v_max3_u32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return median(a, b, c); }, "v_med3_u32"),
          lanewise<I3>([](i32 a, i32 b, i32 c) { return std::min(std::min(a, b), c); }, "v_min3_i32"),
          lanewise<I3>([](i32 a, i32 b, i32 c) { return std::max(std::max(a, b), c); }, "v_max3_i32"),
          lanewise<I3>([](i32 a, i32 b, i32 c) { return median(a, b, c); }, "v_med3_i32"),
          lanewise<I3>([](i32 a, i32 b, i32 c) { return std::min(std::max(a, b), c); }, "v_maxmin_i32"),
          lanewise<I3>([](i32 a, i32 b, i32 c) { return std::max(std::min(a, b), c); }, "v_minmax_i32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return std::min(std::max(a, b), c); }, "v_maxmin_u32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return std::max(std::min(a, b), c); }, "v_minmax_u32"),
          lanewise<U2>([](u32 a, u32 b) { return a * b; }, "v_mul_lo_u32"),
          lanewise<U2>([](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }, "v_mul_hi_u32"),
          lanewise<I2>([](i32 a, i32 b) { return static_cast<i32>(i64{a} * b >> 32); }, "v_mul_hi_i32"),
          lanewise<U2>([](u32 a, u32 b) { return (a & 0xffffffu) * (b & 0xffffffu); }, "v_mul_u32_u24"),
          lanewise<U2>([](u32 a, u32 b) { return static_cast<u32>(u64{a & 0xffffffu} * (b & 0xffffffu) >> 32); },
                       "v_mul_hi_u32_u24"),
          lanewise<U2>([](u32 a, u32 b) { return signed24(a) * signed24(b); }, "v_mul_i32_i24"),
          lanewise<U2>(
              [](u32 a, u32 b) {
                return static_cast<u32>(
                    static_cast<u64>(i64{static_cast<i32>(signed24(a))} * static_cast<i32>(signed24(b))) >> 32);
              },
              "v_mul_hi_i32_i24"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return (a & 0xffffffu) * (b & 0xffffffu) + c; }, "v_mad_u32_u24"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return signed24(a) * signed24(b) + c; }, "v_mad_i32_i24"),
          lanewise<u32(u16, u16, u32)>([](u16 a, u16 b, u32 c) { return u32{a} * b + c; }, "v_mad_u32_u16"),
          lanewise<i32(i16, i16, i32)>(
              [](i16 a, i16 b, i32 c) { return static_cast<i32>(static_cast<u32>(i32{a} * b) + static_cast<u32>(c)); },
              "v_mad_i32_i16"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return a + b + c; }, "v_add3_u32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }, "v_lshl_add_u32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }, "v_add_lshl_u32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; }, "v_lshl_or_b32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return (a & b) | c; }, "v_and_or_b32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return a | b | c; }, "v_or3_b32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return a ^ b ^ c; }, "v_xor3_b32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return (a ^ b) + c; }, "v_xad_u32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }, "v_bfi_b32"),
          lanewise<U3>(
              [](u32 a, u32 b, u32 c) {
                const u32 width = c & 31;
                return a >> (b & 31) & ((1u << width) - 1);
              },
              "v_bfe_u32"),
          lanewise<i32(i32, u32, u32)>(
              [](i32 a, u32 b, u32 c) {
                const u32 offset = b & 31, width = c & 31;
                if (width == 0) return 0;
                if (offset + width >= 32) return a >> offset;
                return static_cast<i32>(static_cast<u32>(a) << (32 - offset - width)) >> (32 - width);
              },
              "v_bfe_i32"),
          lanewise<U2>([](u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); }, "v_bfm_b32"),
          lanewise<U2>([](u32 a, u32 b) { return static_cast<u32>(std::popcount(a)) + b; }, "v_bcnt_u32_b32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{a} << 32 | b) >> (c & 31)); },
                       "v_alignbit_b32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{a} << 32 | b) >> 8 * (c & 3)); },
                       "v_alignbyte_b32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return permute_bytes(a, b, c); }, "v_perm_b32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return average_bytes(a, b, c); }, "v_lerp_u8"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return sum_of_byte_differences(a, b) + c; }, "v_sad_u8"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return (sum_of_byte_differences(a, b) << 16) + c; }, "v_sad_hi_u8"),
          lanewise<U3>(
              [](u32 a, u32 b, u32 c) {
                return absolute_difference(a & 0xffff, b & 0xffff) + absolute_difference(a >> 16, b >> 16) + c;
              },
              "v_sad_u16"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return absolute_difference(a, b) + c; }, "v_sad_u32"),
          lanewise<U3>([](u32 a, u32 b, u32 c) { return masked_sad(a, b, c); }, "v_msad_u8"),
          lanewise<u64(u64, u32, u64)>([](u64 a, u32 b, u64 c) { return quad_sad(a, b, c); }, "v_qsad_pk_u16_u8"),
          lanewise<u64(u64, u32, u64)>([](u64 a, u32 b, u64 c) { return masked_quad_sad(a, b, c); },
                                       "v_mqsad_pk_u16_u8"),
          // 16 bits
          lanewise<H2>([](u16 a, u16 b) { return static_cast<u16>(a + b); }, "v_add_u16"),
          lanewise<H2>([](u16 a, u16 b) { return static_cast<u16>(a - b); }, "v_sub_u16"),
          lanewise<H2>([](u16 a, u16 b) { return static_cast<u16>(b - a); }, "v_subrev_u16"),
          lanewise<H2>([](u16 a, u16 b) { return saturate<u16>(i64{a} + b); }, "v_add_u16.clamp"),
          lanewise<H2>([](u16 a, u16 b) { return saturate<u16>(i64{a} - b); }, "v_sub_u16.clamp"),
          lanewise<H2>([](u16 a, u16 b) { return saturate<u16>(i64{b} - a); }, "v_subrev_u16.clamp"),
          lanewise<i16(i16, i16)>([](i16 a, i16 b) { return static_cast<i16>(a + b); }, "v_add_i16"),
          lanewise<i16(i16, i16)>([](i16 a, i16 b) { return static_cast<i16>(a - b); }, "v_sub_i16"),
          lanewise<i16(i16, i16)>([](i16 a, i16 b) { return saturate<i16>(i64{a} + b); }, "v_add_i16.clamp"),
          lanewise<i16(i16, i16)>([](i16 a, i16 b) { return saturate<i16>(i64{a} - b); }, "v_sub_i16.clamp"),
          lanewise<H2>([](u16 a, u16 b) { return static_cast<u16>(u32{a} * b); }, "v_mul_lo_u16"),
          lanewise<H2>([](u16 a, u16 b) { return static_cast<u16>(u32{b} << (a & 15)); }, "v_lshlrev_b16"),
          lanewise<H2>([](u16 a, u16 b) { return static_cast<u16>(b >> (a & 15)); }, "v_lshrrev_b16"),
          lanewise<i16(u16, i16)>([](u16 a, i16 b) { return static_cast<i16>(b >> (a & 15)); }, "v_ashrrev_i16"),
          lanewise<H2>([](u16 a, u16 b) { return std::min(a, b); }, "v_min_u16"),
          lanewise<H2>([](u16 a, u16 b) { return std::max(a, b); }, "v_max_u16"),
          lanewise<i16(i16, i16)>([](i16 a, i16 b) { return std::min(a, b); }, "v_min_i16"),
          lanewise<i16(i16, i16)>([](i16 a, i16 b) { return std::max(a, b); }, "v_max_i16"),
          lanewise<H2>([](u16 a, u16 b) { return static_cast<u16>(a & b); }, "v_and_b16"),
          lanewise<H2>([](u16 a, u16 b) { return static_cast<u16>(a | b); }, "v_or_b16"),
          lanewise<H2>([](u16 a, u16 b) { return static_cast<u16>(a ^ b); }, "v_xor_b16"),
          lanewise<u16(u16)>([](u16 a) { return static_cast<u16>(~a); }, "v_not_b16"),
          lanewise<u16(u16)>([](u16 a) { return a; }, "v_mov_b16"),
          lanewise<u16(u16, u16, u16)>([](u16 a, u16 b, u16 c) { return static_cast<u16>(u32{a} * b + c); },
                                       "v_mad_u16", instruction_keeps_high),
          lanewise<i16(i16, i16, i16)>([](i16 a, i16 b, i16 c) { return static_cast<i16>(i32{a} * b + c); },
                                       "v_mad_i16", instruction_keeps_high),
          lanewise<u16(u16, u16, u16)>([](u16 a, u16 b, u16 c) { return static_cast<u16>(u32{a} * b + c); },
                                       "v_mad_legacy_u16"),
          lanewise<i16(i16, i16, i16)>([](i16 a, i16 b, i16 c) { return static_cast<i16>(i32{a} * b + c); },
                                       "v_mad_legacy_i16"),
          lanewise<u16(u16, u16, u16)>([](u16 a, u16 b, u16 c) { return std::min(std::min(a, b), c); }, "v_min3_u16",
                                       instruction_keeps_high),
          lanewise<u16(u16, u16, u16)>([](u16 a, u16 b, u16 c) { return std::max(std::max(a, b), c); }, "v_max3_u16",
                                       instruction_keeps_high),
          lanewise<u16(u16, u16, u16)>([](u16 a, u16 b, u16 c) { return median(a, b, c); }, "v_med3_u16",
                                       instruction_keeps_high),
          lanewise<i16(i16, i16, i16)>([](i16 a, i16 b, i16 c) { return std::min(std::min(a, b), c); }, "v_min3_i16",
                                       instruction_keeps_high),
          lanewise<i16(i16, i16, i16)>([](i16 a, i16 b, i16 c) { return std::max(std::max(a, b), c); }, "v_max3_i16",
                                       instruction_keeps_high),
          lanewise<i16(i16, i16, i16)>([](i16 a, i16 b, i16 c) { return median(a, b, c); }, "v_med3_i16",
                                       instruction_keeps_high),
          lanewise<u32(u16)>([](u16 a) { return u32{a}; }, "v_cvt_u32_u16"),
          lanewise<i32(i16)>([](i16 a) { return i32{a}; }, "v_cvt_i32_i16"),
          lanewise<u32(half, half)>([](half a, half b) { return u32{a.bits} | u32{b.bits} << 16; }, "v_pack_b32_f16"),
          // Dot products of integers, VOP2 with the destination as accumulator.
          lanewise<i32(u32, u32, i32)>(
              [](u32 a, u32 b, i32 c) {
                i64 sum = c;
                for (unsigned k = 0; k < 32; k += 8) sum += i32{static_cast<i8>(a >> k)} * static_cast<i8>(b >> k);
                return static_cast<i32>(sum);
              },
              "v_dot4c_i32_i8", accumulates),
          lanewise<i32(u32, u32, i32)>(
              [](u32 a, u32 b, i32 c) {
                i64 sum = c;
                for (unsigned k = 0; k < 32; k += 4)
                  sum += (static_cast<i32>(a << (28 - k)) >> 28) * (static_cast<i32>(b << (28 - k)) >> 28);
                return static_cast<i32>(sum);
              },
              "v_dot8c_i32_i4", accumulates),
          lanewise<i32(u32, u32, i32)>(
              [](u32 a, u32 b, i32 c) {
                return static_cast<i32>(i64{c} + i32{static_cast<i16>(a)} * static_cast<i16>(b) +
                                        i64{static_cast<i16>(a >> 16)} * static_cast<i16>(b >> 16));
              },
              "v_dot2c_i32_i16", accumulates),
      };
  return *table;
}

}  // namespace kerncap::softgpu::isa
