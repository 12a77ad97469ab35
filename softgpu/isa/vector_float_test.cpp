// Floating-point vector instructions: IEEE rules computed in wider precision, special values, modifiers, MODE.
#include <gtest/gtest.h>

#include <cfenv>

#include "softgpu/isa/half_reference.h"
#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {
namespace {

template <class T>
bool is_nan(T x) {
  return x != x;
}
template <class T>
T ieee_min(T a, T b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? b : a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T>
T ieee_max(T a, T b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? b : a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}
// Rounds the exact sum of two doubles, or the exact product, once to T.
float narrow(long double x) { return static_cast<float>(x); }

half lift(half, long double x) { return exact_half(x); }

class VectorFloat : public VectorCheck {};

TEST_P(VectorFloat, single_arithmetic) {
  using L = long double;  // 64 bits of mantissa: sums and products of floats round once
  check<float(float, float)>("v_add_f32", [](float a, float b) { return narrow(L{a} + b); });
  check<float(float, float)>("v_sub_f32", [](float a, float b) { return narrow(L{a} - b); });
  check<float(float, float)>("v_subrev_f32", [](float a, float b) { return narrow(L{b} - a); });
  check<float(float, float)>("v_mul_f32", [](float a, float b) { return narrow(L{a} * b); });
  check<float(float, float, float)>("v_fma_f32", [](float a, float b, float c) { return std::fma(a, b, c); });
  check<float(float, float)>("v_min_f32", [](float a, float b) { return ieee_min(a, b); });
  check<float(float, float)>("v_max_f32", [](float a, float b) { return ieee_max(a, b); });
  check<float(float, float, float)>("v_min3_f32",
                                    [](float a, float b, float c) { return ieee_min(ieee_min(a, b), c); });
  check<float(float, float, float)>("v_max3_f32",
                                    [](float a, float b, float c) { return ieee_max(ieee_max(a, b), c); });
  check<float(float, float, float)>("v_med3_f32", [](float a, float b, float c) {
    if (is_nan(a) || is_nan(b) || is_nan(c)) return ieee_min(ieee_min(a, b), c);
    float x[] = {a, b, c};
    std::sort(x, x + 3, [](float p, float q) { return p < q || (p == q && std::signbit(p) && !std::signbit(q)); });
    return x[1];
  });
}

TEST_P(VectorFloat, single_functions) {
  check<float(float)>("v_rcp_f32", [](float a) { return narrow(1.0L / a); });
  check<float(float)>("v_sqrt_f32", [](float a) { return narrow(std::sqrt(static_cast<long double>(a))); });
  check<float(float)>("v_floor_f32", [](float a) { return narrow(std::floor(static_cast<long double>(a))); });
  check<float(float)>("v_ceil_f32", [](float a) { return narrow(std::ceil(static_cast<long double>(a))); });
  check<float(float)>("v_trunc_f32", [](float a) { return narrow(std::trunc(static_cast<long double>(a))); });
  check<float(float)>("v_rndne_f32", [](float a) { return narrow(std::nearbyint(static_cast<long double>(a))); });
  check<float(float)>("v_frexp_mant_f32", [](float a) {
    int e = 0;
    return std::isfinite(a) ? narrow(std::frexp(static_cast<long double>(a), &e)) : a;
  });
  check<i32(float)>("v_frexp_exp_i32_f32", [](float a) { return std::isfinite(a) && a != 0 ? std::ilogb(a) + 1 : 0; });
  check<float(float, i32)>("v_ldexp_f32", [](float a, i32 e) {
    return narrow(std::ldexp(static_cast<long double>(a), std::clamp(e, -2000, 2000)));
  });
  check<float(float)>("v_fract_f32", [](float a) {
    if (std::isinf(a)) return std::nanf("");
    const long double f = static_cast<long double>(a) - std::floor(static_cast<long double>(a));
    return std::min(narrow(f), 0x1.fffffep-1f);
  });
}

TEST_P(VectorFloat, approximations_are_within_an_ulp) {
  InstructionBench& b = bench;
  struct Case {
    const char* name;
    long double (*exact)(long double);
    float low, high;
  };
  const Case cases[] = {
      {"v_exp_f32", [](long double x) { return std::exp2(x); }, -120, 120},
      {"v_log_f32", [](long double x) { return std::log2(x); }, 1e-30f, 1e30f},
      {"v_rsq_f32", [](long double x) { return 1 / std::sqrt(x); }, 1e-30f, 1e30f},
      {"v_sin_f32",
       [](long double x) { return std::sin((x - std::nearbyint(x)) * 6.28318530717958647692528676655900577L); }, -200,
       200},
      {"v_cos_f32",
       [](long double x) { return std::cos((x - std::nearbyint(x)) * 6.28318530717958647692528676655900577L); }, -200,
       200}};
  for (const Case& one : cases) {
    for (unsigned lane = 0; lane < b.lanes(); ++lane)
      b.v(1)[lane] = std::bit_cast<u32>(one.low + (one.high - one.low) * static_cast<float>(lane) / 64.0f);
    ASSERT_TRUE(b.run(std::string(one.name) + "_e32 v0, v1"));
    for (unsigned lane = 0; lane < b.lanes(); ++lane) {
      const float x = std::bit_cast<float>(b.v(1)[lane]), got = std::bit_cast<float>(b.v(0)[lane]);
      const long double wanted = one.exact(x);
      EXPECT_NEAR(got, static_cast<double>(wanted),
                  std::max(1.2e-7 * std::fabs(static_cast<double>(wanted)), one.low == -200 ? 2e-16 : 1e-37))
          << one.name << " " << x;
    }
    ++checked;
  }
}

TEST_P(VectorFloat, double_arithmetic) {
  check<double(double, double)>("v_add_f64", [](double a, double b) { return a + b; });
  check<double(double, double)>("v_mul_f64", [](double a, double b) { return a * b; });
  check<double(double, double, double)>("v_fma_f64", [](double a, double b, double c) { return std::fma(a, b, c); });
  check<double(double, double)>("v_min_f64", [](double a, double b) { return ieee_min(a, b); });
  check<double(double, double)>("v_max_f64", [](double a, double b) { return ieee_max(a, b); });
  check<double(double)>("v_floor_f64", [](double a) { return std::floor(a); });
  check<double(double)>("v_ceil_f64", [](double a) { return std::ceil(a); });
  check<double(double)>("v_trunc_f64", [](double a) { return std::trunc(a); });
  check<double(double)>("v_rndne_f64", [](double a) { return std::nearbyint(a); });
  check<double(double, i32)>("v_ldexp_f64", [](double a, i32 e) { return std::ldexp(a, e); });
  check<i32(double)>("v_frexp_exp_i32_f64",
                     [](double a) { return std::isfinite(a) && a != 0 ? std::ilogb(a) + 1 : 0; });
}

TEST_P(VectorFloat, half_arithmetic) {
  using H2 = half(half, half);
  const auto both = [](auto f) { return [f](half a, half b) { return lift(a, f(value_of(a), value_of(b))); }; };
  check<H2>("v_add_f16", both([](long double a, long double b) { return a + b; }));
  check<H2>("v_sub_f16", both([](long double a, long double b) { return a - b; }));
  check<H2>("v_mul_f16", both([](long double a, long double b) { return a * b; }));
  check<H2>("v_min_f16", both([](long double a, long double b) { return ieee_min(a, b); }));
  check<H2>("v_max_f16", both([](long double a, long double b) { return ieee_max(a, b); }));
  check<half(half)>("v_floor_f16", [](half a) { return lift(a, std::floor(value_of(a))); });
  check<half(half)>("v_sqrt_f16", [](half a) { return lift(a, std::sqrt(value_of(a))); });
  check<half(half, half, half)>("v_fma_f16", exact_half_fma);
}

TEST_P(VectorFloat, packed) {
  const auto each = [](auto f) {
    return [f](u32 a, u32 b) {
      const auto one = [&](u32 shift) {
        return u32{
            exact_half(f(value_of({static_cast<u16>(a >> shift)}), value_of({static_cast<u16>(b >> shift)}))).bits};
      };
      return one(0) | one(16) << 16;
    };
  };
  // Finite inputs only: which NaN appears is not compared here.
  for (unsigned lane = 0; lane < 1; ++lane) {
    InstructionBench& b = bench;
    for (unsigned i = 0; i < b.lanes(); ++i) {
      b.v(1)[i] = static_cast<u32>(random()) & 0x7bff7bffu;
      b.v(2)[i] = static_cast<u32>(random()) & 0xfbfffbffu;
    }
    b.set_exec(b.wave().all_lanes);
    ASSERT_TRUE(b.run("v_pk_add_f16 v0, v1, v2"));
    for (unsigned i = 0; i < b.lanes(); ++i)
      EXPECT_EQ(b.v(0)[i], each([](long double x, long double y) { return x + y; })(b.v(1)[i], b.v(2)[i]));
    ASSERT_TRUE(b.run("v_pk_mul_f16 v0, v1, v2 neg_lo:[1,0]"));
    for (unsigned i = 0; i < b.lanes(); ++i)
      EXPECT_EQ(b.v(0)[i], each([](long double x, long double y) { return x * y; })(b.v(1)[i] ^ 0x8000u, b.v(2)[i]));
    ++checked;
  }
  if (bench.target().gfx90a) {
    InstructionBench& b = bench;
    for (unsigned i = 0; i < b.lanes(); ++i)
      for (unsigned r = 2; r < 8; ++r) b.v(r)[i] = std::bit_cast<u32>(static_cast<float>(random() % 1000) / 7.0f);
    ASSERT_TRUE(b.run("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel:[1,0,0] op_sel_hi:[0,1,1]"));
    const auto f = [&](unsigned r, unsigned i) { return std::bit_cast<float>(b.v(r)[i]); };
    for (unsigned i = 0; i < b.lanes(); ++i) {
      EXPECT_EQ(f(0, i), std::fma(f(3, i), f(4, i), f(6, i)));
      EXPECT_EQ(f(1, i), std::fma(f(2, i), f(5, i), f(7, i)));
    }
    b.s(4) = std::bit_cast<u32>(2.0f), b.s(5) = std::bit_cast<u32>(3.0f);
    ASSERT_TRUE(b.run("v_pk_mul_f32 v[0:1], v[2:3], s[4:5]"));
    for (unsigned i = 0; i < b.lanes(); ++i) {
      EXPECT_EQ(f(0, i), 2 * f(2, i));
      EXPECT_EQ(f(1, i), 3 * f(3, i));
    }
  }
}

TEST_P(VectorFloat, conversions) {
  const auto integer = [](auto x, long double low, long double high) -> long double {
    return std::isnan(x) ? 0 : std::clamp<long double>(std::trunc(static_cast<long double>(x)), low, high);
  };
  check<i32(float)>("v_cvt_i32_f32",
                    [&](float a) { return static_cast<i32>(integer(a, -2147483648.0L, 2147483647.0L)); });
  check<u32(float)>("v_cvt_u32_f32", [&](float a) { return static_cast<u32>(integer(a, 0, 4294967295.0L)); });
  check<i32(double)>("v_cvt_i32_f64",
                     [&](double a) { return static_cast<i32>(integer(a, -2147483648.0L, 2147483647.0L)); });
  check<u32(double)>("v_cvt_u32_f64", [&](double a) { return static_cast<u32>(integer(a, 0, 4294967295.0L)); });
  check<float(i32)>("v_cvt_f32_i32", [](i32 a) { return narrow(a); });
  check<float(u32)>("v_cvt_f32_u32", [](u32 a) { return narrow(a); });
  check<double(i32)>("v_cvt_f64_i32", [](i32 a) { return double{static_cast<double>(a)}; });
  check<double(u32)>("v_cvt_f64_u32", [](u32 a) { return double{static_cast<double>(a)}; });
  check<double(float)>("v_cvt_f64_f32", [](float a) { return double{a}; });
  check<float(double)>("v_cvt_f32_f64", [](double a) { return narrow(a); });
  check<half(float)>("v_cvt_f16_f32", [](float a) { return exact_half(a); });
  check<float(half)>("v_cvt_f32_f16", [](half a) { return narrow(value_of(a)); });
  check<half(u16)>("v_cvt_f16_u16", [](u16 a) { return exact_half(a); });
  check<half(i16)>("v_cvt_f16_i16", [](i16 a) { return exact_half(a); });
  check<u16(half)>("v_cvt_u16_f16", [&](half a) { return static_cast<u16>(integer(value_of(a), 0, 65535)); });
  check<i16(half)>("v_cvt_i16_f16", [&](half a) { return static_cast<i16>(integer(value_of(a), -32768, 32767)); });
  check<float(u32)>("v_cvt_f32_ubyte0", [](u32 a) { return static_cast<float>(a % 256); });
  check<float(u32)>("v_cvt_f32_ubyte1", [](u32 a) { return static_cast<float>(a / 256 % 256); });
  check<float(u32)>("v_cvt_f32_ubyte2", [](u32 a) { return static_cast<float>(a / 65536 % 256); });
  check<float(u32)>("v_cvt_f32_ubyte3", [](u32 a) { return static_cast<float>(a / 16777216); });
  check<u32(u32, u32)>("v_cvt_pk_u16_u32",
                       [](u32 a, u32 b) { return std::min(a, 65535u) | std::min(b, 65535u) << 16; });
  check<u32(i32, i32)>("v_cvt_pk_i16_i32", [](i32 a, i32 b) {
    return (static_cast<u32>(std::clamp(a, -32768, 32767)) & 0xffff) | static_cast<u32>(std::clamp(b, -32768, 32767))
                                                                           << 16;
  });
}

TEST_P(VectorFloat, source_and_result_modifiers) {
  InstructionBench& b = bench;
  const float values[] = {1.5f, -2.25f, 0.0f, -0.0f, 0.25f, -7.0f, 100.0f, -0.5f};
  for (unsigned i = 0; i < b.lanes(); ++i) {
    b.v(1)[i] = std::bit_cast<u32>(values[i % 8]);
    b.v(2)[i] = std::bit_cast<u32>(values[i / 8 % 8]);
  }
  const auto f = [&](unsigned r, unsigned i) { return std::bit_cast<float>(b.v(r)[i]); };
  ASSERT_TRUE(b.run("v_add_f32_e64 v0, -v1, |v2|"));
  for (unsigned i = 0; i < b.lanes(); ++i) EXPECT_EQ(f(0, i), -f(1, i) + std::fabs(f(2, i)));
  ASSERT_TRUE(b.run("v_mul_f32_e64 v0, -|v1|, v2 mul:4"));
  for (unsigned i = 0; i < b.lanes(); ++i) EXPECT_EQ(f(0, i), -std::fabs(f(1, i)) * f(2, i) * 4);
  ASSERT_TRUE(b.run("v_add_f32_e64 v0, v1, v2 clamp"));
  for (unsigned i = 0; i < b.lanes(); ++i) EXPECT_EQ(f(0, i), std::clamp(f(1, i) + f(2, i), 0.0f, 1.0f));
  ASSERT_TRUE(b.run("v_add_f32_e32 v0, 0.5, v1"));
  for (unsigned i = 0; i < b.lanes(); ++i) EXPECT_EQ(f(0, i), 0.5f + f(1, i));
  ASSERT_TRUE(b.run("v_mul_f32_e32 v0, 0.15915494, v1"));
  for (unsigned i = 0; i < b.lanes(); ++i) EXPECT_EQ(f(0, i), 0.15915494f * f(1, i));
  ASSERT_TRUE(b.run("v_add_f32_e32 v0, 0x40490fdb, v1"));
  for (unsigned i = 0; i < b.lanes(); ++i) EXPECT_EQ(f(0, i), 3.14159274f + f(1, i));
  for (unsigned i = 0; i < b.lanes(); ++i) Lane<double>::store(b.v(4), i, values[i % 8]);
  ASSERT_TRUE(b.run("v_add_f64 v[6:7], -|v[4:5]|, 1.0"));
  for (unsigned i = 0; i < b.lanes(); ++i) EXPECT_EQ(Lane<double>::load(b.v(6), i), 1.0 - std::fabs(values[i % 8]));
  ASSERT_TRUE(b.run("v_add_f64 v[6:7], v[4:5], -2"));  // an integer: the bits of a denormal's neighbour, a NaN
  for (unsigned i = 0; i < b.lanes(); ++i) EXPECT_TRUE(std::isnan(Lane<double>::load(b.v(6), i)));
  for (unsigned i = 0; i < b.lanes(); ++i) b.v(1)[i] = 0x40003c00;  // halves 1 and 2
  ASSERT_TRUE(b.run("v_add_f16_e64 v0, -v1, 4.0"));
  for (unsigned i = 0; i < b.lanes(); ++i) EXPECT_EQ(b.v(0)[i] & 0xffff, 0x4200u);  // 3
  ++checked;
}

TEST_P(VectorFloat, mode_chooses_rounding_and_denormals) {
  InstructionBench& b = bench;
  b.v(1)[0] = std::bit_cast<u32>(1.0f);
  b.v(2)[0] = std::bit_cast<u32>(1e-10f);
  const auto with_mode = [&](unsigned mode, const char* text) {
    b.wave().mode = mode;
    b.wave().mode_changed();
    EXPECT_TRUE(b.run(text));
    return b.v(0)[0];
  };
  const u32 one = std::bit_cast<u32>(1.0f);
  EXPECT_EQ(with_mode(0xf0, "v_add_f32_e32 v0, v1, v2"), one);
  EXPECT_EQ(with_mode(0xf1, "v_add_f32_e32 v0, v1, v2"), one + 1);  // +inf
  EXPECT_EQ(with_mode(0xf2, "v_sub_f32_e32 v0, v1, v2"), one - 1);  // -inf
  EXPECT_EQ(with_mode(0xf3, "v_sub_f32_e32 v0, v1, v2"), one - 1);  // zero
  b.v(1)[0] = 1;                                                    // the smallest denormal
  b.v(2)[0] = 2;
  EXPECT_EQ(with_mode(0xf0, "v_add_f32_e32 v0, v1, v2"), 3u);
  EXPECT_EQ(with_mode(0xc0, "v_add_f32_e32 v0, v1, v2"), 0u);  // f32 denormals flushed
  EXPECT_EQ(with_mode(0x30, "v_add_f32_e32 v0, v1, v2"), 3u);  // those of f64 and f16 only
  Lane<double>::store(b.v(4), 0, 5e-324);
  b.wave().mode = 0x30;
  b.wave().mode_changed();
  ASSERT_TRUE(b.run("v_add_f64 v[6:7], v[4:5], v[4:5]"));
  EXPECT_EQ(Lane<double>::load(b.v(6), 0), 0.0);
  b.wave().mode = 0xf0;
  ASSERT_TRUE(b.run("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0"));
  EXPECT_EQ(b.wave().mode, 0xc0u);
  ASSERT_TRUE(b.run("s_getreg_b32 s4, hwreg(HW_REG_MODE, 4, 4)"));
  EXPECT_EQ(b.s(4), 0xcu);
  ++checked;
}

TEST_P(VectorFloat, division_sequence_is_correctly_rounded) {
  // The sequence that compilers emit: scale, refine, fmas, fixup.
  InstructionBench& b = bench;
  const std::string mask = GetParam().wave32 ? "vcc_lo" : "vcc", dummy = GetParam().wave32 ? "s10" : "s[10:11]";
  for (int round = 0; round < 40; ++round) {
    std::vector<double> n(b.lanes()), d(b.lanes());
    for (unsigned i = 0; i < b.lanes(); ++i) {
      n[i] = interesting<double>(random), d[i] = interesting<double>(random);
      Lane<double>::store(b.v(2), i, n[i]);
      Lane<double>::store(b.v(4), i, d[i]);
    }
    for (const std::string& text :
         {"v_div_scale_f64 v[6:7], " + dummy + ", v[4:5], v[4:5], v[2:3]", std::string("v_rcp_f64_e32 v[8:9], v[6:7]"),
          std::string("v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0"),
          std::string("v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]"),
          std::string("v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0"),
          std::string("v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]"),
          "v_div_scale_f64 v[12:13], " + mask + ", v[2:3], v[4:5], v[2:3]",
          std::string("v_mul_f64 v[14:15], v[12:13], v[8:9]"),
          std::string("v_fma_f64 v[6:7], -v[6:7], v[14:15], v[12:13]"),
          std::string("v_div_fmas_f64 v[6:7], v[6:7], v[8:9], v[14:15]"),
          std::string("v_div_fixup_f64 v[0:1], v[6:7], v[4:5], v[2:3]")})
      ASSERT_TRUE(b.run(text)) << text;
    for (unsigned i = 0; i < b.lanes(); ++i) {
      const double wanted = n[i] / d[i], got = Lane<double>::load(b.v(0), i);
      // Denormal quotients are rounded twice on hardware as well: one unit is allowed there.
      if (std::fabs(wanted) < std::numeric_limits<double>::min())
        EXPECT_NEAR(got, wanted, 5e-324) << n[i] << " / " << d[i];
      else
        EXPECT_TRUE(same_result(got, wanted)) << n[i] << " / " << d[i] << " got " << got;
    }
  }
  ++checked;
}

TEST_P(VectorFloat, mixed_precision_fma) {
  InstructionBench& b = bench;
  for (unsigned i = 0; i < b.lanes(); ++i) {
    b.v(1)[i] = 0x44003800;  // halves 0.5 and 4
    b.v(2)[i] = std::bit_cast<u32>(3.0f);
    b.v(3)[i] = std::bit_cast<u32>(-1.0f);
    b.v(0)[i] = 0x12345678;
  }
  ASSERT_TRUE(b.run("v_fma_mix_f32 v4, v1, v2, -v3 op_sel:[1,0,0] op_sel_hi:[1,0,0]"));
  EXPECT_EQ(std::bit_cast<float>(b.v(4)[0]), 13.0f);
  ASSERT_TRUE(b.run("v_fma_mixhi_f16 v0, v1, v2, v3 op_sel_hi:[1,0,0]"));
  EXPECT_EQ(b.v(0)[0], 0x38005678u);
  ASSERT_TRUE(b.run("v_fma_mixlo_f16 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,0,0]"));
  EXPECT_EQ(b.v(0)[0], 0x38004980u);
  ++checked;
}

KERNCAP_FOR_ALL_TARGETS(VectorFloat);

}  // namespace
}  // namespace kerncap::softgpu::isa
