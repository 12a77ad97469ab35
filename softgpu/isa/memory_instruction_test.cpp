// Loads, stores and atomics: global, flat, scratch, buffer, LDS, scalar; and what happens at their borders.
#include <gtest/gtest.h>

#include "softgpu/isa/vector_check.h"
#include "softgpu/isa/vmem.h"

namespace kerncap::softgpu::isa {
namespace {

class MemoryInstructions : public VectorCheck {
 protected:
  void SetUp() override {
    for (u64 k = 0; k < bench.memory_bytes; ++k) bench.memory()[k] = static_cast<std::byte>(random());
    for (auto& byte : bench.lds()) byte = static_cast<std::byte>(random());
  }
  bool gfx11() const { return bench.target().major >= 11; }
  std::string name(const char* gcn, const char* rdna3) const { return gfx11() ? rdna3 : gcn; }
  template <class T>
  T in_memory(u64 offset) {
    T value;
    std::memcpy(&value, bench.memory() + offset, sizeof(T));
    return value;
  }
  template <class T>
  T in_lds(u64 offset) {
    T value;
    std::memcpy(&value, bench.lds().data() + offset, sizeof(T));
    return value;
  }
  void set_address(unsigned reg, unsigned lane, u64 address) { Lane<u64>::store(bench.v(reg), lane, address); }
  bool run(const std::string& text) {
    const bool there = bench.run(text);
    EXPECT_TRUE(there) << text;
    EXPECT_FALSE(bench.failed()) << bench.error().message;
    return there && !bench.failed();
  }
};

TEST_P(MemoryInstructions, loads_of_every_width) {
  std::vector<u64> at(row_lanes);
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    at[i] = 64 + random() % 32768 / 16 * 16;
    set_address(2, i, bench.memory_address + at[i]);
    bench.v(12)[i] = 0xaaaabbbb;
  }
  ASSERT_TRUE(run(name("global_load_dwordx4", "global_load_b128") + " v[4:7], v[2:3], off offset:16"));
  for (unsigned i = 0; i < bench.lanes(); ++i)
    for (unsigned d = 0; d < 4; ++d) EXPECT_EQ(bench.v(4 + d)[i], in_memory<u32>(at[i] + 16 + 4 * d));
  ASSERT_TRUE(run(name("global_load_dwordx3", "global_load_b96") + " v[4:6], v[2:3], off offset:-16"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(6)[i], in_memory<u32>(at[i] - 8));
  ASSERT_TRUE(run(name("flat_load_sbyte", "flat_load_i8") + " v4, v[2:3]"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(static_cast<i32>(bench.v(4)[i]), in_memory<i8>(at[i]));
  ASSERT_TRUE(run(name("global_load_ushort", "global_load_u16") + " v4, v[2:3], off offset:2"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(4)[i], in_memory<u16>(at[i] + 2));
  ASSERT_TRUE(run(name("global_load_short_d16_hi", "global_load_d16_hi_b16") + " v12, v[2:3], off"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(12)[i], 0xbbbbu | u32{in_memory<u16>(at[i])} << 16);
  // An SGPR base with a 32-bit offset for each lane.
  bench.wave().write64(8, bench.memory_address);
  for (unsigned i = 0; i < bench.lanes(); ++i) bench.v(10)[i] = static_cast<u32>(at[i]);
  ASSERT_TRUE(run(name("global_load_dwordx2", "global_load_b64") + " v[4:5], v10, s[8:9] offset:8"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(Lane<u64>::load(bench.v(4), i), in_memory<u64>(at[i] + 8));
  ++checked;
}

TEST_P(MemoryInstructions, stores_write_active_lanes_only) {
  const u64 exec = random() & bench.wave().all_lanes;
  bench.set_exec(exec);
  const std::vector<std::byte> before(bench.memory(), bench.memory() + 2048);
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    set_address(2, i, bench.memory_address + 16 * i);
    bench.v(4)[i] = static_cast<u32>(random()), bench.v(5)[i] = static_cast<u32>(random());
  }
  ASSERT_TRUE(run(name("global_store_dwordx2", "global_store_b64") + " v[2:3], v[4:5], off"));
  ASSERT_TRUE(run(name("global_store_short_d16_hi", "global_store_d16_hi_b16") + " v[2:3], v4, off offset:8"));
  ASSERT_TRUE(run(name("flat_store_byte", "flat_store_b8") + " v[2:3], v5 offset:10"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    const bool active = exec >> i & 1;
    u64 old;
    std::memcpy(&old, before.data() + 16 * i, 8);
    EXPECT_EQ(in_memory<u64>(16 * i), active ? Lane<u64>::load(bench.v(4), i) : old);
    if (active) {
      EXPECT_EQ(in_memory<u16>(16 * i + 8), bench.v(4)[i] >> 16);
      EXPECT_EQ(in_memory<u8>(16 * i + 10), bench.v(5)[i] & 255);
    }
    EXPECT_EQ(in_memory<u8>(16 * i + 11), static_cast<u8>(before[16 * i + 11]));
  }
  ++checked;
}

TEST_P(MemoryInstructions, accesses_may_cross_pages) {
  for (unsigned i = 0; i < bench.lanes(); ++i) set_address(2, i, bench.memory_address + 4096 * (1 + i % 8) - 6);
  ASSERT_TRUE(run(name("global_load_dwordx4", "global_load_b128") + " v[4:7], v[2:3], off"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(5)[i], in_memory<u32>(4096 * (1 + i % 8) - 2));
  ++checked;
}

TEST_P(MemoryInstructions, faults_name_the_address) {
  set_address(2, 5, 0);
  for (unsigned i = 0; i < bench.lanes(); ++i) set_address(2, i, bench.memory_address + 4 * i);
  set_address(2, 5, 0xdead0000);
  ASSERT_TRUE(bench.run(name("global_load_dword", "global_load_b32") + " v4, v[2:3], off"));
  EXPECT_EQ(bench.error().status, DispatchStatus::memory_fault);
  EXPECT_EQ(bench.error().address, 0xdead0000u);
  EXPECT_FALSE(bench.error().write);
  bench.set_exec(~u64{1 << 5});
  ASSERT_TRUE(run(name("global_load_dword", "global_load_b32") + " v4, v[2:3], off"));  // the lane is off
  bench.set_exec(bench.wave().all_lanes);
  set_address(2, 5, bench.memory_address + bench.memory_bytes - 2);  // its last two bytes are not there
  ASSERT_TRUE(bench.run(name("global_store_dword", "global_store_b32") + " v[2:3], v4, off"));
  EXPECT_EQ(bench.error().status, DispatchStatus::memory_fault);
  EXPECT_EQ(bench.error().address, bench.memory_address + bench.memory_bytes);
  EXPECT_TRUE(bench.error().write);
  set_address(2, 5, 0x200000000);  // code: not writable
  ASSERT_TRUE(bench.run(name("global_store_dword", "global_store_b32") + " v[2:3], v4, off"));
  EXPECT_TRUE(bench.error().present);
  set_address(2, 5, bench.memory_address + 2);
  ASSERT_TRUE(bench.run(name("global_atomic_add", "global_atomic_add_u32") + " v[2:3], v4, off"));
  EXPECT_EQ(bench.error().status, DispatchStatus::memory_fault) << "misaligned atomic";
  ++checked;
}

TEST_P(MemoryInstructions, atomics_return_the_old_value) {
  struct Case {
    const char *gcn, *rdna3;
    u32 (*change)(u32, u32);
  };
  const Case cases[] = {
      {"add", "add_u32", [](u32 a, u32 b) { return a + b; }},
      {"sub", "sub_u32", [](u32 a, u32 b) { return a - b; }},
      {"smin", "min_i32", [](u32 a, u32 b) { return static_cast<i32>(a) < static_cast<i32>(b) ? a : b; }},
      {"umax", "max_u32", [](u32 a, u32 b) { return a > b ? a : b; }},
      {"and", "and_b32", [](u32 a, u32 b) { return a & b; }},
      {"or", "or_b32", [](u32 a, u32 b) { return a | b; }},
      {"xor", "xor_b32", [](u32 a, u32 b) { return a ^ b; }},
      {"swap", "swap_b32", [](u32, u32 b) { return b; }},
      {"inc", "inc_u32", [](u32 a, u32 b) { return a >= b ? 0 : a + 1; }},
      {"dec", "dec_u32", [](u32 a, u32 b) { return a == 0 || a > b ? b : a - 1; }},
  };
  const std::string returns = bench.target().gfx940 ? " sc0" : " glc";
  for (const Case& one : cases) {
    std::vector<u32> old(row_lanes);
    for (unsigned i = 0; i < bench.lanes(); ++i) {
      old[i] = in_memory<u32>(4 * i);
      set_address(2, i, bench.memory_address + 4 * i);
      bench.v(4)[i] = i % 5 ? static_cast<u32>(random()) : old[i];
    }
    ASSERT_TRUE(run("global_atomic_" + name(one.gcn, one.rdna3) + " v6, v[2:3], v4, off" + returns));
    for (unsigned i = 0; i < bench.lanes(); ++i) {
      EXPECT_EQ(bench.v(6)[i], old[i]) << one.gcn;
      EXPECT_EQ(in_memory<u32>(4 * i), one.change(old[i], bench.v(4)[i])) << one.gcn;
    }
  }
  // All lanes on one address: every addition counts.
  std::memset(bench.memory(), 0, 8);
  for (unsigned i = 0; i < bench.lanes(); ++i) set_address(2, i, bench.memory_address), bench.v(4)[i] = i;
  ASSERT_TRUE(run(name("flat_atomic_add", "flat_atomic_add_u32") + " v[2:3], v4"));
  EXPECT_EQ(in_memory<u32>(0), bench.lanes() * (bench.lanes() - 1) / 2);
  // Compare and swap: new value, then the expected one.
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    set_address(2, i, bench.memory_address + 8 * i);
    Lane<u64>::store(bench.v(8), i, 1000 + i);
    Lane<u64>::store(bench.v(10), i, i % 2 ? in_memory<u64>(8 * i) : 1);
  }
  std::vector<u64> old(row_lanes);
  for (unsigned i = 0; i < bench.lanes(); ++i) old[i] = in_memory<u64>(8 * i);
  ASSERT_TRUE(
      run(name("global_atomic_cmpswap_x2", "global_atomic_cmpswap_b64") + " v[6:7], v[2:3], v[8:11], off" + returns));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    EXPECT_EQ(Lane<u64>::load(bench.v(6), i), old[i]);
    EXPECT_EQ(in_memory<u64>(8 * i), i % 2 ? 1000 + i : old[i]);
  }
  if (bench.target().gfx90a) {
    for (unsigned i = 0; i < bench.lanes(); ++i) {
      const double value = i;
      std::memcpy(bench.memory() + 8 * i, &value, 8);
      Lane<double>::store(bench.v(8), i, 0.5);
    }
    ASSERT_TRUE(run("global_atomic_add_f64 v[2:3], v[8:9], off"));
    for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(in_memory<double>(8 * i), i + 0.5);
  }
  ++checked;
}

TEST_P(MemoryInstructions, flat_addresses_reach_lds_and_private_memory) {
  for (unsigned i = 0; i < bench.lanes(); ++i) set_address(2, i, lds_aperture + 8 * i);
  ASSERT_TRUE(run(name("flat_load_dword", "flat_load_b32") + " v4, v[2:3]"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(4)[i], in_lds<u32>(8 * i));
  for (unsigned i = 0; i < bench.lanes(); ++i) set_address(2, i, scratch_aperture + 16), bench.v(4)[i] = 500 + i;
  ASSERT_TRUE(run(name("flat_store_dword", "flat_store_b32") + " v[2:3], v4"));
  ASSERT_TRUE(run(name("flat_load_dword", "flat_load_b32") + " v5, v[2:3]"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(5)[i], 500 + i) << "each lane has its own";
  // The same bytes through scratch instructions.
  bench.s(4) = 4;
  ASSERT_TRUE(run(name("scratch_load_dword", "scratch_load_b32") + " v6, off, s4 offset:12"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(6)[i], 500 + i);
  for (unsigned i = 0; i < bench.lanes(); ++i) set_address(2, i, scratch_aperture + 256);
  ASSERT_TRUE(bench.run(name("flat_load_dword", "flat_load_b32") + " v5, v[2:3]"));
  EXPECT_EQ(bench.error().status, DispatchStatus::memory_fault) << "past the private segment";
  ++checked;
}

TEST_P(MemoryInstructions, buffers_check_their_bounds) {
  bench.wave().write64(8, bench.memory_address);
  bench.s(10) = 100;  // num_records: bytes, because the stride is 0
  bench.s(11) = 0;
  for (unsigned i = 0; i < bench.lanes(); ++i) bench.v(2)[i] = 4 * i, bench.v(4)[i] = 0x11111111;
  ASSERT_TRUE(run(name("buffer_load_dword", "buffer_load_b32") + " v4, v2, s[8:11], 0 offen offset:4"));
  for (unsigned i = 0; i < bench.lanes(); ++i)
    EXPECT_EQ(bench.v(4)[i], 4 * i + 8 <= 100 ? in_memory<u32>(4 * i + 4) : 0) << i;
  const std::vector<std::byte> before(bench.memory(), bench.memory() + 1024);
  for (unsigned i = 0; i < bench.lanes(); ++i) bench.v(4)[i] = i, bench.v(2)[i] = i % 2 ? 4 * i : ~0u;
  ASSERT_TRUE(run(name("buffer_store_dword", "buffer_store_b32") + " v4, v2, s[8:11], 0 offen"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    u32 old;
    std::memcpy(&old, before.data() + 4 * i, 4);
    EXPECT_EQ(in_memory<u32>(4 * i), i % 2 && 4 * i + 4 <= 100 ? i : old) << i;
  }
  // Structured: index times stride, the record number is checked.
  bench.s(9) |= 16u << 16;
  bench.s(10) = 10;
  for (unsigned i = 0; i < bench.lanes(); ++i) bench.v(2)[i] = i;
  ASSERT_TRUE(run(name("buffer_load_dword", "buffer_load_b32") + " v4, v2, s[8:11], 0 idxen offset:8"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(4)[i], i < 10 ? in_memory<u32>(16 * i + 8) : 0) << i;
  ++checked;
}

TEST_P(MemoryInstructions, lds) {
  const auto random_address = [&](unsigned align) { return static_cast<u32>(random() % 2000 / align * align); };
  for (unsigned i = 0; i < bench.lanes(); ++i) bench.v(2)[i] = random_address(8);
  ASSERT_TRUE(run(name("ds_read_b64", "ds_load_b64") + " v[4:5], v2 offset:24"));
  for (unsigned i = 0; i < bench.lanes(); ++i)
    EXPECT_EQ(Lane<u64>::load(bench.v(4), i), in_lds<u64>(bench.v(2)[i] + 24));
  ASSERT_TRUE(run(name("ds_read2_b32", "ds_load_2addr_b32") + " v[4:5], v2 offset0:3 offset1:200"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    EXPECT_EQ(bench.v(4)[i], in_lds<u32>(bench.v(2)[i] + 12));
    EXPECT_EQ(bench.v(5)[i], in_lds<u32>(bench.v(2)[i] + 800));
  }
  ASSERT_TRUE(run(name("ds_read2st64_b32", "ds_load_2addr_stride64_b32") + " v[4:5], v2 offset0:1 offset1:4"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(5)[i], in_lds<u32>(bench.v(2)[i] + 1024));
  ASSERT_TRUE(run(name("ds_read_i8", "ds_load_i8") + " v4, v2 offset:1"));
  for (unsigned i = 0; i < bench.lanes(); ++i)
    EXPECT_EQ(static_cast<i32>(bench.v(4)[i]), in_lds<i8>(bench.v(2)[i] + 1));
  for (unsigned i = 0; i < bench.lanes(); ++i) bench.v(2)[i] = 16 * i, bench.v(4)[i] = i, bench.v(5)[i] = 2 * i;
  ASSERT_TRUE(run(name("ds_write2_b32", "ds_store_2addr_b32") + " v2, v4, v5 offset0:0 offset1:2"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    EXPECT_EQ(in_lds<u32>(16 * i), i);
    EXPECT_EQ(in_lds<u32>(16 * i + 8), 2 * i);
  }
  ASSERT_TRUE(run("ds_add_rtn_u32 v6, v2, v5"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    EXPECT_EQ(bench.v(6)[i], i);
    EXPECT_EQ(in_lds<u32>(16 * i), 3 * i);
  }
  for (unsigned i = 0; i < bench.lanes(); ++i) bench.v(4)[i] = 3 * i, bench.v(5)[i] = 7000 + i;
  ASSERT_TRUE(gfx11() ? run("ds_cmpstore_b32 v2, v5, v4") : run("ds_cmpst_b32 v2, v4, v5"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(in_lds<u32>(16 * i), 7000 + i);
  for (unsigned i = 0; i < bench.lanes(); ++i) bench.v(2)[i] = 4096, bench.v(4)[i] = 1;  // past the end
  ASSERT_TRUE(run(name("ds_write_b32", "ds_store_b32") + " v2, v4"));
  ASSERT_TRUE(run(name("ds_read_b32", "ds_load_b32") + " v4, v2"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(4)[i], 0u);
  ++checked;
}

TEST_P(MemoryInstructions, scalar_loads) {
  bench.wave().write64(4, bench.memory_address + 256);
  ASSERT_TRUE(run(name("s_load_dwordx4", "s_load_b128") + " s[8:11], s[4:5], 0x10"));
  for (unsigned d = 0; d < 4; ++d) EXPECT_EQ(bench.s(8 + d), in_memory<u32>(256 + 16 + 4 * d));
  ASSERT_TRUE(run(name("s_load_dword", "s_load_b32") + " s8, s[4:5], -0x20"));
  EXPECT_EQ(bench.s(8), in_memory<u32>(256 - 32));
  bench.s(6) = 0x40;
  ASSERT_TRUE(gfx11() ? run("s_load_b64 s[8:9], s[4:5], s6") : run("s_load_dwordx2 s[8:9], s[4:5], s6"));
  EXPECT_EQ(bench.s(9), in_memory<u32>(256 + 0x44));
  bench.wave().write64(4, 0xbad000);
  ASSERT_TRUE(bench.run(name("s_load_dword", "s_load_b32") + " s8, s[4:5], 0x8"));
  EXPECT_EQ(bench.error().address, 0xbad008u);
  ++checked;
}

TEST_P(MemoryInstructions, unknown_instructions_are_reported_not_skipped) {
  const auto code = GetParam().wave32 || bench.target().major >= 10 ? "s_rfe_b64 s[4:5]" : "s_rfe_b64 s[4:5]";
  ASSERT_TRUE(bench.run(code));
  EXPECT_EQ(bench.error().status, DispatchStatus::illegal_instruction);
  EXPECT_NE(bench.error().message.find("s_rfe_b64"), std::string::npos) << bench.error().message;
  EXPECT_NE(bench.error().message.find("program counter"), std::string::npos);
  ++checked;
}

KERNCAP_FOR_ALL_TARGETS(MemoryInstructions);

}  // namespace
}  // namespace kerncap::softgpu::isa
