// f16 vector arithmetic: computed in single precision, which has more than twice the digits plus two, so that rounding
// the result of one operation again is exact; fused operations go through double precision with round-to-odd.
#include "softgpu/isa/half_math.h"

namespace kerncap::softgpu::isa {
namespace {

constexpr unsigned accumulates = instruction_reads_destination;

float f(half h) { return half_to_float(h); }
half h(float x) { return float_to_half(x); }

float fraction(float x) {
  if (std::isinf(x)) return std::numeric_limits<float>::quiet_NaN();
  const float result = x - std::floor(x);
  constexpr float below_one = 0.99951171875f;  // the largest half below 1
  return result < below_one || std::isnan(result) ? result : below_one;
}

}  // namespace

std::span<const Instruction> half_instructions() {
  using H1 = half(half);
  using H2 = half(half, half);
  using H3 = half(half, half, half);
  constexpr unsigned keeps = instruction_keeps_high;
  static const auto* table = new std::vector<Instruction>{
      lanewise<H2>([](half a, half b) { return h(f(a) + f(b)); }, "v_add_f16"),
      lanewise<H2>([](half a, half b) { return h(f(a) - f(b)); }, "v_sub_f16"),
      lanewise<H2>([](half a, half b) { return h(f(b) - f(a)); }, "v_subrev_f16"),
      lanewise<H2>([](half a, half b) { return h(f(a) * f(b)); }, "v_mul_f16"),
      lanewise<H2>([](half a, half b) { return h(minimum(f(a), f(b))); }, "v_min_f16"),
      lanewise<H2>([](half a, half b) { return h(maximum(f(a), f(b))); }, "v_max_f16"),
      lanewise<H3>([](half a, half b, half c) { return h(minimum(minimum(f(a), f(b)), f(c))); }, "v_min3_f16", keeps),
      lanewise<H3>([](half a, half b, half c) { return h(maximum(maximum(f(a), f(b)), f(c))); }, "v_max3_f16", keeps),
      lanewise<H3>([](half a, half b, half c) { return h(median(f(a), f(b), f(c))); }, "v_med3_f16", keeps),
      lanewise<H3>([](half a, half b, half c) { return h(minimum(maximum(f(a), f(b)), f(c))); }, "v_maxmin_f16", keeps),
      lanewise<H3>([](half a, half b, half c) { return h(maximum(minimum(f(a), f(b)), f(c))); }, "v_minmax_f16", keeps),
      lanewise<H3>([](half a, half b, half c) { return half_fma(a, b, c); }, "v_fma_f16", keeps),
      lanewise<H3>([](half a, half b, half c) { return half_fma(a, b, c); }, "v_fma_legacy_f16"),
      lanewise<H3>([](half a, half b, half c) { return half_fma(a, b, c); }, "v_fmac_f16", accumulates),
      lanewise<H3>([](half a, half b, half c) { return half_fma(a, b, c); }, "v_fmaak_f16"),
      lanewise<H3>([](half a, half b, half c) { return half_fma(a, b, c); }, "v_fmamk_f16"),
      lanewise<H3>([](half a, half b, half c) { return h(f(h(f(a) * f(b))) + f(c)); }, "v_mad_f16", keeps),
      lanewise<H3>([](half a, half b, half c) { return h(f(h(f(a) * f(b))) + f(c)); }, "v_mad_legacy_f16"),
      lanewise<H3>([](half a, half b, half c) { return h(f(h(f(a) * f(b))) + f(c)); }, "v_mac_f16", accumulates),
      lanewise<H3>([](half a, half b, half c) { return h(f(h(f(a) * f(b))) + f(c)); }, "v_madak_f16"),
      lanewise<H3>([](half a, half b, half c) { return h(f(h(f(a) * f(b))) + f(c)); }, "v_madmk_f16"),
      lanewise<H1>([](half a) { return h(1.0f / f(a)); }, "v_rcp_f16"),
      lanewise<H1>([](half a) { return h(1.0f / std::sqrt(f(a))); }, "v_rsq_f16"),
      lanewise<H1>([](half a) { return h(std::sqrt(f(a))); }, "v_sqrt_f16"),
      lanewise<H1>([](half a) { return h(std::exp2(f(a))); }, "v_exp_f16"),
      lanewise<H1>([](half a) { return h(std::log2(f(a))); }, "v_log_f16"),
      lanewise<H1>([](half a) { return h(static_cast<float>(std::sin(f(a) * 6.283185307179586))); }, "v_sin_f16"),
      lanewise<H1>([](half a) { return h(static_cast<float>(std::cos(f(a) * 6.283185307179586))); }, "v_cos_f16"),
      lanewise<H1>([](half a) { return h(std::floor(f(a))); }, "v_floor_f16"),
      lanewise<H1>([](half a) { return h(std::ceil(f(a))); }, "v_ceil_f16"),
      lanewise<H1>([](half a) { return h(std::trunc(f(a))); }, "v_trunc_f16"),
      lanewise<H1>([](half a) { return h(round_even(f(a))); }, "v_rndne_f16"),
      lanewise<H1>([](half a) { return h(fraction(f(a))); }, "v_fract_f16"),
      lanewise<half(half, i16)>([](half a, i16 e) { return double_to_half(std::ldexp(static_cast<double>(f(a)), e)); },
                                "v_ldexp_f16"),
      lanewise<i16(half)>(
          [](half a) {
            const float x = f(a);
            if (std::isnan(x) || std::isinf(x) || x == 0) return i16{0};
            int e = 0;
            static_cast<void>(std::frexp(x, &e));
            return static_cast<i16>(e);
          },
          "v_frexp_exp_i16_f16"),
      lanewise<H1>(
          [](half a) {
            const float x = f(a);
            if (std::isnan(x) || std::isinf(x)) return a;
            int e = 0;
            return h(std::frexp(x, &e));
          },
          "v_frexp_mant_f16"),
      lanewise<H3>([](half a, half b, half c) { return h(divide_fixup(f(a), f(b), f(c))); }, "v_div_fixup_f16", keeps),
      lanewise<H3>([](half a, half b, half c) { return h(divide_fixup(f(a), f(b), f(c))); }, "v_div_fixup_legacy_f16"),
      lanewise<float(pair_half, pair_half, float)>([](pair_half a, pair_half b, float c) { return half_dot2(a, b, c); },
                                                   "v_dot2acc_f32_f16", accumulates),
      lanewise<pair_half(pair_half, pair_half, pair_half)>(
          [](pair_half a, pair_half b, pair_half c) {
            return pair_half{half_fma(a.low, b.low, c.low), half_fma(a.high, b.high, c.high)};
          },
          "v_pk_fmac_f16", accumulates),
  };
  return *table;
}

}  // namespace kerncap::softgpu::isa
