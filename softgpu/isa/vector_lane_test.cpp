// Instructions that look at other lanes or at masks: comparisons, carries, DPP, SDWA, lane reads, permutations.
#include <gtest/gtest.h>

#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {
namespace {

class VectorLane : public VectorCheck {
 protected:
  std::string mask(unsigned reg) const {
    return GetParam().wave32 ? fmt::format("s{}", reg) : fmt::format("s[{}:{}]", reg, reg + 1);
  }
  std::string vcc() const { return GetParam().wave32 ? "vcc_lo" : "vcc"; }
  bool rdna() const { return bench.target().major >= 10; }
  u64 all() { return bench.wave().all_lanes; }
  void fill(unsigned reg) {
    for (unsigned i = 0; i < row_lanes; ++i) bench.v(reg)[i] = static_cast<u32>(random());
  }

  template <class T, class F>
  void compare(const std::string& condition, const std::string& type, F holds) {
    const std::string name = "v_cmp_" + condition + "_" + type;
    const u64 exec = random() & all();
    bench.set_exec(exec);
    bench.s(20) = bench.s(21) = 0xffffffffu;
    std::vector<T> a(row_lanes), b(row_lanes);
    for (unsigned i = 0; i < row_lanes; ++i) {
      a[i] = interesting<T>(random);
      b[i] = random() % 3 ? interesting<T>(random) : a[i];
      Lane<T>::store(bench.v(2), i, a[i]);
      Lane<T>::store(bench.v(4), i, b[i]);
    }
    if (!bench.run(name + "_e64 " + mask(20) + ", " + registers<T>(2) + ", " + registers<T>(4))) return;
    ++checked;
    ASSERT_FALSE(bench.failed()) << bench.error().message;
    u64 wanted = 0;
    for (unsigned i = 0; i < bench.lanes(); ++i) wanted |= u64{static_cast<bool>(holds(a[i], b[i]))} << i;
    EXPECT_EQ(bench.wave().read_mask(20), wanted & exec) << name;
    // v_cmpx: the same into EXEC.
    const std::string cmpx = "v_cmpx_" + condition + "_" + type + "_e64 " + (rdna() ? "" : mask(20) + ", ") +
                             registers<T>(2) + ", " + registers<T>(4);
    if (bench.run(cmpx)) {
      EXPECT_EQ(bench.wave().exec(), wanted & exec) << cmpx;
    }
    bench.set_exec(all());
  }
  template <class T>
  void compare_integers(const std::string& type) {
    compare<T>("lt", type, [](T a, T b) { return a < b; });
    compare<T>("eq", type, [](T a, T b) { return a == b; });
    compare<T>("le", type, [](T a, T b) { return a <= b; });
    compare<T>("gt", type, [](T a, T b) { return a > b; });
    compare<T>("ne", type, [](T a, T b) { return a != b; });
    compare<T>("ge", type, [](T a, T b) { return a >= b; });
  }
  template <class T>
  void compare_floats(const std::string& type) {
    const auto nan = [](T a, T b) { return std::isnan(a) || std::isnan(b); };
    compare<T>("lt", type, [=](T a, T b) { return a < b; });
    compare<T>("eq", type, [=](T a, T b) { return a == b; });
    compare<T>("le", type, [=](T a, T b) { return a <= b; });
    compare<T>("gt", type, [=](T a, T b) { return a > b; });
    compare<T>("lg", type, [=](T a, T b) { return !nan(a, b) && a != b; });
    compare<T>("ge", type, [=](T a, T b) { return a >= b; });
    compare<T>("o", type, [=](T a, T b) { return !nan(a, b); });
    compare<T>("u", type, [=](T a, T b) { return nan(a, b); });
    compare<T>("nge", type, [=](T a, T b) { return nan(a, b) || a < b; });
    compare<T>("nlg", type, [=](T a, T b) { return nan(a, b) || a == b; });
    compare<T>("ngt", type, [=](T a, T b) { return nan(a, b) || a <= b; });
    compare<T>("nle", type, [=](T a, T b) { return nan(a, b) || a > b; });
    compare<T>("neq", type, [=](T a, T b) { return nan(a, b) || a != b; });
    compare<T>("nlt", type, [=](T a, T b) { return nan(a, b) || a >= b; });
  }
};

TEST_P(VectorLane, comparisons_write_active_lanes_only) {
  compare_integers<i32>("i32");
  compare_integers<u32>("u32");
  compare_integers<i64>("i64");
  compare_integers<u64>("u64");
  compare_integers<i16>("i16");
  compare_integers<u16>("u16");
  compare_floats<float>("f32");
  compare_floats<double>("f64");
}

TEST_P(VectorLane, class_test_tells_all_ten_classes) {
  const u32 values[] = {0x7f800001, 0x7fc00000, 0xff800000, 0xbf800000, 0x80000001,
                        0x80000000, 0,          1,          0x3f800000, 0x7f800000};
  for (unsigned k = 0; k < 10; ++k) bench.v(1)[k] = values[k];
  for (unsigned bit = 0; bit < 10; ++bit) {
    for (unsigned i = 0; i < row_lanes; ++i) bench.v(2)[i] = 1u << bit;
    ASSERT_TRUE(bench.run("v_cmp_class_f32_e64 " + mask(20) + ", v1, v2"));
    EXPECT_EQ(bench.wave().read_mask(20) & 0x3ff, u64{1} << bit);
  }
  ++checked;
}

TEST_P(VectorLane, select_by_mask) {
  fill(1), fill(2);
  const u64 chosen = random();
  bench.s(20) = static_cast<u32>(chosen), bench.s(21) = static_cast<u32>(chosen >> 32);
  ASSERT_TRUE(bench.run("v_cndmask_b32_e64 v0, v1, -v2, " + mask(20)));
  for (unsigned i = 0; i < bench.lanes(); ++i)
    EXPECT_EQ(bench.v(0)[i], chosen >> i & 1 ? bench.v(2)[i] ^ 0x80000000u : bench.v(1)[i]);
  bench.wave().write_mask(reg_vcc, chosen);
  ASSERT_TRUE(bench.run("v_cndmask_b32_e32 v0, 1.0, v2, " + vcc()));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(0)[i], chosen >> i & 1 ? bench.v(2)[i] : 0x3f800000u);
  ++checked;
}

TEST_P(VectorLane, carries) {
  for (int round = 0; round < 4; ++round) {
    for (unsigned i = 0; i < row_lanes; ++i)
      bench.v(1)[i] = interesting<u32>(random), bench.v(2)[i] = interesting<u32>(random);
    const u64 in = random(), exec = round == 3 ? random() & all() : all();
    bench.set_exec(exec);
    const auto test = [&](const std::string& text, bool uses_carry, auto exact) {
      bench.s(20) = static_cast<u32>(in), bench.s(21) = static_cast<u32>(in >> 32);
      ASSERT_TRUE(bench.run(text)) << text;
      for (unsigned i = 0; i < bench.lanes(); ++i) {
        const i64 wide =
            exact(i64{bench.v(1)[i]}, i64{bench.v(2)[i]}, i64{uses_carry ? static_cast<i64>(in >> i & 1) : 0});
        const bool active = exec >> i & 1;
        if (active) {
          EXPECT_EQ(bench.v(0)[i], static_cast<u32>(wide)) << text;
        }
        EXPECT_EQ(bench.wave().read_mask(22) >> i & 1, u64{active && (wide < 0 || wide > 0xffffffffll)})
            << text << " lane " << i;
      }
    };
    const std::string out = mask(22), carry_in = mask(20);
    test("v_add_co_u32 v0, " + out + ", v1, v2", false, [](i64 a, i64 b, i64) { return a + b; });
    test("v_sub_co_u32 v0, " + out + ", v1, v2", false, [](i64 a, i64 b, i64) { return a - b; });
    test("v_subrev_co_u32 v0, " + out + ", v1, v2", false, [](i64 a, i64 b, i64) { return b - a; });
    const std::string ci = rdna() ? "_co_ci_u32" : "";
    test((rdna() ? "v_add_co_ci_u32" : "v_addc_co_u32") + std::string("_e64 v0, ") + out + ", v1, v2, " + carry_in,
         true, [](i64 a, i64 b, i64 c) { return a + b + c; });
    test((rdna() ? "v_sub_co_ci_u32" : "v_subb_co_u32") + std::string("_e64 v0, ") + out + ", v1, v2, " + carry_in,
         true, [](i64 a, i64 b, i64 c) { return a - b - c; });
    test(
        (rdna() ? "v_subrev_co_ci_u32" : "v_subbrev_co_u32") + std::string("_e64 v0, ") + out + ", v1, v2, " + carry_in,
        true, [](i64 a, i64 b, i64 c) { return b - a - c; });
  }
  bench.set_exec(all());
  for (unsigned i = 0; i < row_lanes; ++i) Lane<u64>::store(bench.v(4), i, i % 2 ? ~u64{0} : random());
  fill(1), fill(2);
  ASSERT_TRUE(bench.run("v_mad_u64_u32 v[6:7], " + mask(22) + ", v1, v2, v[4:5]"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    const unsigned __int128 wide =
        static_cast<unsigned __int128>(u64{bench.v(1)[i]} * bench.v(2)[i]) + Lane<u64>::load(bench.v(4), i);
    EXPECT_EQ(Lane<u64>::load(bench.v(6), i), static_cast<u64>(wide));
    EXPECT_EQ(bench.wave().read_mask(22) >> i & 1, static_cast<u64>(wide >> 64));
  }
  ++checked;
}

TEST_P(VectorLane, dpp_controls) {
  fill(1), fill(2);
  struct Control {
    std::string text;
    std::function<int(int)> from;  // -1: no such lane
    bool gcn_only = false, rdna_only = false;
  };
  const auto row = [](int i, int column) { return column >= 0 && column < 16 ? i / 16 * 16 + column : -1; };
  const std::vector<Control> controls = {
      {"quad_perm:[3,1,0,2]",
       [](int i) {
         const int order[] = {3, 1, 0, 2};
         return i / 4 * 4 + order[i % 4];
       }},
      {"row_shl:3", [&](int i) { return row(i, i % 16 + 3); }},
      {"row_shr:5", [&](int i) { return row(i, i % 16 - 5); }},
      {"row_ror:7", [&](int i) { return row(i, (i % 16 + 9) % 16); }},
      {"row_mirror", [&](int i) { return row(i, 15 - i % 16); }},
      {"row_half_mirror", [](int i) { return i / 8 * 8 + 7 - i % 8; }},
      {"wave_shl:1", [](int i) { return i + 1 < 64 ? i + 1 : -1; }, true},
      {"wave_shr:1", [](int i) { return i - 1; }, true},
      {"wave_rol:1", [](int i) { return (i + 1) % 64; }, true},
      {"wave_ror:1", [](int i) { return (i + 63) % 64; }, true},
      {"row_bcast:15", [](int i) { return i >= 16 ? i / 16 * 16 - 1 : -1; }, true},
      {"row_bcast:31", [](int i) { return i >= 32 ? 31 : -1; }, true},
      {"row_share:4", [&](int i) { return row(i, 4); }, false, true},
      {"row_xmask:6", [&](int i) { return row(i, i % 16 ^ 6); }, false, true},
  };
  unsigned ran = 0;
  for (const auto& control : controls) {
    for (const std::string bound : {"", " bound_ctrl:1"}) {
      const u64 exec = random() & all();
      bench.set_exec(exec);
      for (unsigned i = 0; i < row_lanes; ++i) bench.v(0)[i] = 7777 + i;
      const std::string text = "v_add_u32_dpp v0, v1, v2 " + control.text + " row_mask:0x7 bank_mask:0xd" + bound;
      const std::string rdna_text = "v_xor_b32_dpp v0, v1, v2 " + control.text + " row_mask:0x7 bank_mask:0xd" + bound;
      const bool is_rdna = rdna();
      if (!bench.run(is_rdna ? rdna_text : text)) continue;
      ++ran;
      ASSERT_FALSE(bench.failed()) << bench.error().message;
      for (int i = 0; i < static_cast<int>(bench.lanes()); ++i) {
        const int from = control.from(i);
        const bool valid = from >= 0 && (exec >> from & 1);
        const bool enabled = (exec >> i & 1) && i / 16 != 3 && i % 16 / 4 != 1 && (valid || !bound.empty());
        const u32 first = valid ? bench.v(1)[from] : 0, second = bench.v(2)[i];
        EXPECT_EQ(bench.v(0)[i], enabled ? (is_rdna ? first ^ second : first + second) : 7777u + static_cast<u32>(i))
            << text << " lane " << i;
      }
    }
  }
  EXPECT_GE(ran, 12u);
  ++checked;
  bench.set_exec(all());
}

TEST_P(VectorLane, sdwa_selects) {
  ++checked;
  if (bench.target().major >= 11 || bench.target().gfx940) return;  // no SDWA there
  fill(1), fill(2);
  const std::vector<u32> old(row_lanes, 0x89abcdefu);
  const auto reset = [&] { std::copy(old.begin(), old.end(), bench.v(0)); };
  const std::string add = rdna() ? "v_add_nc_u32_sdwa" : "v_add_u32_sdwa";
  reset();
  ASSERT_TRUE(
      bench.run(add + " v0, v1, sext(v2) dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_3 src1_sel:WORD_1"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    const u32 sum = (bench.v(1)[i] >> 24) + static_cast<u32>(i32{static_cast<i16>(bench.v(2)[i] >> 16)});
    EXPECT_EQ(bench.v(0)[i], (old[i] & 0xffff00ffu) | (sum & 255) << 8);
  }
  reset();
  ASSERT_TRUE(bench.run(add + " v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:DWORD"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(0)[i], ((bench.v(1)[i] & 255) + bench.v(2)[i]) << 16);
  reset();
  ASSERT_TRUE(bench.run(add + " v0, v1, v2 dst_sel:BYTE_2 dst_unused:UNUSED_SEXT src0_sel:WORD_0 src1_sel:BYTE_1"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    const u32 sum = ((bench.v(1)[i] & 0xffff) + (bench.v(2)[i] >> 8 & 255)) & 255;
    EXPECT_EQ(bench.v(0)[i], sum << 16 | (sum & 0x80 ? 0xff000000u : 0u));
  }
  ASSERT_TRUE(bench.run("v_cmp_eq_u32_sdwa " + vcc() + ", v1, v2 src0_sel:BYTE_0 src1_sel:BYTE_0"));
  for (unsigned i = 0; i < bench.lanes(); ++i)
    EXPECT_EQ(bench.wave().vcc() >> i & 1, u64{(bench.v(1)[i] & 255) == (bench.v(2)[i] & 255)});
}

TEST_P(VectorLane, lane_reads_and_writes) {
  fill(1);
  bench.set_exec(0xf0);
  ASSERT_TRUE(bench.run("v_readfirstlane_b32 s4, v1"));
  EXPECT_EQ(bench.s(4), bench.v(1)[4]);
  bench.set_exec(0);
  ASSERT_TRUE(bench.run("v_readfirstlane_b32 s4, v1"));
  EXPECT_EQ(bench.s(4), bench.v(1)[0]);
  ASSERT_TRUE(bench.run("v_readlane_b32 s4, v1, 17"));
  EXPECT_EQ(bench.s(4), bench.v(1)[17]);
  bench.s(5) = 64 + 9;  // modulo the wave size
  ASSERT_TRUE(bench.run("v_readlane_b32 s4, v1, s5"));
  EXPECT_EQ(bench.s(4), bench.v(1)[9]);
  bench.s(6) = 4711;
  ASSERT_TRUE(bench.run("v_writelane_b32 v1, s6, 30"));
  EXPECT_EQ(bench.v(1)[30], 4711u);
  bench.set_exec(all());
  bench.s(8) = 0xffffffff, bench.s(9) = 0x0000ffff;
  ASSERT_TRUE(bench.run(rdna() ? "v_mbcnt_lo_u32_b32_e64 v2, s8, 0" : "v_mbcnt_lo_u32_b32 v2, s8, 0"));
  if (!GetParam().wave32) {
    ASSERT_TRUE(bench.run("v_mbcnt_hi_u32_b32 v2, s9, v2"));
  }
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(2)[i], std::min(i, 48u));
  ++checked;
}

TEST_P(VectorLane, permutations_through_the_lds_crossbar) {
  fill(1);
  // RDNA exchanges lanes within 32, GCN within the wave.
  const unsigned together = rdna() ? 32 : bench.lanes();
  const auto other = [&](unsigned i) { return i / together * together + bench.v(2)[i] / 4 % together; };
  for (unsigned i = 0; i < row_lanes; ++i) bench.v(2)[i] = (i * 7 + 3) % bench.lanes() * 4;
  const u64 exec = random() & all();
  bench.set_exec(exec);
  ASSERT_TRUE(bench.run("ds_bpermute_b32 v0, v2, v1"));
  for (unsigned i = 0; i < bench.lanes(); ++i)
    if (exec >> i & 1) {
      const unsigned from = other(i);
      EXPECT_EQ(bench.v(0)[i], exec >> from & 1 ? bench.v(1)[from] : 0) << i;
    }
  ASSERT_TRUE(bench.run("ds_permute_b32 v0, v2, v1"));
  std::vector<u32> pushed(row_lanes);
  for (unsigned i = 0; i < bench.lanes(); ++i)
    if (exec >> i & 1) pushed[other(i)] = bench.v(1)[i];
  for (unsigned i = 0; i < bench.lanes(); ++i)
    if (exec >> i & 1) {
      EXPECT_EQ(bench.v(0)[i], pushed[i]) << i;
    }
  bench.set_exec(all());
  ASSERT_TRUE(bench.run("ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,2,0,3,1)"));
  constexpr unsigned order[] = {2, 0, 3, 1};
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(0)[i], bench.v(1)[i / 4 * 4 + order[i % 4]]);
  ASSERT_TRUE(bench.run("ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,8)"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(0)[i], bench.v(1)[i ^ 8]);
  ASSERT_TRUE(bench.run("ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,16,5)"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(0)[i], bench.v(1)[i / 16 * 16 + 5]);
  if (rdna()) {
    bench.s(4) = 0x76543210, bench.s(5) = 0x01234567;
    ASSERT_TRUE(bench.run("v_permlane16_b32 v0, v1, s4, s5"));
    for (unsigned i = 0; i < bench.lanes(); ++i)
      EXPECT_EQ(bench.v(0)[i], bench.v(1)[i / 16 * 16 + (i % 16 < 8 ? i % 8 : 7 - i % 8)]);
    ASSERT_TRUE(bench.run("v_permlanex16_b32 v0, v1, s4, s5"));
    for (unsigned i = 0; i < bench.lanes(); ++i)
      EXPECT_EQ(bench.v(0)[i], bench.v(1)[(i / 16 * 16 + (i % 16 < 8 ? i % 8 : 7 - i % 8)) ^ 16]);
  }
  ++checked;
}

KERNCAP_FOR_ALL_TARGETS(VectorLane);

}  // namespace
}  // namespace kerncap::softgpu::isa
