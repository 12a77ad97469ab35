// Scalar arithmetic and program control.
#include <gtest/gtest.h>

#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {
namespace {

class ScalarInstructions : public VectorCheck {
 protected:
  u64 pair(unsigned reg) { return bench.wave().read64(reg); }
  void set_pair(unsigned reg, u64 value) { bench.wave().write64(reg, value); }

  // F(a, b, carry in) -> {result, carry out}
  template <class F>
  void binary(const std::string& name, F expected) {
    for (int round = 0; round < 60; ++round) {
      const u32 a = interesting<u32>(random), b = interesting<u32>(random);
      bench.s(4) = a, bench.s(5) = b;
      const bool in = bench.wave().scc = random() & 1;
      if (!bench.run(name + " s6, s4, s5")) return;
      const std::pair<u32, bool> wanted = expected(a, b, in);
      ASSERT_EQ(bench.s(6), wanted.first) << name << " " << a << " " << b;
      ASSERT_EQ(bench.wave().scc, wanted.second) << name << " " << a << " " << b;
    }
    ++checked;
  }
  template <class F>
  void binary64(const std::string& name, F expected) {
    for (int round = 0; round < 60; ++round) {
      const u64 a = interesting<u64>(random), b = interesting<u64>(random);
      set_pair(4, a), set_pair(8, b);
      const bool in = bench.wave().scc = random() & 1;
      if (!bench.run(name + " s[6:7], s[4:5], s[8:9]")) return;
      const std::pair<u64, bool> wanted = expected(a, b, in);
      ASSERT_EQ(pair(6), wanted.first) << name;
      ASSERT_EQ(bench.wave().scc, wanted.second) << name;
    }
    ++checked;
  }
  template <class F>
  void compare(const std::string& name, F expected) {
    for (int round = 0; round < 60; ++round) {
      const u32 a = interesting<u32>(random), b = round % 4 ? interesting<u32>(random) : a;
      bench.s(4) = a, bench.s(5) = b;
      if (!bench.run(name + " s4, s5")) return;
      ASSERT_EQ(bench.wave().scc, expected(a, b)) << name << " " << a << " " << b;
    }
    ++checked;
  }
};

TEST_P(ScalarInstructions, sums_set_carry_or_overflow) {
  using P = std::pair<u32, bool>;
  const auto fits = [](i64 x) { return x >= -2147483648ll && x <= 2147483647ll; };
  binary("s_add_u32", [](u32 a, u32 b, bool) { return P{a + b, u64{a} + b > 0xffffffffu}; });
  binary("s_addc_u32", [](u32 a, u32 b, bool c) { return P{a + b + c, u64{a} + b + c > 0xffffffffu}; });
  binary("s_sub_u32", [](u32 a, u32 b, bool) { return P{a - b, i64{a} - i64{b} < 0}; });
  binary("s_subb_u32", [](u32 a, u32 b, bool c) { return P{a - b - c, i64{a} - i64{b} - c < 0}; });
  binary("s_add_i32", [=](u32 a, u32 b, bool) {
    return P{a + b, !fits(i64{static_cast<i32>(a)} + static_cast<i32>(b))};
  });
  binary("s_sub_i32", [=](u32 a, u32 b, bool) {
    return P{a - b, !fits(i64{static_cast<i32>(a)} - static_cast<i32>(b))};
  });
  binary("s_mul_i32", [](u32 a, u32 b, bool c) { return P{a * b, c}; });
  binary("s_mul_hi_u32", [](u32 a, u32 b, bool c) { return P{static_cast<u32>(u64{a} * b >> 32), c}; });
  binary("s_mul_hi_i32", [](u32 a, u32 b, bool c) {
    return P{static_cast<u32>(i64{static_cast<i32>(a)} * static_cast<i32>(b) >> 32), c};
  });
  binary("s_absdiff_i32", [](u32 a, u32 b, bool) {
    const i64 d = i64{static_cast<i32>(a)} - static_cast<i32>(b);
    const u32 r = static_cast<u32>(d < 0 ? -d : d);
    return P{r, r != 0};
  });
  binary("s_lshl2_add_u32", [](u32 a, u32 b, bool) {
    const u64 r = u64{a} * 4 + b;
    return P{static_cast<u32>(r), r > 0xffffffffu};
  });
}

TEST_P(ScalarInstructions, logic_and_shifts_set_scc_when_not_zero) {
  const auto flagged = [](auto f) {
    return [f](u32 a, u32 b, bool) {
      const u32 r = f(a, b);
      return std::pair<u32, bool>{r, r != 0};
    };
  };
  binary("s_and_b32", flagged([](u32 a, u32 b) { return a & b; }));
  binary("s_or_b32", flagged([](u32 a, u32 b) { return a | b; }));
  binary("s_xor_b32", flagged([](u32 a, u32 b) { return a ^ b; }));
  binary("s_nand_b32", flagged([](u32 a, u32 b) { return ~(a & b); }));
  binary("s_xnor_b32", flagged([](u32 a, u32 b) { return ~(a ^ b); }));
  binary(bench.target().major >= 11 ? "s_and_not1_b32" : "s_andn2_b32", flagged([](u32 a, u32 b) { return a & ~b; }));
  binary("s_lshl_b32", flagged([](u32 a, u32 b) { return static_cast<u32>(u64{a} << b % 32); }));
  binary("s_lshr_b32", flagged([](u32 a, u32 b) { return a >> b % 32; }));
  binary("s_ashr_i32", flagged([](u32 a, u32 b) { return static_cast<u32>(i64{static_cast<i32>(a)} >> b % 32); }));
  binary("s_bfe_u32", flagged([](u32 a, u32 b) {
           u32 r = 0;
           for (u32 k = 0; k < (b >> 16 & 127) && k < 32; ++k)
             if (b % 32 + k < 32) r |= (a >> (b % 32 + k) & 1) << k;
           return r;
         }));
  binary("s_bfm_b32", [](u32 a, u32 b, bool c) {
    u32 r = 0;
    for (u32 k = 0; k < a % 32; ++k)
      if (k + b % 32 < 32) r |= 1u << (k + b % 32);
    return std::pair<u32, bool>{r, c};
  });
  binary("s_min_i32", [](u32 a, u32 b, bool) {
    const bool less = static_cast<i32>(a) < static_cast<i32>(b);
    return std::pair<u32, bool>{less ? a : b, less};
  });
  binary("s_max_u32", [](u32 a, u32 b, bool) { return std::pair<u32, bool>{a > b ? a : b, a > b}; });
  binary("s_cselect_b32", [](u32 a, u32 b, bool c) { return std::pair<u32, bool>{c ? a : b, c}; });
  binary("s_pack_lh_b32_b16", [](u32 a, u32 b, bool c) {
    return std::pair<u32, bool>{(a & 0xffff) | (b >> 16 << 16), c};
  });
  const auto flagged64 = [](auto f) {
    return [f](u64 a, u64 b, bool) {
      const u64 r = f(a, b);
      return std::pair<u64, bool>{r, r != 0};
    };
  };
  binary64("s_and_b64", flagged64([](u64 a, u64 b) { return a & b; }));
  binary64("s_or_b64", flagged64([](u64 a, u64 b) { return a | b; }));
  binary64("s_xor_b64", flagged64([](u64 a, u64 b) { return a ^ b; }));
  binary64("s_nor_b64", flagged64([](u64 a, u64 b) { return ~(a | b); }));
}

TEST_P(ScalarInstructions, comparisons) {
  compare("s_cmp_eq_i32", [](u32 a, u32 b) { return a == b; });
  compare("s_cmp_lg_u32", [](u32 a, u32 b) { return a != b; });
  compare("s_cmp_lt_i32", [](u32 a, u32 b) { return static_cast<i32>(a) < static_cast<i32>(b); });
  compare("s_cmp_ge_u32", [](u32 a, u32 b) { return a >= b; });
  compare("s_bitcmp1_b32", [](u32 a, u32 b) { return (a >> b % 32 & 1) == 1; });
}

TEST_P(ScalarInstructions, counting_and_moving) {
  const auto unary = [&](const char* name, const char* newer, u32 value, u32 wanted) {
    bench.s(4) = value;
    ASSERT_TRUE(bench.run(std::string(name) + " s6, s4") || bench.run(std::string(newer) + " s6, s4")) << name;
    EXPECT_EQ(bench.s(6), wanted) << name << " " << value;
  };
  unary("s_brev_b32", "", 0x80000001u, 0x80000001u);
  unary("s_brev_b32", "", 0x0000000fu, 0xf0000000u);
  unary("s_ff1_i32_b32", "s_ctz_i32_b32", 0, ~0u);
  unary("s_ff1_i32_b32", "s_ctz_i32_b32", 0x100, 8);
  unary("s_flbit_i32_b32", "s_clz_i32_u32", 0x100, 23);
  unary("s_flbit_i32_b32", "s_clz_i32_u32", 0, ~0u);
  unary("s_flbit_i32", "s_cls_i32", 0xffff0000u, 16);
  unary("s_flbit_i32", "s_cls_i32", ~0u, ~0u);
  unary("s_bcnt1_i32_b32", "", 0xf0f0u, 8);
  unary("s_sext_i32_i8", "", 0x1280u, 0xffffff80u);
  unary("s_sext_i32_i16", "", 0x18000u, 0xffff8000u);
  unary("s_abs_i32", "", 0x80000000u, 0x80000000u);
  unary("s_not_b32", "", 0x0f, 0xfffffff0u);
  ASSERT_TRUE(bench.run("s_movk_i32 s4, 0xfffe"));
  EXPECT_EQ(bench.s(4), ~1u);
  ASSERT_TRUE(bench.run("s_addk_i32 s4, 0xf800"));
  EXPECT_EQ(bench.s(4), ~1u - 2048);
  ASSERT_TRUE(bench.run("s_mov_b64 s[4:5], -16"));
  EXPECT_EQ(pair(4), static_cast<u64>(-16));
  ASSERT_TRUE(bench.run("s_mov_b64 s[4:5], 1.0"));
  EXPECT_EQ(pair(4), 0x3ff0000000000000u);
  ASSERT_TRUE(bench.run("s_mov_b32 s4, 0.5"));
  EXPECT_EQ(bench.s(4), 0x3f000000u);
  ASSERT_TRUE(bench.run("s_mov_b64 s[4:5], src_private_base"));
  EXPECT_EQ(pair(4), scratch_aperture);
  ASSERT_TRUE(bench.run("s_getreg_b32 s4, hwreg(HW_REG_SH_MEM_BASES, 16, 16)") || bench.target().major >= 10);
  if (bench.target().major == 9) {
    EXPECT_EQ(bench.s(4), lds_aperture >> 48);
  }
  if (!GetParam().wave32) {
    bench.set_exec(0xff00);
    set_pair(4, 0x0ff0);
    ASSERT_TRUE(bench.run("s_and_saveexec_b64 s[6:7], s[4:5]"));
    EXPECT_EQ(pair(6), 0xff00u);
    EXPECT_EQ(bench.wave().exec(), 0x0f00u);
    EXPECT_TRUE(bench.wave().scc);
  } else {
    bench.set_exec(0xff00);
    bench.s(4) = 0x00f0;
    ASSERT_TRUE(bench.run("s_or_saveexec_b32 s6, s4"));
    EXPECT_EQ(bench.s(6), 0xff00u);
    EXPECT_EQ(bench.wave().exec(), 0xfff0u);
  }
  ++checked;
}

TEST_P(ScalarInstructions, program_control) {
  Wave& w = bench.wave();
  const auto taken = [&](const std::string& text) {
    EXPECT_TRUE(bench.run(text)) << text;
    return w.next;
  };
  w.scc = true;
  const Operation* here = taken("s_cbranch_scc1 16");
  const u64 target = CodeCache::address_of(here);
  here = taken("s_cbranch_scc0 16");
  EXPECT_EQ(CodeCache::address_of(here), target - 64 + 4);  // not taken; the code moved on by one dword
  bench.set_exec(0);
  const Operation* before = taken("s_cbranch_execnz 16");
  EXPECT_EQ(CodeCache::address_of(taken("s_cbranch_execz -4")), CodeCache::address_of(before) + 4 - 16);
  bench.set_exec(w.all_lanes);
  ASSERT_TRUE(bench.run("s_getpc_b64 s[4:5]"));
  EXPECT_EQ(pair(4), CodeCache::address_of(w.next));
  set_pair(6, 0x200000100);
  EXPECT_EQ(CodeCache::address_of(taken("s_swappc_b64 s[8:9], s[6:7]")), 0x200000100u);
  EXPECT_EQ(pair(8), pair(4) + 4);
  ASSERT_TRUE(bench.run("s_endpgm"));
  EXPECT_EQ(w.state, WaveState::done);
  w.state = WaveState::ready;
  ASSERT_TRUE(bench.run("s_barrier"));
  EXPECT_EQ(w.state, WaveState::barrier);
  w.state = WaveState::ready;
  bench.s(reg_m0) = 77;
  ASSERT_TRUE(bench.run("s_mov_b32 m0, 77") && bench.run("s_sendmsg sendmsg(MSG_INTERRUPT)"));
  EXPECT_EQ(bench.interrupts, std::vector<std::uint32_t>{77});
  ASSERT_TRUE(bench.run("s_trap 2"));
  EXPECT_EQ(bench.error().status, DispatchStatus::trap);
  EXPECT_NE(bench.error().message.find("s_trap 2"), std::string::npos) << bench.error().message;
  ++checked;
}

KERNCAP_FOR_ALL_TARGETS(ScalarInstructions);

}  // namespace
}  // namespace kerncap::softgpu::isa
