// Vector instructions on 16 and 8 bits that the other files leave out: halves, integers, packed and dot products,
// conversions, 8-bit floats.
#include "softgpu/isa/vector_proof.h"

namespace kerncap::softgpu::isa {
namespace {

class NarrowProof : public VectorProofBase {};

TEST_P(NarrowProof, halves) {
  using H1 = half(half);
  using H3 = half(half, half, half);
  check<half(half, half)>("v_subrev_f16", [](half a, half b) { return narrow_half(value_of(b) - value_of(a)); });
  check<H1>("v_ceil_f16", [](half a) { return narrow_half(std::ceil(value_of(a))); });
  check<H1>("v_trunc_f16", [](half a) { return narrow_half(std::trunc(value_of(a))); });
  check<H1>("v_rndne_f16", [](half a) { return narrow_half(even(value_of(a))); });
  check<H1>("v_fract_f16", [](half a) {
    const L x = value_of(a);
    if (std::isinf(x)) return exact_half(std::numeric_limits<L>::quiet_NaN());
    const half f = exact_half(x - std::floor(x));
    return value_of(f) >= 1 ? half{0x3bff} : f;
  });
  check<H1>("v_rcp_f16", [](half a) { return narrow_half(1 / value_of(a)); });
  near_half(
      "v_rsq_f16", [](L x) { return 1 / std::sqrt(x); }, 0.01L, 1000);
  near_half(
      "v_exp_f16", [](L x) { return std::exp2(x); }, -13, 15);
  near_half(
      "v_log_f16", [](L x) { return std::log2(x); }, 1.01L, 1000);
  const L turn = 6.28318530717958647692528676655900577L;
  near_half(
      "v_sin_f16", [=](L x) { return std::sin(x * turn); }, 0.01L, 0.24L);
  near_half(
      "v_cos_f16", [=](L x) { return std::cos(x * turn); }, 0.01L, 0.24L);
  check<half(half, i16)>(
      "v_ldexp_f16", [](half a, i16 e) { return narrow_half(std::ldexp(value_of(a), std::clamp<int>(e, -100, 100))); });
  check<i16(half)>("v_frexp_exp_i16_f16", [](half a) {
    const L x = value_of(a);
    return static_cast<i16>(std::isfinite(x) && x != 0 ? std::ilogb(x) + 1 : 0);
  });
  check<H1>("v_frexp_mant_f16", [](half a) {
    int e = 0;
    return std::isfinite(value_of(a)) ? narrow_half(std::frexp(value_of(a), &e)) : a;
  });
  const auto three = [](auto f) {
    return [f](half a, half b, half c) { return narrow_half(f(value_of(a), value_of(b), value_of(c))); };
  };
  check<H3>("v_min3_f16", three([](L a, L b, L c) { return smallest(smallest(a, b), c); }));
  check<H3>("v_max3_f16", three([](L a, L b, L c) { return largest(largest(a, b), c); }));
  check<H3>("v_med3_f16", three([](L a, L b, L c) { return middle(a, b, c); }));
  check<H3>("v_maxmin_f16", three([](L a, L b, L c) { return smallest(largest(a, b), c); }));
  check<H3>("v_minmax_f16", three([](L a, L b, L c) { return largest(smallest(a, b), c); }));
  check<H3>("v_mad_f16", mad_half);
  check<H3>("v_mad_legacy_f16", mad_half);
  check<H3>("v_fma_legacy_f16", exact_half_fma);
  check<u32(half, half)>("v_pack_b32_f16", [](half a, half b) { return words(a.bits, b.bits); });
}

TEST_P(NarrowProof, sixteen_bit_integers) {
  using H2 = u16(u16, u16);
  using H3 = u16(u16, u16, u16);
  using I3 = i16(i16, i16, i16);
  const auto sorted = [](auto a, auto b, auto c, int k) {
    decltype(a) x[] = {a, b, c};
    std::sort(x, x + 3);
    return x[k];
  };
  check<H2>("v_and_b16", [](u16 a, u16 b) { return static_cast<u16>(a & b); });
  check<H2>("v_or_b16", [](u16 a, u16 b) { return static_cast<u16>(a | b); });
  check<H2>("v_xor_b16", [](u16 a, u16 b) { return static_cast<u16>(a ^ b); });
  check<u16(u16)>("v_not_b16", [](u16 a) { return static_cast<u16>(65535 - a); });
  check<u16(u16)>("v_mov_b16", [](u16 a) { return a; });
  check<u32(u16)>("v_cvt_u32_u16", [](u16 a) { return u32{a}; });
  check<i32(i16)>("v_cvt_i32_i16", [](i16 a) { return i32{a}; });
  check<i16(i16, i16)>(
      "v_add_i16", [](i16 a, i16 b) { return static_cast<i16>(a + b); }, "v_add_nc_i16");
  check<i16(i16, i16)>(
      "v_sub_i16", [](i16 a, i16 b) { return static_cast<i16>(a - b); }, "v_sub_nc_i16");
  check_suffix<i16(i16, i16)>(
      "v_add_i16", "clamp", [](i16 a, i16 b) { return static_cast<i16>(std::clamp(a + b, -32768, 32767)); },
      "v_add_nc_i16");
  check_suffix<H2>(
      "v_sub_u16", "clamp", [](u16 a, u16 b) { return static_cast<u16>(std::max(a - b, 0)); }, "v_sub_nc_u16");
  check<H3>("v_min3_u16", [&](u16 a, u16 b, u16 c) { return sorted(a, b, c, 0); });
  check<H3>("v_med3_u16", [&](u16 a, u16 b, u16 c) { return sorted(a, b, c, 1); });
  check<H3>("v_max3_u16", [&](u16 a, u16 b, u16 c) { return sorted(a, b, c, 2); });
  check<I3>("v_min3_i16", [&](i16 a, i16 b, i16 c) { return sorted(a, b, c, 0); });
  check<I3>("v_med3_i16", [&](i16 a, i16 b, i16 c) { return sorted(a, b, c, 1); });
  check<I3>("v_max3_i16", [&](i16 a, i16 b, i16 c) { return sorted(a, b, c, 2); });
  check<H3>("v_mad_legacy_u16", [](u16 a, u16 b, u16 c) { return static_cast<u16>(u32{a} * b + c); });
  check<I3>("v_mad_legacy_i16", [](i16 a, i16 b, i16 c) { return static_cast<i16>(i32{a} * b + c); });
  check<u32(u16, u16, u32)>("v_mad_u32_u16", [](u16 a, u16 b, u32 c) { return static_cast<u32>(u64{a} * b + c); });
  check<i32(i16, i16, i32)>("v_mad_i32_i16", [](i16 a, i16 b, i32 c) { return static_cast<i32>(i64{a} * b + c); });
  // op_sel: the upper half of a source, and of the result.
  if (bench.target().major >= 10) {
    for (unsigned i = 0; i < bench.lanes(); ++i)
      bench.v(1)[i] = 0x00070003, bench.v(2)[i] = 0x00500020, bench.v(0)[i] = 0x11112222;
    const std::string name = "v_add_nc_u16";
    if (bench.run(name + " v0, v1, v2 op_sel:[1,0,1]") || bench.run(name + " v0.h, v1.h, v2.l op_sel:[1,0,1]")) {
      EXPECT_EQ(bench.v(0)[0], 0x00272222u);
      ++checked;
    }
  }
}

TEST_P(NarrowProof, conversions) {
  check<i32(float)>(
      "v_cvt_flr_i32_f32",
      [](float a) { return static_cast<i32>(clip(std::floor(L{a}), -2147483648.0L, 2147483647.0L)); },
      "v_cvt_floor_i32_f32");
  check<i32(float)>(
      "v_cvt_rpi_i32_f32",
      [](float a) { return static_cast<i32>(clip(std::floor(L{narrow(L{a} + 0.5L)}), -2147483648.0L, 2147483647.0L)); },
      "v_cvt_nearest_i32_f32");
  check<float(u32)>("v_cvt_off_f32_i4", [](u32 a) {
    const int nibble = static_cast<int>(a % 16);
    return static_cast<float>(nibble >= 8 ? nibble - 16 : nibble) / 16;
  });
  const auto snorm = [](L x) {
    return static_cast<u32>(clip(even(std::isnan(x) ? 0 : std::clamp(x, -1.0L, 1.0L) * 32767), -32767, 32767));
  };
  const auto unorm = [](L x) {
    return static_cast<u32>(clip(even(std::isnan(x) ? 0 : std::clamp(x, 0.0L, 1.0L) * 65535), 0, 65535));
  };
  // The product is rounded to single precision first.
  const auto scaled = [](float x, float by) {
    return L{narrow(L{std::clamp(std::isnan(x) ? 0.0f : x, -1.0f, 1.0f)} * by)} / by;
  };
  check<u32(float, float)>(
      "v_cvt_pknorm_i16_f32", [=](float a, float b) { return words(snorm(scaled(a, 32767)), snorm(scaled(b, 32767))); },
      "v_cvt_pk_norm_i16_f32");
  check<u32(float, float)>(
      "v_cvt_pknorm_u16_f32", [=](float a, float b) { return words(unorm(scaled(a, 65535)), unorm(scaled(b, 65535))); },
      "v_cvt_pk_norm_u16_f32");
  check<u32(half, half)>(
      "v_cvt_pknorm_i16_f16", [=](half a, half b) { return words(snorm(value_of(a)), snorm(value_of(b))); },
      "v_cvt_pk_norm_i16_f16");
  check<u32(half, half)>(
      "v_cvt_pknorm_u16_f16", [=](half a, half b) { return words(unorm(value_of(a)), unorm(value_of(b))); },
      "v_cvt_pk_norm_u16_f16");
  check<i16(half)>("v_cvt_norm_i16_f16", [=](half a) { return static_cast<i16>(snorm(value_of(a))); });
  check<u16(half)>("v_cvt_norm_u16_f16", [=](half a) { return static_cast<u16>(unorm(value_of(a))); });
  check<u32(float, float)>("v_cvt_pk_i16_f32", [](float a, float b) {
    return words(static_cast<u32>(clip(std::trunc(L{a}), -32768, 32767)),
                 static_cast<u32>(clip(std::trunc(L{b}), -32768, 32767)));
  });
  check<u32(float, float)>("v_cvt_pk_u16_f32", [](float a, float b) {
    return words(static_cast<u32>(clip(std::trunc(L{a}), 0, 65535)),
                 static_cast<u32>(clip(std::trunc(L{b}), 0, 65535)));
  });
  const auto with_byte = [](float a, u32 position, u32 old) {
    const u32 shift = 8 * (position % 4);
    return (old & ~(255u << shift)) | static_cast<u32>(clip(even(L{a}), 0, 255)) << shift;
  };
  check<u32(float, u32, u32)>("v_cvt_pk_u8_f32", with_byte);
  accumulate<u32, float, u32>("v_cvt_pkaccum_u8_f32", [=](float a, u32 b, u32 old) { return with_byte(a, b, old); });
  // Towards zero: finite numbers stay finite.
  const auto truncated = [](float x) -> u32 {
    if (std::isnan(x)) return 0x7e00;
    const u32 sign = std::signbit(x) ? 0x8000u : 0u;
    if (std::isinf(x)) return sign | 0x7c00u;
    const L m = std::fabs(L{x});
    if (m >= 65504) return sign | 0x7bffu;
    half h = exact_half(m);
    if (value_of(h) > m) --h.bits;
    return sign | h.bits;
  };
  for (unsigned i = 0; i < row_lanes; ++i)
    for (const unsigned r : {8u, 10u}) {
      float x = interesting<float>(random);
      if (std::isnan(x)) x = 1;
      bench.v(r)[i] = std::bit_cast<u32>(x);
    }
  bench.set_exec(bench.wave().all_lanes);
  ASSERT_TRUE(bench.run("v_cvt_pkrtz_f16_f32 v0, v8, v10") || bench.run("v_cvt_pk_rtz_f16_f32 v0, v8, v10"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    const float a = std::bit_cast<float>(bench.v(8)[i]), b = std::bit_cast<float>(bench.v(10)[i]);
    EXPECT_EQ(bench.v(0)[i], words(truncated(a), truncated(b))) << a << " " << b;
  }
  ++checked;
}

TEST_P(NarrowProof, eight_bit_floats) {
  ++checked;
  if (!bench.target().gfx940) return;
  // From the definition: sign, exponent with the bias, mantissa; 0x80 is the only NaN.
  const auto value = [](u32 bits, int mantissa_bits, int bias) -> float {
    if (bits == 0x80) return std::nanf("");
    const int exponent = static_cast<int>(bits & 127) >> mantissa_bits, one = 1 << mantissa_bits;
    const int mantissa = static_cast<int>(bits) & (one - 1);
    const float magnitude = exponent == 0
                                ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits)
                                : std::ldexp(static_cast<float>(one + mantissa), exponent - bias - mantissa_bits);
    return bits & 128 ? -magnitude : magnitude;
  };
  struct Format {
    const char* name;
    int mantissa_bits, bias;
  };
  for (const Format& format : {Format{"fp8", 3, 8}, Format{"bf8", 2, 16}}) {
    const std::string f = format.name;
    const auto of = [&](u32 bits) { return value(bits & 255, format.mantissa_bits, format.bias); };
    // All 256 numbers, through each way of reading them.
    for (u32 base = 0; base < 256; base += 64) {
      for (unsigned i = 0; i < 64; ++i)
        bench.v(8)[i] = (base + i) | (255 - base - i) << 8 | (base + i) << 16 | 0x2a000000;
      ASSERT_TRUE(bench.run("v_cvt_f32_" + f + " v0, v8"));
      ASSERT_TRUE(bench.run("v_cvt_f32_" + f + "_sdwa v1, v8 src0_sel:BYTE_1"));
      ASSERT_TRUE(bench.run("v_cvt_pk_f32_" + f + " v[2:3], v8"));
      ASSERT_TRUE(bench.run("v_cvt_pk_f32_" + f + "_sdwa v[4:5], v8 src0_sel:WORD_1"));
      for (unsigned i = 0; i < 64; ++i) {
        const float low = of(base + i), high = of(255 - base - i);
        EXPECT_TRUE(same_result(std::bit_cast<float>(bench.v(0)[i]), low));
        EXPECT_TRUE(same_result(std::bit_cast<float>(bench.v(1)[i]), high));
        EXPECT_TRUE(same_result(std::bit_cast<float>(bench.v(2)[i]), low));
        EXPECT_TRUE(same_result(std::bit_cast<float>(bench.v(3)[i]), high));
        EXPECT_TRUE(same_result(std::bit_cast<float>(bench.v(4)[i]), low));
        EXPECT_TRUE(same_result(std::bit_cast<float>(bench.v(5)[i]), of(0x2a)));
      }
    }
    // Rounding: the nearest of all numbers, the even one of two; what is beyond the largest by half a unit is NaN.
    const auto nearest = [&](float x, bool clamp) -> u32 {
      if (std::isnan(x)) return 0x80;
      const L magnitude = std::fabs(L{x}), largest = of(127), unit = largest - of(126);
      if (magnitude >= largest + unit / 2) return clamp ? 127u | (x < 0 ? 128u : 0u) : 0x80u;
      u32 best = 0;
      for (u32 bits = 1; bits < 128; ++bits) {
        const L distance = std::fabs(L{of(bits)} - magnitude), best_distance = std::fabs(L{of(best)} - magnitude);
        if (distance < best_distance || (distance == best_distance && bits % 2 == 0)) best = bits;
      }
      return best == 0 ? 0 : best | (x < 0 ? 128u : 0u);
    };
    for (int round = 0; round < 8; ++round) {
      const bool clamp = round % 2;
      bench.wave().mode = clamp ? 0xf0 | 1u << 23 : 0xf0;
      for (unsigned i = 0; i < 64; ++i) {
        for (const unsigned r : {8u, 10u}) {
          const float scale = std::ldexp(1.0f, static_cast<int>(random() % 40) - 24);
          const float x =
              i % 8 == 0 ? interesting<float>(random) : scale * (static_cast<float>(random() % 4001) - 2000) / 1000;
          // Halfway between two numbers now and then.
          const u32 near = static_cast<u32>(random() % 126);
          bench.v(r)[i] = std::bit_cast<u32>(i % 8 == 1 ? (of(near) + of(near + 1)) / 2 : x);
        }
        bench.v(0)[i] = bench.v(1)[i] = 0x11223344;
      }
      ASSERT_TRUE(bench.run("v_cvt_pk_" + f + "_f32 v0, v8, -v10"));
      ASSERT_TRUE(bench.run("v_cvt_pk_" + f + "_f32 v1, v8, v10 op_sel:[0,0,1]"));
      for (unsigned i = 0; i < 64; ++i) {
        const float a = std::bit_cast<float>(bench.v(8)[i]), b = std::bit_cast<float>(bench.v(10)[i]);
        EXPECT_EQ(bench.v(0)[i], 0x11220000u | nearest(a, clamp) | nearest(-b, clamp) << 8)
            << f << " " << a << " " << b;
        EXPECT_EQ(bench.v(1)[i], 0x3344u | nearest(a, clamp) << 16 | nearest(b, clamp) << 24)
            << f << " " << a << " " << b;
      }
    }
    bench.wave().mode = 0xf0;
    // Stochastic: a quarter above a number rounds up for the upper quarter of the random numbers.
    const float number = of(0x44), next = of(0x45);
    for (unsigned i = 0; i < 64; ++i) {
      bench.v(8)[i] = std::bit_cast<u32>(number + (next - number) / 4);
      bench.v(10)[i] = i << 26;
      bench.v(0)[i] = 0x11223344;
    }
    ASSERT_TRUE(bench.run("v_cvt_sr_" + f + "_f32 v0, v8, v10 op_sel:[0,0,0,1]"));
    for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(bench.v(0)[i], i < 48 ? 0x11443344u : 0x11453344u) << i;
  }
}

TEST_P(NarrowProof, packed) {
  const auto each = [](auto f) {
    return [f](u32 a, u32 b) {
      return words(static_cast<u16>(f(static_cast<u16>(a), static_cast<u16>(b))),
                   static_cast<u16>(f(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16))));
    };
  };
  using P2 = u32(u32, u32);
  check<P2>("v_pk_add_i16", each([](u16 a, u16 b) { return a + b; }));
  check<P2>("v_pk_sub_u16", each([](u16 a, u16 b) { return a - b; }));
  check<P2>("v_pk_min_u16", each([](u16 a, u16 b) { return std::min(a, b); }));
  check<P2>("v_pk_max_i16", each([](u16 a, u16 b) { return std::max(static_cast<i16>(a), static_cast<i16>(b)); }));
  check<P2>("v_pk_lshrrev_b16", each([](u16 a, u16 b) { return b >> a % 16; }));
  check_suffix<P2>("v_pk_sub_u16", "clamp", each([](u16 a, u16 b) { return std::max(a - b, 0); }));
  const auto saturating = [](int sign) {
    return [sign](u16 a, u16 b) { return std::clamp(static_cast<i16>(a) + sign * static_cast<i16>(b), -32768, 32767); };
  };
  check_suffix<P2>("v_pk_add_i16", "clamp", each(saturating(1)));
  check_suffix<P2>("v_pk_sub_i16", "clamp", each(saturating(-1)));
  const auto halves = [&](auto f) {
    return each([f](u16 a, u16 b) { return exact_half(f(value_of({a}), value_of({b}))).bits; });
  };
  // Finite halves: which NaN comes out is not compared.
  const auto finite = [&](const std::string& name, auto f) {
    for (unsigned i = 0; i < row_lanes; ++i)
      for (const unsigned r : {8u, 10u}) bench.v(r)[i] = static_cast<u32>(random()) & 0xfbfffbffu;
    bench.set_exec(bench.wave().all_lanes);
    ASSERT_TRUE(bench.run(name + " v0, v8, v10")) << name;
    for (unsigned i = 0; i < bench.lanes(); ++i)
      EXPECT_EQ(bench.v(0)[i], halves(f)(bench.v(8)[i], bench.v(10)[i])) << name;
  };
  finite("v_pk_min_f16", [](L a, L b) { return smallest(a, b); });
  finite("v_pk_max_f16", [](L a, L b) { return largest(a, b); });
  const auto mad = [](u32 a, u32 b, u32 c) {
    return words((a & 0xffff) * (b & 0xffff) + c, (a >> 16) * (b >> 16) + (c >> 16));
  };
  check<u32(u32, u32, u32)>("v_pk_mad_u16", mad);
  check<u32(u32, u32, u32)>("v_pk_mad_i16", mad);
  for (unsigned i = 0; i < row_lanes; ++i)
    for (const unsigned r : {8u, 10u, 12u}) bench.v(r)[i] = static_cast<u32>(random()) & 0xcbffcbffu;
  ASSERT_TRUE(bench.run("v_pk_fma_f16 v0, v8, v10, v12"));
  for (unsigned i = 0; i < bench.lanes(); ++i)
    EXPECT_EQ(
        bench.v(0)[i],
        words(exact_half_fma(low_half(bench.v(8)[i]), low_half(bench.v(10)[i]), low_half(bench.v(12)[i])).bits,
              exact_half_fma(high_half(bench.v(8)[i]), high_half(bench.v(10)[i]), high_half(bench.v(12)[i])).bits));
  if (bench.target().gfx90a) {
    for (unsigned i = 0; i < row_lanes; ++i)
      for (unsigned r = 8; r < 12; ++r) bench.v(r)[i] = std::bit_cast<u32>(interesting<float>(random));
    ASSERT_TRUE(bench.run("v_pk_add_f32 v[0:1], v[8:9], v[10:11]"));
    ASSERT_TRUE(bench.run("v_pk_mov_b32 v[2:3], v[8:9], v[10:11] op_sel:[1,0]"));
    ASSERT_TRUE(bench.run("v_pk_mov_b32 v[4:5], v[8:9], v[10:11] op_sel:[0,1]"));
    for (unsigned i = 0; i < bench.lanes(); ++i) {
      const auto f = [&](unsigned r) { return std::bit_cast<float>(bench.v(r)[i]); };
      EXPECT_TRUE(same_result(f(0), narrow(L{f(8)} + f(10))));
      EXPECT_TRUE(same_result(f(1), narrow(L{f(9)} + f(11))));
      EXPECT_EQ(bench.v(2)[i], bench.v(9)[i]);
      EXPECT_EQ(bench.v(3)[i], bench.v(10)[i]);
      EXPECT_EQ(bench.v(4)[i], bench.v(8)[i]);
      EXPECT_EQ(bench.v(5)[i], bench.v(11)[i]);
    }
    ASSERT_TRUE(bench.run("v_accvgpr_write_b32 a4, v8") && bench.run("v_accvgpr_mov_b32 a5, a4") &&
                bench.run("v_accvgpr_read_b32 v20, a5"));
    for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(20)[i], bench.v(8)[i]);
  }
  if (bench.target().processor == "gfx906") return;
  ++checked;
}

TEST_P(NarrowProof, dot_products) {
  const auto part = [](u32 x, unsigned k, unsigned bits, bool is_signed) {
    const i64 raw = x >> k * bits & ((1u << bits) - 1);
    return is_signed && raw >> (bits - 1) ? raw - (1 << bits) : raw;
  };
  const auto dot = [=](u32 a, u32 b, i64 c, unsigned bits, bool a_signed, bool b_signed) {
    for (unsigned k = 0; k < 32 / bits; ++k) c += part(a, k, bits, a_signed) * part(b, k, bits, b_signed);
    return c;
  };
  using U3 = u32(u32, u32, u32);
  check<U3>("v_dot2_u32_u16", [=](u32 a, u32 b, u32 c) { return static_cast<u32>(dot(a, b, c, 16, false, false)); });
  check<U3>("v_dot8_i32_i4", [=](u32 a, u32 b, u32 c) { return static_cast<u32>(dot(a, b, c, 4, true, true)); });
  check_suffix<U3>("v_dot4_i32_i8", "clamp", [=](u32 a, u32 b, u32 c) {
    return static_cast<u32>(
        std::clamp<i64>(dot(a, b, static_cast<i32>(c), 8, true, true), -2147483648ll, 2147483647ll));
  });
  check_suffix<U3>("v_dot8_u32_u4", "clamp", [=](u32 a, u32 b, u32 c) {
    return static_cast<u32>(std::min<i64>(dot(a, b, c, 4, false, false), 0xffffffffll));
  });
  for (unsigned signs = 0; signs < 4; ++signs) {
    const bool a_signed = signs & 1, b_signed = signs & 2;
    const std::string suffix = fmt::format("neg_lo:[{},{},0]", signs & 1, signs >> 1);
    check_suffix<U3>("v_dot4_i32_iu8", suffix,
                     [=](u32 a, u32 b, u32 c) { return static_cast<u32>(dot(a, b, c, 8, a_signed, b_signed)); });
    check_suffix<U3>("v_dot8_i32_iu4", suffix + " clamp", [=](u32 a, u32 b, u32 c) {
      return static_cast<u32>(
          std::clamp<i64>(dot(a, b, static_cast<i32>(c), 4, a_signed, b_signed), -2147483648ll, 2147483647ll));
    });
  }
  using A = i32;
  accumulate<A, u32, u32>("v_dot4c_i32_i8",
                          [=](u32 a, u32 b, i32 c) { return static_cast<i32>(dot(a, b, c, 8, true, true)); });
  accumulate<A, u32, u32>("v_dot8c_i32_i4",
                          [=](u32 a, u32 b, i32 c) { return static_cast<i32>(dot(a, b, c, 4, true, true)); });
  accumulate<A, u32, u32>("v_dot2c_i32_i16",
                          [=](u32 a, u32 b, i32 c) { return static_cast<i32>(dot(a, b, c, 16, true, true)); });
  // Floating point: small whole numbers, so that every order of additions gives the same.
  const auto fill = [&](bool brain) {
    for (unsigned i = 0; i < row_lanes; ++i) {
      for (const unsigned r : {8u, 10u, 12u}) {
        const auto bits = [&]() -> u32 {
          const float x = static_cast<float>(static_cast<int>(random() % 33) - 16);
          return brain ? std::bit_cast<u32>(x) >> 16 : u32{exact_half(L{x}).bits};
        };
        bench.v(r)[i] = words(bits(), bits());
      }
      bench.v(14)[i] = std::bit_cast<u32>(0.25f * static_cast<float>(i));
      bench.v(0)[i] = bench.v(14)[i];
    }
    bench.set_exec(bench.wave().all_lanes);
  };
  const auto half_sum = [&](unsigned i) {
    const u32 a = bench.v(8)[i], b = bench.v(10)[i];
    return value_of(low_half(a)) * value_of(low_half(b)) + value_of(high_half(a)) * value_of(high_half(b));
  };
  const auto bfloat_sum = [&](unsigned i) {
    const u32 a = bench.v(8)[i], b = bench.v(10)[i];
    return L{bfloat_value(a & 0xffff)} * bfloat_value(b & 0xffff) + L{bfloat_value(a >> 16)} * bfloat_value(b >> 16);
  };
  const auto single = [&](const std::string& text, L sign, bool brain) {
    fill(brain);
    if (!bench.run(text)) return;
    ASSERT_FALSE(bench.failed()) << bench.error().message;
    ++checked;
    for (unsigned i = 0; i < bench.lanes(); ++i)
      EXPECT_EQ(std::bit_cast<float>(bench.v(0)[i]),
                narrow((brain ? bfloat_sum(i) : half_sum(i)) + sign * std::bit_cast<float>(bench.v(14)[i])))
          << text;
  };
  single("v_dot2_f32_f16 v0, v8, v10, v14", 1, false);
  single("v_dot2_f32_f16 v0, v8, v10, v14 neg_lo:[0,0,1]", -1, false);
  single("v_dot2_f32_bf16 v0, v8, v10, v14", 1, true);
  single("v_dot2c_f32_f16 v0, v8, v10", 1, false);
  single("v_dot2acc_f32_f16 v0, v8, v10", 1, false);
  fill(false);
  for (const char* text :
       {"v_dot2_f16_f16 v0, v8, v10, v12 op_sel:[0,0,1,0]", "v_dot2_f16_f16 v0.l, v8, v10, v12.h op_sel:[0,0,1,0]"}) {
    if (!bench.run(text)) continue;
    for (unsigned i = 0; i < bench.lanes(); ++i)
      EXPECT_TRUE(same_result(low_half(bench.v(0)[i]), exact_half(half_sum(i) + value_of(high_half(bench.v(12)[i])))));
    break;
  }
  fill(true);
  for (const char* text : {"v_dot2_bf16_bf16 v0, v8, v10, v12", "v_dot2_bf16_bf16 v0.l, v8, v10, v12.l"}) {
    if (!bench.run(text)) continue;
    for (unsigned i = 0; i < bench.lanes(); ++i) {
      const L exact = bfloat_sum(i) + bfloat_value(bench.v(12)[i] & 0xffff);
      const L got = bfloat_value(bench.v(0)[i] & 0xffff);
      EXPECT_LE(std::fabs(got - exact), std::fabs(exact) / 256) << text;
    }
    break;
  }
  ++checked;
}

TEST_P(NarrowProof, half_denormals_follow_mode) {
  for (unsigned i = 0; i < row_lanes; ++i) bench.v(8)[i] = 0x00010001, bench.v(10)[i] = 0x80028002;
  const auto low = [&](unsigned mode) {
    bench.wave().mode = mode;
    bench.wave().mode_changed();
    EXPECT_TRUE(bench.run("v_pk_add_f16 v0, v8, v10"));
    return bench.v(0)[0];
  };
  EXPECT_EQ(low(0xf0), 0x80018001u);
  EXPECT_EQ(low(0x30), 0u);           // sources and results are flushed: +0 + -0
  EXPECT_EQ(low(0xb0), 0u);           // sources only
  EXPECT_EQ(low(0x70), 0x80008000u);  // results only
  bench.wave().mode = 0xf0;
  bench.wave().mode_changed();
  ++checked;
}

TEST_P(NarrowProof, half_comparisons_and_classes) {
  const std::string mask = GetParam().wave32 ? "s20" : "s[20:21]";
  const bool gcn = bench.target().major == 9;
  struct Condition {
    const char* name;
    bool (*holds)(L a, L b);
  };
  static const auto nan = [](L a, L b) { return a != a || b != b; };
  const Condition conditions[] = {{"lt", [](L a, L b) { return a < b; }},
                                  {"eq", [](L a, L b) { return a == b; }},
                                  {"le", [](L a, L b) { return a <= b; }},
                                  {"gt", [](L a, L b) { return a > b; }},
                                  {"lg", [](L a, L b) { return a < b || a > b; }},
                                  {"ge", [](L a, L b) { return a >= b; }},
                                  {"o", [](L a, L b) { return !nan(a, b); }},
                                  {"u", [](L a, L b) { return nan(a, b); }},
                                  {"nge", [](L a, L b) { return nan(a, b) || a < b; }},
                                  {"nlg", [](L a, L b) { return nan(a, b) || a == b; }},
                                  {"ngt", [](L a, L b) { return nan(a, b) || a <= b; }},
                                  {"nle", [](L a, L b) { return nan(a, b) || a > b; }},
                                  {"neq", [](L a, L b) { return nan(a, b) || a != b; }},
                                  {"nlt", [](L a, L b) { return nan(a, b) || a >= b; }}};
  for (const Condition& one : conditions)
    for (const bool writes_exec : {false, true}) {
      u64 wanted = 0;
      const u64 exec = random() & bench.wave().all_lanes;
      bench.set_exec(exec);
      for (unsigned i = 0; i < row_lanes; ++i) {
        const half a = interesting<half>(random), b = random() % 3 ? interesting<half>(random) : a;
        bench.v(2)[i] = a.bits | 0x12340000u, bench.v(4)[i] = b.bits;
        wanted |= u64{one.holds(value_of(a), value_of(b))} << i;
      }
      const std::string head = std::string(writes_exec ? "v_cmpx_" : "v_cmp_") + one.name + "_f16_e64 " +
                               (writes_exec && !gcn ? "" : mask + ", ");
      ASSERT_TRUE(bench.run(head + "v2, v4") || bench.run(head + "v2.l, v4.l")) << head;
      EXPECT_EQ(writes_exec ? bench.wave().exec() : bench.wave().read_mask(20), wanted & exec) << head;
    }
  bench.set_exec(bench.wave().all_lanes);
  // Signaling NaN, quiet NaN, then from minus to plus infinity.
  const u64 doubles[] = {0x7ff0000000000001,
                         0x7ff8000000000000,
                         0xfff0000000000000,
                         0xbff0000000000000,
                         0x8000000000000001,
                         0x8000000000000000,
                         0,
                         1,
                         0x3ff0000000000000,
                         0x7ff0000000000000};
  const u32 singles[] = {0x7f800001, 0x7fc00000, 0xff800000, 0xbf800000, 0x80000001,
                         0x80000000, 0,          1,          0x3f800000, 0x7f800000};
  const u16 half_bits[] = {0x7c01, 0x7e00, 0xfc00, 0xbc00, 0x8001, 0x8000, 0, 1, 0x3c00, 0x7c00};
  for (unsigned bit = 0; bit < 10; ++bit)
    for (const std::string type : {"f16", "f32", "f64"})
      for (const bool writes_exec : {false, true}) {
        for (unsigned k = 0; k < 10; ++k) {
          if (type == "f64")
            Lane<u64>::store(bench.v(2), k, doubles[k]);
          else
            bench.v(2)[k] = type == "f32" ? singles[k] : half_bits[k];
        }
        for (unsigned i = 0; i < row_lanes; ++i) bench.v(4)[i] = 1u << bit;
        bench.set_exec(0x3ff);
        const std::string head = std::string(writes_exec ? "v_cmpx_class_" : "v_cmp_class_") + type + "_e64 " +
                                 (writes_exec && !gcn ? "" : mask + ", ");
        ASSERT_TRUE(bench.run(head + (type == "f64" ? "v[2:3], v4" : "v2, v4")) || bench.run(head + "v2.l, v4.l"))
            << head;
        EXPECT_EQ(writes_exec ? bench.wave().exec() : bench.wave().read_mask(20), u64{1} << bit) << head;
      }
  bench.set_exec(bench.wave().all_lanes);
  ++checked;
}

KERNCAP_FOR_ALL_TARGETS(NarrowProof);

}  // namespace
}  // namespace kerncap::softgpu::isa
