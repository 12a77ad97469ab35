// Scalar instructions, from tables: the result and SCC on numbers where things go wrong.
#include <gtest/gtest.h>

#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {
namespace {

struct Outcome {
  u64 value;
  bool scc;
};
using Formula = Outcome (*)(u64 a, u64 b, bool scc);
struct Row {
  const char *name, *newer;        // RDNA3's, when it is another
  unsigned result, first, second;  // bits of the operands; 0: there is none
  Formula formula;
};
using wide = __int128;

i64 s32(u64 x) { return static_cast<i32>(x); }
u64 low_ones(u64 count) { return count >= 64 ? ~u64{0} : (u64{1} << count) - 1; }
u64 low32(u64 x) { return x & 0xffffffffu; }
Outcome nonzero(u64 x) { return {x, x != 0}; }
Outcome nonzero32(u64 x) { return nonzero(low32(x)); }
template <unsigned bits>
u64 field(u64 value, u64 what, bool is_signed) {
  const u64 offset = what % bits, width = what >> 16 & 127;
  u64 result = 0;
  for (u64 k = 0; k < width && k < bits; ++k) {
    const u64 at = offset + k;
    const bool bit = at < bits ? value >> at & 1 : is_signed && (value >> (bits - 1) & 1);
    result |= u64{bit} << k;
  }
  const u64 last = std::min<u64>(offset + width, bits) - 1;
  if (is_signed && width != 0 && width < bits && (value >> last & 1)) result |= ~low_ones(width);
  return result & low_ones(bits);
}
u64 first_set(u64 x, unsigned bits) {
  for (unsigned k = 0; k < bits; ++k)
    if (x >> k & 1) return k;
  return 0xffffffffu;
}
u64 zeros_above(u64 x, unsigned bits) {
  for (unsigned k = 0; k < bits; ++k)
    if (x >> (bits - 1 - k) & 1) return k;
  return 0xffffffffu;
}
u64 equal_to_sign(u64 x, unsigned bits) {
  for (unsigned k = 1; k < bits; ++k)
    if ((x >> (bits - 1 - k) & 1) != (x >> (bits - 1) & 1)) return k;
  return 0xffffffffu;
}
u64 ones(u64 x) {
  u64 n = 0;
  for (; x != 0; x >>= 1) n += x & 1;
  return n;
}
u64 reversed(u64 x, unsigned bits) {
  u64 r = 0;
  for (unsigned k = 0; k < bits; ++k) r |= (x >> k & 1) << (bits - 1 - k);
  return r;
}
u64 quads(u64 x, bool whole) {
  u64 r = 0;
  for (unsigned q = 0; q < 16; ++q)
    if (x >> 4 * q & 15) r |= whole ? u64{15} << 4 * q : u64{1} << q;
  return r;
}
u64 doubled_bits(u64 x) {
  u64 r = 0;
  for (unsigned k = 0; k < 64; ++k) r |= (x >> k / 2 & 1) << k;
  return r;
}

const Row rows[] = {
    {"s_nor_b32", "", 32, 32, 32, [](u64 a, u64 b, bool) { return nonzero32(~(a | b)); }},
    {"s_orn2_b32", "s_or_not1_b32", 32, 32, 32, [](u64 a, u64 b, bool) { return nonzero32(a | ~b); }},
    {"s_nand_b64", "", 64, 64, 64, [](u64 a, u64 b, bool) { return nonzero(~(a & b)); }},
    {"s_xnor_b64", "", 64, 64, 64, [](u64 a, u64 b, bool) { return nonzero(~(a ^ b)); }},
    {"s_andn2_b64", "s_and_not1_b64", 64, 64, 64, [](u64 a, u64 b, bool) { return nonzero(a & ~b); }},
    {"s_orn2_b64", "s_or_not1_b64", 64, 64, 64, [](u64 a, u64 b, bool) { return nonzero(a | ~b); }},
    {"s_cselect_b64", "", 64, 64, 64,
     [](u64 a, u64 b, bool c) {
       return Outcome{c ? a : b, c};
     }},
    {"s_lshl_b64", "", 64, 64, 32, [](u64 a, u64 b, bool) { return nonzero(a << b % 64); }},
    {"s_lshr_b64", "", 64, 64, 32, [](u64 a, u64 b, bool) { return nonzero(a >> b % 64); }},
    {"s_ashr_i64", "", 64, 64, 32,
     [](u64 a, u64 b, bool) { return nonzero(static_cast<u64>(static_cast<i64>(a) >> b % 64)); }},
    {"s_bfm_b64", "", 64, 32, 32,
     [](u64 a, u64 b, bool c) {
       return Outcome{low_ones(a % 64) << b % 64, c};
     }},
    {"s_bfe_i32", "", 32, 32, 32, [](u64 a, u64 b, bool) { return nonzero(field<32>(a, b, true)); }},
    {"s_bfe_u64", "", 64, 64, 32, [](u64 a, u64 b, bool) { return nonzero(field<64>(a, b, false)); }},
    {"s_bfe_i64", "", 64, 64, 32, [](u64 a, u64 b, bool) { return nonzero(field<64>(a, b, true)); }},
    {"s_mul_i32", "", 32, 32, 32,
     [](u64 a, u64 b, bool c) {
       return Outcome{low32(a * b), c};
     }},
    {"s_mul_hi_u32", "", 32, 32, 32,
     [](u64 a, u64 b, bool c) {
       return Outcome{a * b >> 32, c};
     }},
    {"s_mul_hi_i32", "", 32, 32, 32,
     [](u64 a, u64 b, bool c) {
       return Outcome{low32(static_cast<u64>(s32(a) * s32(b)) >> 32), c};
     }},
    {"s_min_u32", "", 32, 32, 32,
     [](u64 a, u64 b, bool) {
       return Outcome{a < b ? a : b, a < b};
     }},
    {"s_max_i32", "", 32, 32, 32,
     [](u64 a, u64 b, bool) {
       return Outcome{s32(a) > s32(b) ? a : b, s32(a) > s32(b)};
     }},
    {"s_absdiff_i32", "", 32, 32, 32,
     [](u64 a, u64 b, bool) {
       return nonzero32(static_cast<u64>(s32(a) > s32(b) ? s32(a) - s32(b) : s32(b) - s32(a)));
     }},
    {"s_lshl1_add_u32", "", 32, 32, 32,
     [](u64 a, u64 b, bool) {
       return Outcome{low32(2 * a + b), 2 * a + b > 0xffffffffu};
     }},
    {"s_lshl2_add_u32", "", 32, 32, 32,
     [](u64 a, u64 b, bool) {
       return Outcome{low32(4 * a + b), 4 * a + b > 0xffffffffu};
     }},
    {"s_lshl3_add_u32", "", 32, 32, 32,
     [](u64 a, u64 b, bool) {
       return Outcome{low32(8 * a + b), 8 * a + b > 0xffffffffu};
     }},
    {"s_lshl4_add_u32", "", 32, 32, 32,
     [](u64 a, u64 b, bool) {
       return Outcome{low32(16 * a + b), 16 * a + b > 0xffffffffu};
     }},
    {"s_pack_ll_b32_b16", "", 32, 32, 32,
     [](u64 a, u64 b, bool c) {
       return Outcome{a % 65536 + b % 65536 * 65536, c};
     }},
    {"s_pack_hh_b32_b16", "", 32, 32, 32,
     [](u64 a, u64 b, bool c) {
       return Outcome{a / 65536 + b / 65536 * 65536, c};
     }},
    {"s_pack_hl_b32_b16", "", 32, 32, 32,
     [](u64 a, u64 b, bool c) {
       return Outcome{a / 65536 + b % 65536 * 65536, c};
     }},
    {"s_not_b64", "", 64, 64, 0, [](u64 a, u64, bool) { return nonzero(~a); }},
    {"s_wqm_b32", "", 32, 32, 0, [](u64 a, u64, bool) { return nonzero(quads(a, true)); }},
    {"s_wqm_b64", "", 64, 64, 0, [](u64 a, u64, bool) { return nonzero(quads(a, true)); }},
    {"s_quadmask_b32", "", 32, 32, 0, [](u64 a, u64, bool) { return nonzero(quads(a, false)); }},
    {"s_quadmask_b64", "", 64, 64, 0, [](u64 a, u64, bool) { return nonzero(quads(a, false)); }},
    {"s_brev_b64", "", 64, 64, 0, [](u64 a, u64, bool c) { return Outcome{reversed(a, 64), c}; }},
    {"s_bcnt0_i32_b32", "", 32, 32, 0, [](u64 a, u64, bool) { return nonzero(32 - ones(a)); }},
    {"s_bcnt0_i32_b64", "", 32, 64, 0, [](u64 a, u64, bool) { return nonzero(64 - ones(a)); }},
    {"s_bcnt1_i32_b64", "", 32, 64, 0, [](u64 a, u64, bool) { return nonzero(ones(a)); }},
    {"s_ff0_i32_b32", "", 32, 32, 0, [](u64 a, u64, bool c) { return Outcome{first_set(~a, 32), c}; }},
    {"s_ff0_i32_b64", "", 32, 64, 0, [](u64 a, u64, bool c) { return Outcome{first_set(~a, 64), c}; }},
    {"s_ff1_i32_b64", "s_ctz_i32_b64", 32, 64, 0, [](u64 a, u64, bool c) { return Outcome{first_set(a, 64), c}; }},
    {"s_flbit_i32_b64", "s_clz_i32_u64", 32, 64, 0, [](u64 a, u64, bool c) { return Outcome{zeros_above(a, 64), c}; }},
    {"s_flbit_i32_i64", "s_cls_i32_i64", 32, 64, 0,
     [](u64 a, u64, bool c) { return Outcome{equal_to_sign(a, 64), c}; }},
    {"s_bitreplicate_b64_b32", "", 64, 32, 0, [](u64 a, u64, bool c) { return Outcome{doubled_bits(a), c}; }},
};
struct Comparison {
  const char* name;
  unsigned first, second;
  bool (*holds)(u64 a, u64 b);
};
const Comparison comparisons[] = {
    {"s_cmp_eq_u32", 32, 32, [](u64 a, u64 b) { return a == b; }},
    {"s_cmp_lg_i32", 32, 32, [](u64 a, u64 b) { return a != b; }},
    {"s_cmp_gt_i32", 32, 32, [](u64 a, u64 b) { return s32(a) > s32(b); }},
    {"s_cmp_ge_i32", 32, 32, [](u64 a, u64 b) { return s32(a) >= s32(b); }},
    {"s_cmp_le_i32", 32, 32, [](u64 a, u64 b) { return s32(a) <= s32(b); }},
    {"s_cmp_gt_u32", 32, 32, [](u64 a, u64 b) { return a > b; }},
    {"s_cmp_lt_u32", 32, 32, [](u64 a, u64 b) { return a < b; }},
    {"s_cmp_le_u32", 32, 32, [](u64 a, u64 b) { return a <= b; }},
    {"s_cmp_eq_u64", 64, 64, [](u64 a, u64 b) { return a == b; }},
    {"s_cmp_lg_u64", 64, 64, [](u64 a, u64 b) { return a != b; }},
    {"s_bitcmp0_b32", 32, 32, [](u64 a, u64 b) { return (a >> b % 32 & 1) == 0; }},
    {"s_bitcmp0_b64", 64, 32, [](u64 a, u64 b) { return (a >> b % 64 & 1) == 0; }},
    {"s_bitcmp1_b64", 64, 32, [](u64 a, u64 b) { return (a >> b % 64 & 1) == 1; }},
};
// EXEC-saving logic on (source, EXEC).
struct Saving {
  const char *name, *newer;
  u64 (*formula)(u64 source, u64 exec);
  bool writes_result;  // the destination gets the new EXEC, not the old one
};
const Saving savings[] = {
    {"s_and_saveexec", "", [](u64 s, u64 e) { return s & e; }, false},
    {"s_or_saveexec", "", [](u64 s, u64 e) { return s | e; }, false},
    {"s_xor_saveexec", "", [](u64 s, u64 e) { return s ^ e; }, false},
    {"s_nand_saveexec", "", [](u64 s, u64 e) { return ~(s & e); }, false},
    {"s_nor_saveexec", "", [](u64 s, u64 e) { return ~(s | e); }, false},
    {"s_xnor_saveexec", "", [](u64 s, u64 e) { return ~(s ^ e); }, false},
    {"s_andn1_saveexec", "s_and_not0_saveexec", [](u64 s, u64 e) { return ~s & e; }, false},
    {"s_andn2_saveexec", "s_and_not1_saveexec", [](u64 s, u64 e) { return s & ~e; }, false},
    {"s_orn1_saveexec", "s_or_not0_saveexec", [](u64 s, u64 e) { return ~s | e; }, false},
    {"s_orn2_saveexec", "s_or_not1_saveexec", [](u64 s, u64 e) { return s | ~e; }, false},
    {"s_andn1_wrexec", "s_and_not0_wrexec", [](u64 s, u64 e) { return ~s & e; }, true},
    {"s_andn2_wrexec", "s_and_not1_wrexec", [](u64 s, u64 e) { return s & ~e; }, true},
};

class ScalarProof : public VectorCheck {
 protected:
  static std::string reg(unsigned first, unsigned bits) {
    return bits == 64 ? fmt::format("s[{}:{}]", first, first + 1) : fmt::format("s{}", first);
  }
  void put(unsigned first, unsigned bits, u64 value) {
    bench.s(first) = static_cast<u32>(value);
    if (bits == 64) bench.s(first + 1) = static_cast<u32>(value >> 32);
  }
  u64 get(unsigned first, unsigned bits) { return bits == 64 ? bench.wave().read64(first) : bench.s(first); }
  u64 number(unsigned bits) { return bits == 64 ? interesting<u64>(random) : interesting<u32>(random); }
  // The name that this target has, or an empty text.
  bool run(const std::string& text) {
    if (!bench.run(text)) return false;
    EXPECT_FALSE(bench.failed()) << text << ": " << bench.error().message;
    return true;
  }
  bool run_either(const char* name, const char* newer, const std::string& operands) {
    return run(name + operands) || (*newer != '\0' && run(newer + operands));
  }
};

TEST_P(ScalarProof, arithmetic_and_bits) {
  for (const Row& row : rows)
    for (int round = 0; round < 60; ++round) {
      const u64 a = number(row.first), b = row.second == 0 ? 0 : number(row.second);
      put(4, row.first, a);
      if (row.second != 0) put(8, row.second, b);
      const bool scc = bench.wave().scc = random() & 1;
      std::string operands = " " + reg(12, row.result) + ", " + reg(4, row.first);
      if (row.second != 0) operands += ", " + reg(8, row.second);
      if (!run_either(row.name, row.newer, operands)) break;
      ++checked;
      const Outcome wanted = row.formula(a, b, scc);
      ASSERT_EQ(get(12, row.result), wanted.value) << row.name << fmt::format(" {:#x} {:#x}", a, b);
      ASSERT_EQ(bench.wave().scc, wanted.scc) << row.name << fmt::format(" {:#x} {:#x}", a, b);
    }
}

TEST_P(ScalarProof, comparisons) {
  for (const Comparison& one : comparisons)
    for (int round = 0; round < 60; ++round) {
      const u64 a = number(one.first), b = round % 4 || one.first != one.second ? number(one.second) : a;
      put(4, one.first, a);
      put(8, one.second, b);
      bench.wave().scc = random() & 1;
      if (!run(std::string(one.name) + " " + reg(4, one.first) + ", " + reg(8, one.second))) break;
      ++checked;
      ASSERT_EQ(bench.wave().scc, one.holds(a, b)) << one.name << fmt::format(" {:#x} {:#x}", a, b);
    }
  // SOPK's constants have 16 bits: signed for i32, unsigned for u32.
  struct Immediate {
    const char* condition;
    bool (*holds)(i64 a, i64 b);
  };
  const Immediate conditions[] = {
      {"eq", [](i64 a, i64 b) { return a == b; }}, {"lg", [](i64 a, i64 b) { return a != b; }},
      {"gt", [](i64 a, i64 b) { return a > b; }},  {"ge", [](i64 a, i64 b) { return a >= b; }},
      {"lt", [](i64 a, i64 b) { return a < b; }},  {"le", [](i64 a, i64 b) { return a <= b; }}};
  for (const Immediate& one : conditions)
    for (const u32 k : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu})
      for (const u32 a : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu, 0xffff8000u, ~0u}) {
        bench.s(4) = a;
        ASSERT_TRUE(run(fmt::format("s_cmpk_{}_u32 s4, {:#x}", one.condition, k)));
        ASSERT_EQ(bench.wave().scc, one.holds(a, k)) << one.condition << " " << a << " " << k;
        ASSERT_TRUE(run(fmt::format("s_cmpk_{}_i32 s4, {:#x}", one.condition, k)));
        ASSERT_EQ(bench.wave().scc, one.holds(static_cast<i32>(a), static_cast<i16>(k)));
      }
}

TEST_P(ScalarProof, logic_that_saves_exec) {
  for (const Saving& one : savings)
    for (const unsigned bits : {32u, 64u}) {
      const std::string suffix = bits == 64 ? "_b64" : "_b32";
      for (int round = 0; round < 20; ++round) {
        const u64 source = number(bits), exec = bits == 64 ? random() : static_cast<u32>(random());
        put(4, bits, source);
        put(reg_exec, 64, exec);
        const std::string operands = " " + reg(12, bits) + ", " + reg(4, bits);
        if (!run(one.name + suffix + operands) && (*one.newer == '\0' || !run(one.newer + suffix + operands))) break;
        ++checked;
        const u64 all = bits == 64 ? ~u64{0} : 0xffffffffu, wanted = one.formula(source, exec) & all;
        ASSERT_EQ(get(reg_exec, bits), wanted) << one.name << suffix;
        ASSERT_EQ(get(12, bits), one.writes_result ? wanted : exec) << one.name << suffix;
        ASSERT_EQ(bench.wave().scc, wanted != 0) << one.name << suffix;
      }
    }
  bench.set_exec(bench.wave().all_lanes);
}

TEST_P(ScalarProof, moves) {
  const auto both = [&](bool scc, const std::string& text, unsigned result_bits, u64 wanted) {
    bench.wave().scc = scc;
    ASSERT_TRUE(run(text)) << text;
    EXPECT_EQ(get(12, result_bits), wanted) << text;
    EXPECT_EQ(bench.wave().scc, scc) << text;
  };
  put(4, 64, 0x123456789abcdef0u);
  put(12, 64, 7);
  both(false, "s_cmov_b32 s12, s4", 64, 7);
  both(true, "s_cmov_b32 s12, s4", 64, 0x9abcdef0u);
  both(false, "s_cmov_b64 s[12:13], s[4:5]", 64, 0x9abcdef0u);
  both(true, "s_cmov_b64 s[12:13], s[4:5]", 64, 0x123456789abcdef0u);
  both(false, "s_cmovk_i32 s12, 0x8000", 32, 0x9abcdef0u);
  both(true, "s_cmovk_i32 s12, 0x8000", 32, 0xffff8000u);
  both(true, "s_mulk_i32 s12, 0xfffd", 32, 0xffff8000u * -3);
  put(12, 64, 0);
  put(4, 32, 64 + 33);  // modulo the width
  both(true, "s_bitset1_b32 s12, s4", 64, 2);
  both(true, "s_bitset1_b64 s[12:13], s4", 64, (u64{1} << 33) + 2);
  both(true, "s_bitset0_b32 s12, s4", 64, u64{1} << 33);
  both(true, "s_bitset0_b64 s[12:13], s4", 64, 0);
  for (unsigned k = 20; k < 40; ++k) bench.s(k) = 1000 + k;
  bench.s(reg_m0) = 4;
  both(false, "s_movrels_b32 s12, s20", 32, 1024);
  both(false, "s_movrels_b64 s[12:13], s[20:21]", 64, u64{1025} << 32 | 1024);
  bench.s(reg_m0) = 2;
  both(false, "s_movreld_b32 s10, s30", 32, 1030);
  both(false, "s_movreld_b64 s[10:11], s[30:31]", 64, u64{1031} << 32 | 1030);
  bench.s(reg_m0) = 2u << 16 | 5;
  if (bench.target().major >= 10) both(false, "s_movrelsd_2_b32 s10, s20", 32, 1025);
  bench.s(reg_m0) = 200;  // past the registers: an error, not another register
  ASSERT_TRUE(bench.run("s_movrels_b32 s12, s20"));
  EXPECT_EQ(bench.error().status, DispatchStatus::illegal_instruction);
  ++checked;
}

TEST_P(ScalarProof, program_control) {
  Wave& w = bench.wave();
  const auto lands = [&](const std::string& text, bool taken) {
    ASSERT_TRUE(run("s_getpc_b64 s[20:21]"));
    const u64 here = bench.wave().read64(20);
    ASSERT_TRUE(run(text)) << text;
    EXPECT_EQ(CodeCache::address_of(w.next), here + 4 + (taken ? 64 : 0)) << text;
  };
  lands("s_branch 16", true);
  for (const bool set : {false, true}) {
    w.scc = set;
    lands("s_cbranch_scc0 16", !set);
    lands("s_cbranch_scc1 16", set);
    w.write_mask(reg_vcc, set ? 2 : 0);
    lands("s_cbranch_vccz 16", !set);
    lands("s_cbranch_vccnz 16", set);
    bench.set_exec(set ? 4 : 0);
    lands("s_cbranch_execz 16", !set);
    lands("s_cbranch_execnz 16", set);
  }
  bench.set_exec(w.all_lanes);
  // No debugger is there.
  for (const char* name :
       {"s_cbranch_cdbgsys", "s_cbranch_cdbguser", "s_cbranch_cdbgsys_or_user", "s_cbranch_cdbgsys_and_user"})
    if (assemble(bench.target().processor, w.lanes == 32, std::string(name) + " 16"))
      lands(std::string(name) + " 16", false);
  ASSERT_TRUE(run("s_getpc_b64 s[20:21]"));
  const u64 here = w.read64(20);
  if (run("s_call_b64 s[22:23], 16")) {
    EXPECT_EQ(w.read64(22), here + 4);
    EXPECT_EQ(CodeCache::address_of(w.next), here + 4 + 64);
  }
  w.write64(24, 0x200000100);
  ASSERT_TRUE(run("s_setpc_b64 s[24:25]"));
  EXPECT_EQ(CodeCache::address_of(w.next), 0x200000100u);
  ASSERT_TRUE(run("s_swappc_b64 s[22:23], s[24:25]"));
  EXPECT_EQ(CodeCache::address_of(w.next), 0x200000100u);
  w.write64(24, 0x200000102);
  ASSERT_TRUE(bench.run("s_setpc_b64 s[24:25]"));
  EXPECT_EQ(bench.error().status, DispatchStatus::illegal_instruction) << "an unaligned target";
  // What has no effect: the next instruction follows and no register changes.
  std::vector<u32> before(w.s, w.s + 128);
  for (const char* text : {"s_nop 3",
                           "s_waitcnt 0",
                           "s_waitcnt_vscnt null, 0",
                           "s_waitcnt_vmcnt null, 0",
                           "s_waitcnt_expcnt null, 0",
                           "s_waitcnt_lgkmcnt null, 0",
                           "s_waitcnt_depctr 0",
                           "s_wait_idle",
                           "s_wait_event 0",
                           "s_delay_alu 0",
                           "s_setprio 1",
                           "s_incperflevel 1",
                           "s_decperflevel 1",
                           "s_ttracedata",
                           "s_ttracedata_imm 1",
                           "s_icache_inv",
                           "s_inst_prefetch 1",
                           "s_set_inst_prefetch_distance 1",
                           "s_clause 1",
                           "s_version 1",
                           "s_setvskip s20, 0",
                           "s_wakeup",
                           "s_sethalt 0",
                           "v_nop",
                           "v_clrexcp",
                           "v_pipeflush",
                           "s_trap 3"}) {
    if (!run(text)) continue;
    EXPECT_NE(w.next, nullptr) << text;
    EXPECT_TRUE(std::equal(before.begin(), before.end(), w.s)) << text;
  }
  ASSERT_TRUE(run("s_sleep 1"));
  EXPECT_TRUE(w.yielded);
  for (const char* text : {"s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done"}) {
    w.state = WaveState::ready;
    if (!run(text)) continue;
    EXPECT_EQ(w.state, WaveState::done) << text;
  }
  w.state = WaveState::ready;
  ASSERT_TRUE(bench.run("s_sethalt 1"));
  EXPECT_EQ(bench.error().status, DispatchStatus::trap);
  // Registers of the hardware.
  ASSERT_TRUE(run("s_mov_b32 s20, 0xa5"));
  ASSERT_TRUE(run("s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s20"));
  EXPECT_EQ(w.mode & 0xff, 0xa5u);
  if (bench.target().major >= 10) {
    ASSERT_TRUE(run("s_round_mode 0x3"));
    EXPECT_EQ(w.mode & 0xff, 0xa3u);
    ASSERT_TRUE(run("s_denorm_mode 0xf"));
    EXPECT_EQ(w.mode & 0xff, 0xf3u);
  }
  w.mode = 0xf0;
  w.mode_changed();
  if (run("s_sendmsg_rtn_b32 s20, sendmsg(MSG_RTN_GET_REALTIME)")) {
    EXPECT_EQ(bench.s(20), static_cast<u32>(bench.timestamp()));
  }
  if (run("s_sendmsg_rtn_b64 s[20:21], sendmsg(MSG_RTN_GET_REALTIME)")) {
    EXPECT_EQ(w.read64(20), bench.timestamp());
  }
  ++checked;
}

TEST_P(ScalarProof, register_indexing_of_gcn) {
  ++checked;
  if (bench.target().major >= 10) return;
  for (unsigned r = 0; r < 12; ++r)
    for (unsigned i = 0; i < bench.lanes(); ++i) bench.v(r)[i] = 100 * r + i;
  bench.s(4) = 3;
  ASSERT_TRUE(run("s_set_gpr_idx_on s4, gpr_idx(SRC0)"));
  EXPECT_EQ(bench.s(reg_m0) & 0xf0ff, 0x1003u);
  ASSERT_TRUE(run("v_mov_b32 v10, v2"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(10)[i], 500 + i);
  bench.s(5) = 1;
  ASSERT_TRUE(run("s_set_gpr_idx_idx s5"));
  ASSERT_TRUE(run("s_set_gpr_idx_mode gpr_idx(DST)"));
  ASSERT_TRUE(run("v_mov_b32 v10, v2"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(11)[i], 200 + i);
  ASSERT_TRUE(run("s_set_gpr_idx_off"));
  ASSERT_TRUE(run("v_mov_b32 v10, v2"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(10)[i], 200 + i);
}

TEST_P(ScalarProof, loops_over_the_halves_of_a_wave) {
  ++checked;
  if (bench.target().major < 10) return;
  Wave& w = bench.wave();
  const auto jumped = [&](const std::string& text) {
    EXPECT_TRUE(run("s_getpc_b64 s[20:21]"));
    const u64 here = w.read64(20);
    EXPECT_TRUE(run(text));
    return CodeCache::address_of(w.next) != here + 4;
  };
  w.write64(reg_exec, 0x300000005);
  EXPECT_FALSE(jumped("s_subvector_loop_begin s30, 4"));
  EXPECT_EQ(w.read64(reg_exec), 5u);
  EXPECT_EQ(bench.s(30), 3u);
  EXPECT_TRUE(jumped("s_subvector_loop_end s30, -4"));
  EXPECT_EQ(w.read64(reg_exec), 0x300000000u);
  EXPECT_FALSE(jumped("s_subvector_loop_end s30, -4"));
  EXPECT_EQ(w.read64(reg_exec), 0x300000005u);
  w.write64(reg_exec, 0);
  EXPECT_TRUE(jumped("s_subvector_loop_begin s30, 4"));
  w.write64(reg_exec, w.all_lanes);
}

TEST_P(ScalarProof, global_wave_sync) {
  Wave& w = bench.wave();
  bench.s(reg_m0) = 2u << 16;
  for (unsigned i = 0; i < row_lanes; ++i) bench.v(0)[i] = i < 3 ? 77 : 1;  // the first active lane counts
  bench.set_exec(0xf8);
  ASSERT_TRUE(run("ds_gws_init v0 offset:3 gds"));
  EXPECT_EQ(bench.device().sync[5].counter, 1);
  // Two waves: the first waits, the second lets both go and sets the counter again.
  ASSERT_TRUE(run("ds_gws_barrier v0 offset:3 gds"));
  EXPECT_TRUE(w.in_global_sync);
  EXPECT_EQ(w.next, nullptr);
  const bool flag = w.global_flag;
  w.in_global_sync = false;  // as another wave would come
  ASSERT_TRUE(run("ds_gws_barrier v0 offset:3 gds"));
  EXPECT_FALSE(w.in_global_sync);
  EXPECT_NE(bench.device().sync[5].flag, flag);
  EXPECT_EQ(bench.device().sync[5].counter, 1);
  w.in_global_sync = true;
  w.global_flag = flag;
  ASSERT_TRUE(run("ds_gws_barrier v0 offset:3 gds"));
  EXPECT_FALSE(w.in_global_sync) << "the flag has changed since it began to wait";
  // A semaphore.
  for (unsigned i = 0; i < row_lanes; ++i) bench.v(0)[i] = 0;
  ASSERT_TRUE(run("ds_gws_init v0 gds") && run("ds_gws_sema_v gds") && run("ds_gws_sema_p gds"));
  EXPECT_FALSE(w.in_global_sync);
  ASSERT_TRUE(run("ds_gws_sema_p gds"));
  EXPECT_TRUE(w.in_global_sync);
  ASSERT_TRUE(run("ds_gws_sema_release_all gds") && run("ds_gws_sema_p gds"));
  EXPECT_FALSE(w.in_global_sync);
  EXPECT_EQ(bench.device().sync[2].waiting, 0u);
  for (unsigned i = 0; i < row_lanes; ++i) bench.v(0)[i] = 5;
  ASSERT_TRUE(run("ds_gws_sema_br v0 gds"));
  EXPECT_EQ(bench.device().sync[2].counter, 5);
  bench.set_exec(w.all_lanes);
  ++checked;
}

KERNCAP_FOR_ALL_TARGETS(ScalarProof);

}  // namespace
}  // namespace kerncap::softgpu::isa
