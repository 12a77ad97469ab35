// Conversions between f32 and CDNA3's 8-bit floats.
#include "softgpu/isa/small_float.h"

#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {
namespace {

constexpr u32 fp16_overflow = 1u << 23;  // MODE.FP16_OVFL (LLVM's AMDGPUUsage):
                                         // clamp instead of infinity or NaN

// Two results in one word of the destination, or one in one byte; op_sel chooses which, and the rest stays.
void store_part(Wave& w, const Operation* op, const u32* part, unsigned shift, u32 mask, u64 active) {
  u32* destination = w.row(op->destination.index);
  u32* merged = w.engine->temporary[3];
  for (unsigned i = 0; i < w.lanes; ++i) merged[i] = (destination[i] & ~(mask << shift)) | part[i] << shift;
  blend(w, destination, merged, 1, active);
}

template <const SmallFormat& format>
const Operation* pack(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* sources[4];
  u64 active = w.exec();
  sources_of(w, op, sources, active);
  const bool clamp = w.mode & fp16_overflow;
  u32* packed = w.engine->temporary[4];
  for (unsigned i = 0; i < w.lanes; ++i)
    packed[i] = float_to_small(std::bit_cast<float>(sources[0][i]), format, clamp) |
                float_to_small(std::bit_cast<float>(sources[1][i]), format, clamp) << 8;
  const bool high = op->modifiers != nullptr && (op->modifiers->op_sel & 8);
  store_part(w, op, packed, high ? 16 : 0, 0xffffu, active);
  return following(op);
}

// Stochastic rounding: the random number of the second source counts from its highest bit on, as many bits as are lost.
template <const SmallFormat& format>
const Operation* round_stochastically(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* sources[4];
  u64 active = w.exec();
  sources_of(w, op, sources, active);
  const bool clamp = w.mode & fp16_overflow;
  constexpr int lost_bits = 23 - format.mantissa_bits;
  u32* bytes = w.engine->temporary[4];
  for (unsigned i = 0; i < w.lanes; ++i)
    bytes[i] = float_to_small(std::bit_cast<float>(sources[0][i]), format, clamp,
                              std::ldexp(static_cast<double>(sources[1][i] >> (32 - lost_bits)), -lost_bits));
  const unsigned byte = op->modifiers == nullptr ? 0 : op->modifiers->op_sel >> 2 & 3;
  store_part(w, op, bytes, 8 * byte, 0xffu, active);
  return following(op);
}

}  // namespace

std::span<const Instruction> small_float_instructions() {
  constexpr Type f = Type::f32_, u = Type::u32_, none = Type::none;
  static const auto* table = new std::vector<Instruction>{
      lanewise<float(u32)>([](u32 a) { return small_to_float(a, fp8_format); }, "v_cvt_f32_fp8"),
      lanewise<float(u32)>([](u32 a) { return small_to_float(a, bf8_format); }, "v_cvt_f32_bf8"),
      lanewise<pair_float(u32)>(
          [](u32 a) {
            return pair_float{small_to_float(a, fp8_format), small_to_float(a >> 8, fp8_format)};
          },
          "v_cvt_pk_f32_fp8"),
      lanewise<pair_float(u32)>(
          [](u32 a) {
            return pair_float{small_to_float(a, bf8_format), small_to_float(a >> 8, bf8_format)};
          },
          "v_cvt_pk_f32_bf8"),
      special("v_cvt_pk_fp8_f32", &pack<fp8_format>, {u, none}, {f, f, none, none}, instruction_own_modifiers),
      special("v_cvt_pk_bf8_f32", &pack<bf8_format>, {u, none}, {f, f, none, none}, instruction_own_modifiers),
      special("v_cvt_sr_fp8_f32", &round_stochastically<fp8_format>, {u, none}, {f, u, none, none},
              instruction_own_modifiers),
      special("v_cvt_sr_bf8_f32", &round_stochastically<bf8_format>, {u, none}, {f, u, none, none},
              instruction_own_modifiers),
  };
  return *table;
}

}  // namespace kerncap::softgpu::isa
