// Conversions between number formats.
#include <algorithm>

#include "softgpu/isa/float_rules.h"
#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {
namespace {

// To integers: truncated, saturated, NaN is 0.
template <class I, class F>
I to_integer(F x) {
  constexpr F lowest = static_cast<F>(std::numeric_limits<I>::min());
  constexpr F beyond = static_cast<F>(static_cast<u64>(std::numeric_limits<I>::max()) + 1);
  if (!(x == x)) return 0;
  if (x < lowest) return std::numeric_limits<I>::min();
  if (x >= beyond) return std::numeric_limits<I>::max();
  return static_cast<I>(x);
}
i16 to_normalized_signed(float x) {
  return to_integer<i16>(round_even(std::clamp(std::isnan(x) ? 0.0f : x, -1.0f, 1.0f) * 32767.0f));
}
u16 to_normalized_unsigned(float x) {
  return to_integer<u16>(round_even(std::clamp(std::isnan(x) ? 0.0f : x, 0.0f, 1.0f) * 65535.0f));
}

half round_to_zero(float f) {
  half h = float_to_half(f);
  const float back = half_to_float(h);
  // The next half towards zero; infinity from a finite value becomes the largest number.
  if (std::fabs(back) > std::fabs(f)) --h.bits;
  return h;
}
u32 pack_byte(u32 value, u32 position, u32 into) {
  const u32 shift = 8 * (position & 3);
  return (into & ~(255u << shift)) | (value & 255) << shift;
}
float offset_of_signed_nibble(u32 x) {
  // v_cvt_off_f32_i4: sixteenths, -0.5 to 0.4375.
  return static_cast<float>(static_cast<i32>(x << 28) >> 28) / 16.0f;
}
u32 saturated_byte(i16 x) { return static_cast<u32>(std::clamp<int>(x, 0, 255)); }
u32 pack_words(u32 low, u32 high) { return (low & 0xffff) | high << 16; }

}  // namespace

std::span<const Instruction> convert_instructions() {
  static const auto* table =
      new std::vector<Instruction>{
          lanewise<float(i32)>([](i32 a) { return static_cast<float>(a); }, "v_cvt_f32_i32"),
          lanewise<float(u32)>([](u32 a) { return static_cast<float>(a); }, "v_cvt_f32_u32"),
          lanewise<u32(float)>([](float a) { return to_integer<u32>(a); }, "v_cvt_u32_f32"),
          lanewise<i32(float)>([](float a) { return to_integer<i32>(a); }, "v_cvt_i32_f32"),
          lanewise<i32(float)>([](float a) { return to_integer<i32>(std::floor(a + 0.5f)); }, "v_cvt_rpi_i32_f32"),
          lanewise<i32(float)>([](float a) { return to_integer<i32>(std::floor(a)); }, "v_cvt_flr_i32_f32"),
          lanewise<double(float)>([](float a) { return static_cast<double>(a); }, "v_cvt_f64_f32"),
          lanewise<float(double)>([](double a) { return static_cast<float>(a); }, "v_cvt_f32_f64"),
          lanewise<double(i32)>([](i32 a) { return static_cast<double>(a); }, "v_cvt_f64_i32"),
          lanewise<double(u32)>([](u32 a) { return static_cast<double>(a); }, "v_cvt_f64_u32"),
          lanewise<u32(double)>([](double a) { return to_integer<u32>(a); }, "v_cvt_u32_f64"),
          lanewise<i32(double)>([](double a) { return to_integer<i32>(a); }, "v_cvt_i32_f64"),
          lanewise<half(float)>([](float a) { return float_to_half(a); }, "v_cvt_f16_f32"),
          lanewise<float(half)>([](half a) { return half_to_float(a); }, "v_cvt_f32_f16"),
          lanewise<half(u16)>([](u16 a) { return float_to_half(static_cast<float>(a)); }, "v_cvt_f16_u16"),
          lanewise<half(i16)>([](i16 a) { return float_to_half(static_cast<float>(a)); }, "v_cvt_f16_i16"),
          lanewise<u16(half)>([](half a) { return to_integer<u16>(half_to_float(a)); }, "v_cvt_u16_f16"),
          lanewise<i16(half)>([](half a) { return to_integer<i16>(half_to_float(a)); }, "v_cvt_i16_f16"),
          lanewise<float(u32)>([](u32 a) { return static_cast<float>(a & 255); }, "v_cvt_f32_ubyte0"),
          lanewise<float(u32)>([](u32 a) { return static_cast<float>(a >> 8 & 255); }, "v_cvt_f32_ubyte1"),
          lanewise<float(u32)>([](u32 a) { return static_cast<float>(a >> 16 & 255); }, "v_cvt_f32_ubyte2"),
          lanewise<float(u32)>([](u32 a) { return static_cast<float>(a >> 24); }, "v_cvt_f32_ubyte3"),
          lanewise<float(u32)>([](u32 a) { return offset_of_signed_nibble(a); }, "v_cvt_off_f32_i4"),
          lanewise<u32(float, float)>(
              [](float a, float b) { return pack_words(round_to_zero(a).bits, round_to_zero(b).bits); },
              "v_cvt_pkrtz_f16_f32"),
          lanewise<u32(float, float)>(
              [](float a, float b) { return pack_words(float_to_bfloat(a).bits, float_to_bfloat(b).bits); },
              "v_cvt_pk_bf16_f32"),
          lanewise<u32(float, float)>(
              [](float a, float b) {
                return pack_words(static_cast<u16>(to_normalized_signed(a)), static_cast<u16>(to_normalized_signed(b)));
              },
              "v_cvt_pknorm_i16_f32"),
          lanewise<u32(float, float)>(
              [](float a, float b) { return pack_words(to_normalized_unsigned(a), to_normalized_unsigned(b)); },
              "v_cvt_pknorm_u16_f32"),
          lanewise<u32(half, half)>(
              [](half a, half b) {
                return pack_words(static_cast<u16>(to_normalized_signed(half_to_float(a))),
                                  static_cast<u16>(to_normalized_signed(half_to_float(b))));
              },
              "v_cvt_pknorm_i16_f16"),
          lanewise<u32(half, half)>(
              [](half a, half b) {
                return pack_words(to_normalized_unsigned(half_to_float(a)), to_normalized_unsigned(half_to_float(b)));
              },
              "v_cvt_pknorm_u16_f16"),
          lanewise<i16(half)>([](half a) { return to_normalized_signed(half_to_float(a)); }, "v_cvt_norm_i16_f16"),
          lanewise<u16(half)>([](half a) { return to_normalized_unsigned(half_to_float(a)); }, "v_cvt_norm_u16_f16"),
          lanewise<u32(u32, u32)>([](u32 a, u32 b) { return pack_words(std::min(a, 0xffffu), std::min(b, 0xffffu)); },
                                  "v_cvt_pk_u16_u32"),
          lanewise<u32(i32, i32)>(
              [](i32 a, i32 b) {
                return pack_words(static_cast<u32>(std::clamp(a, -32768, 32767)),
                                  static_cast<u32>(std::clamp(b, -32768, 32767)));
              },
              "v_cvt_pk_i16_i32"),
          lanewise<u32(float, float)>(
              [](float a, float b) {
                return pack_words(static_cast<u16>(to_integer<i16>(a)), static_cast<u16>(to_integer<i16>(b)));
              },
              "v_cvt_pk_i16_f32"),
          lanewise<u32(float, float)>(
              [](float a, float b) { return pack_words(to_integer<u16>(a), to_integer<u16>(b)); }, "v_cvt_pk_u16_f32"),
          lanewise<u32(float, u32, u32)>(
              [](float a, u32 b, u32 c) { return pack_byte(to_integer<u8>(round_even(a)), b, c); }, "v_cvt_pk_u8_f32"),
          lanewise<u32(float, u32, u32)>(
              [](float a, u32 b, u32 c) { return pack_byte(to_integer<u8>(round_even(a)), b, c); },
              "v_cvt_pkaccum_u8_f32", instruction_reads_destination),
          lanewise<u16(u32)>(
              [](u32 a) {
                return static_cast<u16>(saturated_byte(static_cast<i16>(a)) | saturated_byte(static_cast<i16>(a >> 16))
                                                                                  << 8);
              },
              "v_sat_pk_u8_i16"),
      };
  return *table;
}

}  // namespace kerncap::softgpu::isa
