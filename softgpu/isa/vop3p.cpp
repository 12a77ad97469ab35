// Packed instructions (VOP3P) and dot products.
#include <algorithm>

#include "softgpu/isa/half_math.h"

namespace kerncap::softgpu::isa {
namespace {

template <auto F>
pair_half each_half(pair_half a, pair_half b) {
  return {F(a.low, b.low), F(a.high, b.high)};
}
template <class T, class F>
pair_i16 each_integer(F f, pair_i16 a, pair_i16 b) {
  return {static_cast<u16>(f(static_cast<T>(a.low), static_cast<T>(b.low))),
          static_cast<u16>(f(static_cast<T>(a.high), static_cast<T>(b.high)))};
}
half add(half a, half b) { return float_to_half(half_to_float(a) + half_to_float(b)); }
half multiply(half a, half b) { return float_to_half(half_to_float(a) * half_to_float(b)); }
half lower(half a, half b) { return float_to_half(minimum(half_to_float(a), half_to_float(b))); }
half higher(half a, half b) { return float_to_half(maximum(half_to_float(a), half_to_float(b))); }

i64 dot4_i8(u32 a, u32 b) {
  i64 sum = 0;
  for (unsigned k = 0; k < 32; k += 8) sum += i32{static_cast<i8>(a >> k)} * static_cast<i8>(b >> k);
  return sum;
}
u64 dot4_u8(u32 a, u32 b) {
  u64 sum = 0;
  for (unsigned k = 0; k < 32; k += 8) sum += u64{a >> k & 255} * (b >> k & 255);
  return sum;
}
i64 dot8_i4(u32 a, u32 b) {
  i64 sum = 0;
  for (unsigned k = 0; k < 32; k += 4)
    sum += i64{static_cast<i32>(a << (28 - k)) >> 28} * (static_cast<i32>(b << (28 - k)) >> 28);
  return sum;
}
u64 dot8_u4(u32 a, u32 b) {
  u64 sum = 0;
  for (unsigned k = 0; k < 32; k += 4) sum += u64{a >> k & 15} * (b >> k & 15);
  return sum;
}
i32 saturated(i64 x) {
  return static_cast<i32>(std::clamp<i64>(x, std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max()));
}
u32 saturated(u64 x) { return static_cast<u32>(std::min<u64>(x, std::numeric_limits<u32>::max())); }
i16 saturated16(i32 x) { return static_cast<i16>(std::clamp(x, -32768, 32767)); }
u16 saturated_u16(i32 x) { return static_cast<u16>(std::clamp(x, 0, 65535)); }

// v_dot4_i32_iu8, v_dot8_i32_iu4: neg_lo says which of the two vectors is signed.
template <unsigned bits>
const Operation* mixed_sign_dot(Wave& w, const Operation* op) {
  count_vector(w);
  const Modifiers* m = op->modifiers;
  const bool a_signed = m != nullptr && (m->neg_lo & 1), b_signed = m != nullptr && (m->neg_lo & 2);
  const u32 *a = plain_source(w, op, 0), *b = plain_source(w, op, 1), *c = plain_source(w, op, 2);
  u32* result = w.engine->temporary[3];
  const auto part = [](u32 value, unsigned at, bool is_signed) {
    const u32 raw = value >> at & ((1u << bits) - 1);
    return is_signed && raw >> (bits - 1) ? static_cast<i64>(raw) - (1 << bits) : static_cast<i64>(raw);
  };
  for (unsigned i = 0; i < w.lanes; ++i) {
    i64 sum = static_cast<i32>(c[i]);
    for (unsigned k = 0; k < 32; k += bits) sum += part(a[i], k, a_signed) * part(b[i], k, b_signed);
    result[i] = m != nullptr && m->clamp ? static_cast<u32>(saturated(sum)) : static_cast<u32>(sum);
  }
  blend(w, w.row(op->destination.index), result, 1, w.exec());
  return following(op);
}

// Products of bf16 numbers are exact in single precision; the sum is rounded once.
float bfloat_dot2(pair_i16 a, pair_i16 b, float c) {
  const auto f = [](u16 bits) { return double{bfloat_to_float({bits})}; };
  return static_cast<float>(f(a.low) * f(b.low) + f(a.high) * f(b.high) + static_cast<double>(c));
}

// Mixed precision multiply-add: op_sel_hi says f16 (1) or f32 (0) for each source, op_sel which half.
float mixed_source(const Modifiers* m, unsigned k, u32 bits) {
  const bool is_half = m != nullptr && m->has_op_sel && m->op_sel_hi != 0xff && (m->op_sel_hi >> k & 1);
  if (!is_half) return std::bit_cast<float>(bits);
  return half_to_float({static_cast<u16>(m->op_sel >> k & 1 ? bits >> 16 : bits)});
}
enum class MixResult { f32, low, high };
template <MixResult to>
const Operation* fma_mix(Wave& w, const Operation* op) {
  count_vector(w);
  const Modifiers* m = op->modifiers;
  const u32* sources[3];
  for (unsigned k = 0; k < 3; ++k) sources[k] = plain_source(w, op, k);
  u32* destination = w.row(op->destination.index);
  u32* result = w.engine->temporary[3];
  const ModeScope mode(w, instruction_f32_mode);
  for (unsigned i = 0; i < w.lanes; ++i) {
    float value[3];
    for (unsigned k = 0; k < 3; ++k) {
      value[k] = mixed_source(m, k, sources[k][i]);
      if (m != nullptr && ((m->absolute | m->neg_hi) >> k & 1)) value[k] = std::fabs(value[k]);
      if (m != nullptr && ((m->negate | m->neg_lo) >> k & 1)) value[k] = -value[k];
    }
    float sum = std::fma(value[0], value[1], value[2]);
    if (m != nullptr && m->clamp) sum = sum > 0.0f ? (sum < 1.0f ? sum : 1.0f) : 0.0f;
    if constexpr (to == MixResult::f32)
      result[i] = std::bit_cast<u32>(sum);
    else if constexpr (to == MixResult::low)
      result[i] = (destination[i] & 0xffff0000u) | float_to_half(sum).bits;
    else
      result[i] = (destination[i] & 0xffffu) | u32{float_to_half(sum).bits} << 16;
  }
  blend(w, destination, result, 1, w.exec());
  return following(op);
}

}  // namespace

std::span<const Instruction> packed_instructions() {
  using P2 = pair_i16(pair_i16, pair_i16);
  using P3 = pair_i16(pair_i16, pair_i16, pair_i16);
  using H2 = pair_half(pair_half, pair_half);
  constexpr unsigned packed = instruction_packed;
  static const auto* table =
      new std::vector<Instruction>{
          lanewise<pair_half(pair_half, pair_half, pair_half)>(
              [](pair_half a, pair_half b, pair_half c) {
                return pair_half{half_fma(a.low, b.low, c.low), half_fma(a.high, b.high, c.high)};
              },
              "v_pk_fma_f16", packed),
          lanewise<H2>([](pair_half a, pair_half b) { return each_half<add>(a, b); }, "v_pk_add_f16", packed),
          lanewise<H2>([](pair_half a, pair_half b) { return each_half<multiply>(a, b); }, "v_pk_mul_f16", packed),
          lanewise<H2>([](pair_half a, pair_half b) { return each_half<lower>(a, b); }, "v_pk_min_f16", packed),
          lanewise<H2>([](pair_half a, pair_half b) { return each_half<higher>(a, b); }, "v_pk_max_f16", packed),
#define KERNCAP_PACKED(NAME, T, EXPRESSION)                                                                       \
  lanewise<P2>([](pair_i16 x, pair_i16 y) { return each_integer<T>([](T a, T b) { return EXPRESSION; }, x, y); }, \
               NAME, packed)
          KERNCAP_PACKED("v_pk_add_u16", u16, a + b),
          KERNCAP_PACKED("v_pk_sub_u16", u16, a - b),
          KERNCAP_PACKED("v_pk_add_i16", i16, a + b),
          KERNCAP_PACKED("v_pk_sub_i16", i16, a - b),
          KERNCAP_PACKED("v_pk_add_u16.clamp", u16, saturated_u16(a + b)),
          KERNCAP_PACKED("v_pk_sub_u16.clamp", u16, saturated_u16(a - b)),
          KERNCAP_PACKED("v_pk_add_i16.clamp", i16, saturated16(a + b)),
          KERNCAP_PACKED("v_pk_sub_i16.clamp", i16, saturated16(a - b)),
          KERNCAP_PACKED("v_pk_mul_lo_u16", u16, u32{a} * b),
          KERNCAP_PACKED("v_pk_min_u16", u16, std::min(a, b)),
          KERNCAP_PACKED("v_pk_max_u16", u16, std::max(a, b)),
          KERNCAP_PACKED("v_pk_min_i16", i16, std::min(a, b)),
          KERNCAP_PACKED("v_pk_max_i16", i16, std::max(a, b)),
          KERNCAP_PACKED("v_pk_lshlrev_b16", u16, u32{b} << (a & 15)),
          KERNCAP_PACKED("v_pk_lshrrev_b16", u16, b >> (a & 15)),
          KERNCAP_PACKED("v_pk_ashrrev_i16", i16, b >> (a & 15)),
#undef KERNCAP_PACKED
          lanewise<P3>(
              [](pair_i16 a, pair_i16 b, pair_i16 c) {
                return pair_i16{static_cast<u16>(u32{a.low} * b.low + c.low),
                                static_cast<u16>(u32{a.high} * b.high + c.high)};
              },
              "v_pk_mad_u16", packed),
          lanewise<P3>(
              [](pair_i16 a, pair_i16 b, pair_i16 c) {
                return pair_i16{static_cast<u16>(u32{a.low} * b.low + c.low),
                                static_cast<u16>(u32{a.high} * b.high + c.high)};
              },
              "v_pk_mad_i16", packed),
          // CDNA2: two floats in a register pair.
          lanewise<pair_float(pair_float, pair_float, pair_float)>(
              [](pair_float a, pair_float b, pair_float c) {
                return pair_float{std::fma(a.low, b.low, c.low), std::fma(a.high, b.high, c.high)};
              },
              "v_pk_fma_f32", packed | instruction_f32_mode),
          lanewise<pair_float(pair_float, pair_float)>(
              [](pair_float a, pair_float b) {
                return pair_float{a.low * b.low, a.high * b.high};
              },
              "v_pk_mul_f32", packed | instruction_f32_mode),
          lanewise<pair_float(pair_float, pair_float)>(
              [](pair_float a, pair_float b) {
                return pair_float{a.low + b.low, a.high + b.high};
              },
              "v_pk_add_f32", packed | instruction_f32_mode),
          // v_pk_mov_b32: low comes from the first source and high from the second, the half of each chosen by its
          // op_sel alone.
          lanewise<pair_float(pair_float, pair_float)>(
              [](pair_float a, pair_float b) {
                return pair_float{a.low, b.low};
              },
              "v_pk_mov_b32", packed),
          // Dot products
          lanewise<float(pair_half, pair_half, float)>(
              [](pair_half a, pair_half b, float c) { return half_dot2(a, b, c); }, "v_dot2_f32_f16", packed),
          lanewise<i32(u32, u32, i32)>([](u32 a, u32 b, i32 c) { return static_cast<i32>(dot4_i8(a, b) + c); },
                                       "v_dot4_i32_i8", packed),
          lanewise<u32(u32, u32, u32)>([](u32 a, u32 b, u32 c) { return static_cast<u32>(dot4_u8(a, b) + c); },
                                       "v_dot4_u32_u8", packed),
          lanewise<i32(u32, u32, i32)>([](u32 a, u32 b, i32 c) { return static_cast<i32>(dot8_i4(a, b) + c); },
                                       "v_dot8_i32_i4", packed),
          lanewise<u32(u32, u32, u32)>([](u32 a, u32 b, u32 c) { return static_cast<u32>(dot8_u4(a, b) + c); },
                                       "v_dot8_u32_u4", packed),
          lanewise<i32(u32, u32, i32)>([](u32 a, u32 b, i32 c) { return saturated(dot4_i8(a, b) + c); },
                                       "v_dot4_i32_i8.clamp", packed),
          lanewise<u32(u32, u32, u32)>([](u32 a, u32 b, u32 c) { return saturated(dot4_u8(a, b) + c); },
                                       "v_dot4_u32_u8.clamp", packed),
          lanewise<i32(u32, u32, i32)>([](u32 a, u32 b, i32 c) { return saturated(dot8_i4(a, b) + c); },
                                       "v_dot8_i32_i4.clamp", packed),
          lanewise<u32(u32, u32, u32)>([](u32 a, u32 b, u32 c) { return saturated(dot8_u4(a, b) + c); },
                                       "v_dot8_u32_u4.clamp", packed),
          lanewise<i32(pair_i16, pair_i16, i32)>(
              [](pair_i16 a, pair_i16 b, i32 c) {
                return static_cast<i32>(i64{c} + i32{static_cast<i16>(a.low)} * static_cast<i16>(b.low) +
                                        i64{static_cast<i16>(a.high)} * static_cast<i16>(b.high));
              },
              "v_dot2_i32_i16", packed),
          lanewise<u32(pair_i16, pair_i16, u32)>(
              [](pair_i16 a, pair_i16 b, u32 c) { return c + u32{a.low} * b.low + u32{a.high} * b.high; },
              "v_dot2_u32_u16", packed),
          special("v_dot4_i32_iu8", &mixed_sign_dot<8>, {Type::i32_, Type::none},
                  {Type::u32_, Type::u32_, Type::i32_, Type::none}, packed | instruction_own_modifiers),
          special("v_dot8_i32_iu4", &mixed_sign_dot<4>, {Type::i32_, Type::none},
                  {Type::u32_, Type::u32_, Type::i32_, Type::none}, packed | instruction_own_modifiers),
          lanewise<float(pair_i16, pair_i16, float)>(
              [](pair_i16 a, pair_i16 b, float c) { return bfloat_dot2(a, b, c); }, "v_dot2_f32_bf16", packed),
          // VOP3: op_sel is for the addend and the result only.
          lanewise<half(pair_half, pair_half, half)>(
              [](pair_half a, pair_half b, half c) {
                return double_to_half(static_cast<double>(half_dot2(a, b, half_to_float(c))));
              },
              "v_dot2_f16_f16"),
          lanewise<bfloat(pair_i16, pair_i16, bfloat)>(
              [](pair_i16 a, pair_i16 b, bfloat c) { return float_to_bfloat(bfloat_dot2(a, b, bfloat_to_float(c))); },
              "v_dot2_bf16_bf16"),
          special("v_fma_mix_f32", &fma_mix<MixResult::f32>, {Type::f32_, Type::none},
                  {Type::f32_, Type::f32_, Type::f32_, Type::none}, packed | instruction_mix),
          special("v_fma_mixlo_f16", &fma_mix<MixResult::low>, {Type::f16_, Type::none},
                  {Type::f32_, Type::f32_, Type::f32_, Type::none}, packed | instruction_mix),
          special("v_fma_mixhi_f16", &fma_mix<MixResult::high>, {Type::f16_, Type::none},
                  {Type::f32_, Type::f32_, Type::f32_, Type::none}, packed | instruction_mix),
          special("v_mad_mix_f32", &fma_mix<MixResult::f32>, {Type::f32_, Type::none},
                  {Type::f32_, Type::f32_, Type::f32_, Type::none}, packed | instruction_mix),
          special("v_mad_mixlo_f16", &fma_mix<MixResult::low>, {Type::f16_, Type::none},
                  {Type::f32_, Type::f32_, Type::f32_, Type::none}, packed | instruction_mix),
          special("v_mad_mixhi_f16", &fma_mix<MixResult::high>, {Type::f16_, Type::none},
                  {Type::f32_, Type::f32_, Type::f32_, Type::none}, packed | instruction_mix),
      };
  return *table;
}

}  // namespace kerncap::softgpu::isa
