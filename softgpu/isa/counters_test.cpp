// What the counters count, on single instructions whose numbers can be told by hand.
#include <gtest/gtest.h>

#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {
namespace {

class Counters : public VectorCheck {
 protected:
  const MemoryTraffic& traffic(Traffic kind) { return bench.counters().memory[static_cast<unsigned>(kind)]; }
  std::string name(const char* gcn, const char* rdna3) const { return bench.target().major >= 11 ? rdna3 : gcn; }
};

TEST_P(Counters, vector_instructions_and_lanes_that_are_off) {
  bench.counters() = {};
  ASSERT_TRUE(bench.run("v_mov_b32 v0, v1") && bench.run("v_add_f32 v0, v1, v2"));
  EXPECT_EQ(bench.counters().valu, 2u);
  EXPECT_EQ(bench.counters().partial_valu, 0u);
  bench.set_exec(0xff);
  ASSERT_TRUE(bench.run("v_readfirstlane_b32 s4, v1") && bench.run("v_mov_b32 v0, v1"));
  EXPECT_EQ(bench.counters().valu, 4u);
  EXPECT_EQ(bench.counters().partial_valu, 2u);
  EXPECT_EQ(bench.counters().inactive_lanes, 2 * (bench.lanes() - 8));
  bench.set_exec(bench.wave().all_lanes);
  if (bench.target().gfx90a) {
    ASSERT_TRUE(bench.run("v_mfma_f32_32x32x2f32 v[16:31], v0, v1, 0"));
    EXPECT_EQ(bench.counters().matrix, 1u);
    EXPECT_EQ(bench.counters().valu, 5u);
  }
  ++checked;
}

TEST_P(Counters, bytes_by_kind_of_memory) {
  bench.counters() = {};
  bench.set_exec(0x3f);
  for (unsigned i = 0; i < row_lanes; ++i) {
    Lane<u64>::store(bench.v(2), i, bench.memory_address + 16 * i);
    bench.v(6)[i] = 16 * i;
  }
  ASSERT_TRUE(bench.run(name("global_load_dwordx4", "global_load_b128") + " v[8:11], v[2:3], off"));
  ASSERT_TRUE(bench.run(name("global_store_short", "global_store_b16") + " v[2:3], v8, off"));
  ASSERT_TRUE(bench.run(name("global_atomic_add", "global_atomic_add_u32") + " v[2:3], v8, off"));
  EXPECT_EQ(bench.counters().vmem, 3u);
  EXPECT_EQ(traffic(Traffic::global).bytes_read, 6u * 16 + 6 * 4);
  EXPECT_EQ(traffic(Traffic::global).bytes_written, 6u * 2 + 6 * 4);
  ASSERT_TRUE(bench.run(name("scratch_load_dword", "scratch_load_b32") + " v8, off, s4"));
  EXPECT_EQ(traffic(Traffic::private_memory).bytes_read, 6u * 4);
  ASSERT_TRUE(bench.run(name("ds_read2_b64", "ds_load_2addr_b64") + " v[8:11], v6 offset0:0 offset1:1"));
  ASSERT_TRUE(bench.run(name("ds_write_b8", "ds_store_b8") + " v6, v8"));
  EXPECT_EQ(bench.counters().lds, 2u);
  EXPECT_EQ(traffic(Traffic::lds).bytes_read, 6u * 16);
  EXPECT_EQ(traffic(Traffic::lds).bytes_written, 6u);
  bench.wave().write64(4, bench.memory_address);
  ASSERT_TRUE(bench.run(name("s_load_dwordx8", "s_load_b256") + " s[8:15], s[4:5], 0x0"));
  EXPECT_EQ(bench.counters().smem, 1u);
  EXPECT_EQ(traffic(Traffic::scalar).bytes_read, 32u);
  bench.set_exec(bench.wave().all_lanes);
  ++checked;
}

TEST_P(Counters, lds_bank_conflicts) {
  bench.count_details(true);
  const u64 groups = bench.lanes() / 32;
  const auto conflicts = [&](const std::string& text, auto address) {
    for (unsigned i = 0; i < row_lanes; ++i) bench.v(2)[i] = address(i);
    bench.counters() = {};
    EXPECT_TRUE(bench.run(text)) << text;
    return bench.counters().lds_bank_conflicts;
  };
  const std::string one = name("ds_read_b32", "ds_load_b32") + " v4, v2",
                    four = name("ds_read_b128", "ds_load_b128") + " v[4:7], v2";
  EXPECT_EQ(conflicts(one, [](unsigned i) { return 4 * i; }), 0u);
  EXPECT_EQ(conflicts(one, [](unsigned) { return 12u; }), 0u) << "one dword for all";
  EXPECT_EQ(conflicts(one, [](unsigned i) { return 8 * i; }), groups) << "each bank twice";
  EXPECT_EQ(conflicts(one, [](unsigned i) { return 128 * (i % 32); }), 31 * groups) << "one bank for all";
  EXPECT_EQ(conflicts(one, [](unsigned i) { return 132 * (i % 32); }), 0u) << "the usual padding";
  EXPECT_EQ(conflicts(four, [](unsigned i) { return 16 * i; }), 0u);
  EXPECT_EQ(conflicts(four, [](unsigned i) { return 32 * i; }), bench.lanes() / 8);
  ++checked;
}

KERNCAP_FOR_ALL_TARGETS(Counters);

}  // namespace
}  // namespace kerncap::softgpu::isa
