// The vector instructions of 32 and 64 bits that the other files leave out: accumulating and literal forms, divisions
// step by step, dual issue, moves between registers and lanes.
#include "softgpu/isa/vector_proof.h"

namespace kerncap::softgpu::isa {
namespace {

class VectorProof : public VectorProofBase {};

TEST_P(VectorProof, accumulating_and_literal_forms) {
  accumulate<float, float, float>("v_fmac_f32", [](float a, float b, float c) { return std::fma(a, b, c); });
  accumulate<double, double, double>("v_fmac_f64", [](double a, double b, double c) { return std::fma(a, b, c); });
  accumulate<half, half, half>("v_fmac_f16", exact_half_fma);
  accumulate<float, float, float>("v_mac_f32", multiply_add);
  accumulate<half, half, half>("v_mac_f16", mad_half);
  for (const char* name : {"v_fmac_dx9_zero_f32", "v_fmac_legacy_f32"})
    accumulate<float, float, float>(name,
                                    [](float a, float b, float c) { return a == 0 || b == 0 ? c : std::fma(a, b, c); });
  for (unsigned i = 0; i < row_lanes; ++i)
    for (const unsigned r : {0u, 8u, 10u, 12u}) bench.v(r)[i] = static_cast<u32>(random()) & 0xcbffcbffu;  // finite
  for (unsigned i = 0; i < row_lanes; ++i) bench.v(0)[i] = bench.v(12)[i];
  if (bench.run("v_pk_fmac_f16 v0, v8, v10")) {
    for (unsigned i = 0; i < bench.lanes(); ++i)
      EXPECT_EQ(
          bench.v(0)[i],
          words(exact_half_fma(low_half(bench.v(8)[i]), low_half(bench.v(10)[i]), low_half(bench.v(12)[i])).bits,
                exact_half_fma(high_half(bench.v(8)[i]), high_half(bench.v(10)[i]), high_half(bench.v(12)[i])).bits));
  }
  const float literal = 10.0f;
  const half half_literal{0x4900};
  check_suffix<float(float, float)>("v_fmaak_f32", ", 0x41200000",
                                    [=](float a, float b) { return std::fma(a, b, literal); });
  check_suffix<half(half, half)>("v_fmaak_f16", ", 0x4900",
                                 [=](half a, half b) { return exact_half_fma(a, b, half_literal); });
  check_suffix<float(float, float)>("v_madak_f32", ", 0x41200000",
                                    [=](float a, float b) { return multiply_add(a, b, literal); });
  check_suffix<half(half, half)>("v_madak_f16", ", 0x4900",
                                 [=](half a, half b) { return mad_half(a, b, half_literal); });
  // The constant stands between the registers.
  const auto between = [&](const std::string& name, const std::string& constant, bool halves, auto expected) {
    for (unsigned i = 0; i < row_lanes; ++i) {
      bench.v(8)[i] = halves ? interesting<half>(random).bits : std::bit_cast<u32>(interesting<float>(random));
      bench.v(10)[i] = halves ? interesting<half>(random).bits : std::bit_cast<u32>(interesting<float>(random));
    }
    const std::string l = ".l";
    if (!bench.run(name + " v0, v8, " + constant + ", v10") &&
        !bench.run(name + " v0.l, v8.l, " + constant + ", v10.l"))
      return;
    ++checked;
    for (unsigned i = 0; i < bench.lanes(); ++i) expected(i);
  };
  const auto single = [&](auto f) {
    return [&, f](unsigned i) {
      const float a = std::bit_cast<float>(bench.v(8)[i]), b = std::bit_cast<float>(bench.v(10)[i]);
      EXPECT_TRUE(same_result(std::bit_cast<float>(bench.v(0)[i]), f(a, literal, b))) << a << " " << b;
    };
  };
  const auto halved = [&](auto f) {
    return [&, f](unsigned i) {
      EXPECT_TRUE(
          same_result(low_half(bench.v(0)[i]), f(low_half(bench.v(8)[i]), half_literal, low_half(bench.v(10)[i]))));
    };
  };
  between("v_fmamk_f32", "0x41200000", false, single([](float a, float b, float c) { return std::fma(a, b, c); }));
  between("v_fmamk_f16", "0x4900", true, halved(exact_half_fma));
  between("v_madmk_f32", "0x41200000", false, single(multiply_add));
  between("v_madmk_f16", "0x4900", true, halved(mad_half));
}

TEST_P(VectorProof, single_and_double) {
  using F3 = float(float, float, float);
  check<F3>("v_mad_f32", multiply_add);
  check<F3>("v_maxmin_f32", [](float a, float b, float c) { return smallest(largest(a, b), c); });
  check<F3>("v_minmax_f32", [](float a, float b, float c) { return largest(smallest(a, b), c); });
  check<float(float, float)>("v_mul_legacy_f32", legacy, "v_mul_dx9_zero_f32");
  check<F3>("v_mad_legacy_f32", [](float a, float b, float c) { return narrow(L{legacy(a, b)} + c); });
  check<F3>(
      "v_fma_dx9_zero_f32", [](float a, float b, float c) { return a == 0 || b == 0 ? c : std::fma(a, b, c); },
      "v_fma_legacy_f32");
  accumulate<float, float, float>("v_mac_legacy_f32",
                                  [](float a, float b, float c) { return narrow(L{legacy(a, b)} + c); });
  check<float(float)>("v_rcp_iflag_f32", [](float a) { return narrow(1 / L{a}); });
  check<float(float)>("v_exp_legacy_f32", [](float a) { return narrow(std::exp2(L{a})); });
  for (const char* name : {"v_log_f32", "v_log_legacy_f32"}) {
    for (unsigned i = 0; i < row_lanes; ++i) bench.v(8)[i] = std::bit_cast<u32>(0.01f + 3.7f * static_cast<float>(i));
    if (!bench.run(std::string(name) + " v0, v8")) continue;
    for (unsigned i = 0; i < bench.lanes(); ++i)
      EXPECT_NEAR(std::bit_cast<float>(bench.v(0)[i]), std::log2(L{std::bit_cast<float>(bench.v(8)[i])}), 1e-6) << name;
  }
  check<double(double)>("v_sqrt_f64", [](double a) { return static_cast<double>(std::sqrt(a)); });
  check<double(double)>("v_rcp_f64", [](double a) { return 1 / a; });
  check<double(double)>("v_rsq_f64", [](double a) { return 1 / std::sqrt(a); });
  check<double(double)>("v_fract_f64", [](double a) {
    if (std::isinf(a)) return std::numeric_limits<double>::quiet_NaN();
    return std::min(a - std::floor(a), 0x1.fffffffffffffp-1);
  });
  check<double(double)>("v_frexp_mant_f64", [](double a) {
    int e = 0;
    return std::isfinite(a) ? std::frexp(a, &e) : a;
  });
  // Faces of a cube: +x -x +y -y +z -z are 0 to 5; the axis with the largest coordinate, z before y before x.
  const auto axis = [](float x, float y, float z) {
    const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    return az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0;
  };
  check<F3>("v_cubeid_f32", [=](float x, float y, float z) {
    const float v[] = {x, y, z};
    const int a = axis(x, y, z);
    return static_cast<float>(2 * a + (v[a] < 0 ? 1 : 0));
  });
  check<F3>("v_cubema_f32", [=](float x, float y, float z) {
    const float v[] = {x, y, z};
    return 2 * v[axis(x, y, z)];
  });
  check<F3>("v_cubesc_f32", [=](float x, float y, float z) {
    const int a = axis(x, y, z);
    return a == 2 ? (z < 0 ? -x : x) : a == 1 ? x : (x < 0 ? z : -z);
  });
  check<F3>("v_cubetc_f32", [=](float x, float y, float z) {
    const int a = axis(x, y, z);
    return a == 1 ? (y < 0 ? -z : z) : -y;
  });
  check<F3>("v_mullit_f32", [](float a, float b, float c) {
    constexpr float lowest = std::numeric_limits<float>::lowest();
    const bool infinite = b == -std::numeric_limits<float>::infinity();
    return b == lowest || infinite || std::isnan(b) || !(c > 0) ? lowest : legacy(a, b);
  });
  // 2/pi from bit 53 * segment on: with segment 0 of an ordinary number its first 53 bits.
  if (bench.run("v_trig_preop_f64 v[0:1], v[8:9], 0")) {
    for (unsigned i = 0; i < bench.lanes(); ++i) Lane<double>::store(bench.v(8), i, 3.0);
    ASSERT_TRUE(bench.run("v_trig_preop_f64 v[0:1], v[8:9], 0"));
    EXPECT_EQ(Lane<double>::load(bench.v(0), 0), 0x1.45f306dc9c882p-1);
    ASSERT_TRUE(bench.run("v_trig_preop_f64 v[0:1], v[8:9], 1"));
    EXPECT_EQ(Lane<double>::load(bench.v(0), 0), 0x1.4a7f09d5f47d4p-54);
    ++checked;
  }
}

TEST_P(VectorProof, single_division_is_correctly_rounded) {
  InstructionBench& b = bench;
  const std::string mask = GetParam().wave32 ? "vcc_lo" : "vcc", dummy = GetParam().wave32 ? "s10" : "s[10:11]";
  for (int round = 0; round < 60; ++round) {
    std::vector<float> n(b.lanes()), d(b.lanes());
    for (unsigned i = 0; i < b.lanes(); ++i) {
      n[i] = interesting<float>(random), d[i] = interesting<float>(random);
      b.v(2)[i] = std::bit_cast<u32>(n[i]);
      b.v(4)[i] = std::bit_cast<u32>(d[i]);
    }
    for (const std::string& text :
         {"v_div_scale_f32 v6, " + dummy + ", v4, v4, v2", "v_div_scale_f32 v12, " + mask + ", v2, v4, v2",
          std::string("v_rcp_f32_e32 v8, v6"), std::string("v_fma_f32 v10, -v6, v8, 1.0"),
          std::string("v_fma_f32 v8, v10, v8, v8"), std::string("v_mul_f32_e32 v14, v12, v8"),
          std::string("v_fma_f32 v10, -v6, v14, v12"), std::string("v_fma_f32 v14, v10, v8, v14"),
          std::string("v_fma_f32 v6, -v6, v14, v12"), std::string("v_div_fmas_f32 v6, v6, v8, v14"),
          std::string("v_div_fixup_f32 v0, v6, v4, v2")})
      ASSERT_TRUE(b.run(text)) << text;
    for (unsigned i = 0; i < b.lanes(); ++i) {
      const float wanted = n[i] / d[i], got = std::bit_cast<float>(b.v(0)[i]);
      if (std::fpclassify(wanted) == FP_SUBNORMAL || wanted == 0)
        EXPECT_NEAR(got, wanted, 1.5e-45) << n[i] << " / " << d[i];
      else
        EXPECT_TRUE(same_result(got, wanted)) << n[i] << " / " << d[i] << " got " << got;
    }
  }
  // Scale factors and flags of the manuals' cases: numerator, denominator, scaled denominator's factor, flag.
  struct Case {
    float n, d;
    double factor;
    bool flag;
  };
  for (const Case& one :
       {Case{3, 7, 1, false}, Case{0x1p100f, 0x1p-20f, 0x1p64, true}, Case{1, 0x1p-130f, 0x1p64, true},
        Case{0x1p60f, 0x1.8p127f, 0x1p-64, false}, Case{0x1p-120f, 0x1p20f, 1, true}}) {
    b.v(2)[0] = std::bit_cast<u32>(one.n), b.v(4)[0] = std::bit_cast<u32>(one.d);
    ASSERT_TRUE(b.run("v_div_scale_f32 v6, " + mask + ", v4, v4, v2"));
    EXPECT_EQ(std::bit_cast<float>(b.v(6)[0]), static_cast<float>(one.d * one.factor)) << one.n << " / " << one.d;
    EXPECT_EQ(b.wave().vcc() & 1, u64{one.flag}) << one.n << " / " << one.d;
  }
  using F3 = float(float, float, float);
  const float infinity = std::numeric_limits<float>::infinity();
  check<F3>("v_div_fixup_f32", [=](float q, float d, float n) {
    if (std::isnan(n) || std::isnan(d)) return std::nanf("");
    if ((n == 0 && d == 0) || (std::isinf(n) && std::isinf(d))) return std::nanf("");
    const float sign = std::signbit(n) != std::signbit(d) ? -1.0f : 1.0f;
    if (d == 0 || std::isinf(n)) return sign * infinity;
    if (std::isinf(d) || n == 0) return sign * 0.0f;
    const int exponent_n = static_cast<int>(std::bit_cast<u32>(n) >> 23 & 255),
              exponent_d = static_cast<int>(std::bit_cast<u32>(d) >> 23 & 255);
    if (exponent_n - exponent_d < -150) return sign * 0.0f;
    return std::isnan(q) ? sign * infinity : sign * std::fabs(q);
  });
  const auto half_fixup = [](half q, half d, half n) {
    const L dv = value_of(d), nv = value_of(n), qv = value_of(q);
    const L nan = std::numeric_limits<L>::quiet_NaN(), sign = std::signbit(nv) != std::signbit(dv) ? -1 : 1;
    if (std::isnan(nv) || std::isnan(dv) || (nv == 0 && dv == 0) || (std::isinf(nv) && std::isinf(dv)))
      return exact_half(nan);
    if (dv == 0 || std::isinf(nv)) return exact_half(sign * std::numeric_limits<L>::infinity());
    if (std::isinf(dv) || nv == 0) return exact_half(sign * 0.0L);
    if (std::isnan(qv)) return exact_half(sign * std::numeric_limits<L>::infinity());
    return exact_half(sign * std::fabs(qv));
  };
  check<half(half, half, half)>("v_div_fixup_f16", half_fixup);
  check<half(half, half, half)>("v_div_fixup_legacy_f16", half_fixup);
}

TEST_P(VectorProof, integers) {
  check<u64(u64)>("v_mov_b64", [](u64 a) { return a; });
  check<u64(u64, u32, u64)>("v_lshl_add_u64", [](u64 a, u32 b, u64 c) { return (a << b % 8) + c; });
  check<i32(i32, i32, i32)>("v_maxmin_i32", [](i32 a, i32 b, i32 c) { return std::min(std::max(a, b), c); });
  check<i32(i32, i32, i32)>("v_minmax_i32", [](i32 a, i32 b, i32 c) { return std::max(std::min(a, b), c); });
  check<u32(u32, u32, u32)>("v_maxmin_u32", [](u32 a, u32 b, u32 c) { return std::min(std::max(a, b), c); });
  check<u32(u32, u32, u32)>("v_minmax_u32", [](u32 a, u32 b, u32 c) { return std::max(std::min(a, b), c); });
  const auto byte_of = [](u64 x, int k) { return static_cast<int>(x >> 8 * k & 255); };
  const auto sums = [=](u64 a, u32 b, u64 c, bool masked) {
    u64 r = 0;
    for (int k = 0; k < 4; ++k) {
      u32 sum = static_cast<u32>(c >> 16 * k & 0xffff);
      for (int n = 0; n < 4; ++n)
        if (!masked || byte_of(b, n) != 0) sum += static_cast<u32>(std::abs(byte_of(a, k + n) - byte_of(b, n)));
      r |= u64{sum & 0xffff} << 16 * k;
    }
    return r;
  };
  check<u64(u64, u32, u64)>("v_qsad_pk_u16_u8", [=](u64 a, u32 b, u64 c) { return sums(a, b, c, false); });
  check<u64(u64, u32, u64)>("v_mqsad_pk_u16_u8", [=](u64 a, u32 b, u64 c) { return sums(a, b, c, true); });
  for (unsigned i = 0; i < row_lanes; ++i)
    for (unsigned r = 8; r < 20; ++r) bench.v(r)[i] = static_cast<u32>(random()) & (r == 12 ? 0x00ffff00u : ~0u);
  ASSERT_TRUE(bench.run("v_mqsad_u32_u8 v[0:3], v[8:9], v12, v[16:19]"));
  for (unsigned i = 0; i < bench.lanes(); ++i)
    for (int k = 0; k < 4; ++k) {
      u32 sum = bench.v(16 + static_cast<unsigned>(k))[i];
      const u64 window = Lane<u64>::load(bench.v(8), i);
      for (int n = 0; n < 4; ++n)
        if (byte_of(bench.v(12)[i], n) != 0)
          sum += static_cast<u32>(std::abs(byte_of(window, k + n) - byte_of(bench.v(12)[i], n)));
      ASSERT_EQ(bench.v(static_cast<unsigned>(k))[i], sum);
    }
  const std::string mask = GetParam().wave32 ? "s22" : "s[22:23]";
  for (unsigned i = 0; i < row_lanes; ++i) {
    bench.v(8)[i] = interesting<u32>(random), bench.v(10)[i] = interesting<u32>(random);
    Lane<i64>::store(bench.v(12), i, interesting<i64>(random));
  }
  ASSERT_TRUE(bench.run("v_mad_i64_i32 v[0:1], " + mask + ", v8, v10, v[12:13]"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    const __int128 sum = static_cast<__int128>(static_cast<i32>(bench.v(8)[i])) * static_cast<i32>(bench.v(10)[i]) +
                         Lane<i64>::load(bench.v(12), i);
    EXPECT_EQ(Lane<i64>::load(bench.v(0), i), static_cast<i64>(sum));
    EXPECT_EQ(bench.wave().read_mask(22) >> i & 1, u64{sum != static_cast<i64>(sum)});
  }
  check<u16(u32)>("v_sat_pk_u8_i16", [](u32 a) {
    return static_cast<u16>(std::clamp<int>(static_cast<i16>(a), 0, 255) |
                            std::clamp<int>(static_cast<i16>(a >> 16), 0, 255) << 8);
  });
  ++checked;
}

TEST_P(VectorProof, moves_between_lanes_and_registers) {
  const auto fill = [&] {
    for (unsigned r = 0; r < 40; ++r)
      for (unsigned i = 0; i < row_lanes; ++i) bench.v(r)[i] = 1000 * r + i;
    bench.set_exec(random() & bench.wave().all_lanes);
  };
  const auto active = [&](unsigned i) { return bench.wave().exec() >> i & 1; };
  const auto moved = [&](const std::string& text, unsigned m0, unsigned to, unsigned from, bool swapped) {
    fill();
    bench.s(reg_m0) = m0;
    if (!bench.run(text)) return;
    ASSERT_FALSE(bench.failed()) << bench.error().message;
    ++checked;
    for (unsigned i = 0; i < bench.lanes(); ++i) {
      EXPECT_EQ(bench.v(to)[i], 1000 * (active(i) ? from : to) + i) << text;
      EXPECT_EQ(bench.v(from)[i], 1000 * (active(i) && swapped ? to : from) + i) << text;
    }
  };
  moved("v_swap_b32 v2, v5", 0, 2, 5, true);
  moved("v_movrels_b32 v2, v5", 4, 2, 9, false);
  moved("v_movreld_b32 v2, v5", 4, 6, 5, false);
  moved("v_movrelsd_b32 v2, v5", 4, 6, 9, false);
  moved("v_movrelsd_2_b32 v2, v5", 3u << 16 | 4, 5, 9, false);
  moved("v_swaprel_b32 v2, v5", 3u << 16 | 4, 5, 9, true);
  fill();
  if (bench.run("v_swap_b16 v2.h, v5.l")) {
    ++checked;
    for (unsigned i = 0; i < bench.lanes(); ++i) {
      const u32 a = 2000 + i, b = 5000 + i;
      EXPECT_EQ(bench.v(2)[i], active(i) ? (a & 0xffff) | b << 16 : a);
      EXPECT_EQ(bench.v(5)[i], active(i) ? a >> 16 : b);
    }
  }
  fill();
  if (bench.run("v_permlane64_b32 v0, v3")) {
    ++checked;
    for (unsigned i = 0; i < bench.lanes(); ++i)
      EXPECT_EQ(bench.v(0)[i], active(i) && bench.lanes() == 64 ? 3000 + (i ^ 32) : i);
  }
  fill();
  const u64 chosen = random();
  bench.s(20) = static_cast<u32>(chosen), bench.s(21) = static_cast<u32>(chosen >> 32);
  const std::string mask = GetParam().wave32 ? "s20" : "s[20:21]";
  if (bench.run("v_cndmask_b16 v0, v3, v4, " + mask) || bench.run("v_cndmask_b16 v0.l, v3.l, v4.l, " + mask)) {
    ++checked;
    for (unsigned i = 0; i < bench.lanes(); ++i)
      EXPECT_EQ(bench.v(0)[i], active(i) ? (chosen >> i & 1 ? 4000 + i : 3000 + i) : i);
  }
  ++checked;
}

TEST_P(VectorProof, dual_issue) {
  ++checked;
  if (bench.target().major < 11 || !GetParam().wave32) return;
  struct Half {
    const char* name;
    const char* literal;  // before or after the last source
    float (*f)(float a, float b, float old);
  };
  const Half halves[] = {
      {"v_dual_add_f32", "", [](float a, float b, float) { return a + b; }},
      {"v_dual_sub_f32", "", [](float a, float b, float) { return a - b; }},
      {"v_dual_subrev_f32", "", [](float a, float b, float) { return b - a; }},
      {"v_dual_mul_f32", "", [](float a, float b, float) { return a * b; }},
      {"v_dual_mul_dx9_zero_f32", "", legacy_product},
      {"v_dual_max_f32", "", [](float a, float b, float) { return std::max(a, b); }},
      {"v_dual_min_f32", "", [](float a, float b, float) { return std::min(a, b); }},
      {"v_dual_fmac_f32", "", [](float a, float b, float c) { return std::fma(a, b, c); }},
      {"v_dual_fmaak_f32", "after", [](float a, float b, float) { return std::fma(a, b, 10.0f); }},
      {"v_dual_fmamk_f32", "between", [](float a, float b, float) { return std::fma(a, 10.0f, b); }}};
  for (const Half& one : halves) {
    for (unsigned i = 0; i < row_lanes; ++i)
      for (unsigned r = 0; r < 8; ++r)
        bench.v(r)[i] = std::bit_cast<u32>(static_cast<float>(static_cast<int>(random() % 200) - 100) / 8);
    std::vector<u32> old(bench.v(0), bench.v(0) + row_lanes), moved(bench.v(6), bench.v(6) + row_lanes);
    const std::string literal = one.literal;
    const std::string operands = literal == "between" ? " v0, v1, 0x41200000, v2"
                                 : literal == "after" ? " v0, v1, v2, 0x41200000"
                                                      : " v0, v1, v2";
    const std::string text = one.name + operands + " :: v_dual_mov_b32 v3, v6";
    ASSERT_TRUE(bench.run(text)) << text;
    ASSERT_FALSE(bench.failed()) << bench.error().message;
    for (unsigned i = 0; i < bench.lanes(); ++i) {
      EXPECT_EQ(
          std::bit_cast<float>(bench.v(0)[i]),
          one.f(std::bit_cast<float>(bench.v(1)[i]), std::bit_cast<float>(bench.v(2)[i]), std::bit_cast<float>(old[i])))
          << text;
      EXPECT_EQ(bench.v(3)[i], moved[i]);
    }
  }
  for (unsigned i = 0; i < row_lanes; ++i) {
    bench.v(0)[i] = std::bit_cast<u32>(0.5f);
    bench.v(1)[i] = 0x40003c00, bench.v(2)[i] = 0x44004200;  // (1, 2) and (3, 4)
    bench.v(6)[i] = i, bench.v(7)[i] = i, bench.v(9)[i] = 100 + i;
  }
  const char* dot = "v_dual_dot2acc_f32_f16 v0, v1, v2 :: v_dual_lshlrev_b32 v3, 2, v7";
  ASSERT_TRUE(bench.run(dot) || bench.run("v_dual_dot2c_f32_f16 v0, v1, v2 :: v_dual_lshlrev_b32 v3, 2, v7"));
  ASSERT_FALSE(bench.failed()) << bench.error().message;
  ASSERT_TRUE(bench.run("v_dual_mov_b32 v4, v6 :: v_dual_add_nc_u32 v5, v7, v9"));
  ASSERT_TRUE(bench.run("v_dual_mov_b32 v4, v6 :: v_dual_and_b32 v11, v7, v9"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    EXPECT_EQ(std::bit_cast<float>(bench.v(0)[i]), 11.5f);
    EXPECT_EQ(bench.v(3)[i], 4 * i);
    EXPECT_EQ(bench.v(5)[i], 100 + 2 * i);
    EXPECT_EQ(bench.v(11)[i], i & (100 + i));
  }
}

TEST_P(VectorProof, fft_order_of_the_swizzle) {
  // Pairs of lanes of a transform over 32 with the mask 0: the lane whose number has the five bits reversed.
  for (unsigned i = 0; i < row_lanes; ++i) bench.v(1)[i] = i;
  bench.set_exec(bench.wave().all_lanes);
  ASSERT_TRUE(bench.run("ds_swizzle_b32 v0, v1 offset:57344"));
  EXPECT_EQ(bench.v(0)[1], 16u);
  EXPECT_EQ(bench.v(0)[6], 12u);
  EXPECT_EQ(bench.v(0)[31], 31u);
  ASSERT_TRUE(bench.run("ds_swizzle_b32 v0, v1 offset:57375"));  // mask 31: every lane stays
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(0)[i], i);
  ASSERT_TRUE(bench.run("ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,\"00p1i\")"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(0)[i], (i & 32) | (i & 4) | 2u | (~i & 1u));
  ++checked;
}

TEST_P(VectorProof, comparisons_that_are_always_the_same) {
  const std::string mask = GetParam().wave32 ? "s20" : "s[20:21]";
  const bool gcn = bench.target().major == 9;
  const u64 exec = random() & bench.wave().all_lanes;
  for (const std::string type : {"i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"})
    for (const std::string condition : {"f", "t", "tru"})
      for (const bool writes_exec : {false, true})
        for (const bool halves : {false, true}) {
          bench.set_exec(exec);
          const std::string operand = type.ends_with("64") ? "v[2:3], v[4:5]" : halves ? "v2.l, v4.l" : "v2, v4";
          const std::string text = std::string(writes_exec ? "v_cmpx_" : "v_cmp_") + condition + "_" + type + "_e64 " +
                                   (writes_exec && !gcn ? "" : mask + ", ") + operand;
          if (!bench.run(text)) continue;
          ASSERT_FALSE(bench.failed()) << bench.error().message;
          const u64 wanted = condition == "f" ? 0 : exec;
          EXPECT_EQ(writes_exec ? bench.wave().exec() : bench.wave().read_mask(20), wanted) << text;
        }
  bench.set_exec(bench.wave().all_lanes);
  ++checked;
}

KERNCAP_FOR_ALL_TARGETS(VectorProof);

}  // namespace
}  // namespace kerncap::softgpu::isa
