// Every load, store and atomic of every address space, from the tables beside: what a lane gets is computed from the bytes of
// memory, lanes that are off keep their registers and leave memory alone.
#include <gtest/gtest.h>

#include "softgpu/isa/memory_proof_tables.h"
#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {
namespace {

using namespace memory_tables;

constexpr unsigned result_register = 4, address_register = 2, data_register = 8;
constexpr unsigned stride = 32;  // bytes of its own for each lane

std::string tuple(unsigned first, unsigned dwords, char kind = 'v') {
  return dwords == 1 ? fmt::format("{}{}", kind, first) : fmt::format("{}[{}:{}]", kind, first, first + dwords - 1);
}
u32 sign_extended(u64 x, unsigned bits) { return static_cast<u32>(static_cast<i64>(x << (64 - bits)) >> (64 - bits)); }

class MemoryProof : public VectorCheck {
 protected:
  static constexpr const char* spaces[] = {"flat_", "global_", "scratch_", "buffer_"};

  bool rdna3() const { return bench.target().major >= 11; }
  void SetUp() override {
    bench.wave().write64(8, bench.memory_address);  // a raw buffer over all of the memory
    bench.s(10) = static_cast<u32>(bench.memory_bytes);
    bench.s(11) = 0;
    bench.wave().write64(16, bench.memory_address);
    bench.s(reg_m0) = 0;
  }
  // A lane's bytes in an address space; scratch is per lane anyway.
  std::byte* bytes_of(const std::string& space, unsigned lane) {
    if (space == "scratch_") return bench.wave().scratch + lane * bench.wave().scratch_bytes + 64;
    if (space == "ds_") return bench.lds().data() + stride * lane;
    return bench.memory() + stride * lane;
  }
  u64 value_at(const std::string& space, unsigned lane, unsigned bytes, unsigned offset = 0) {
    u64 value = 0;
    std::memcpy(&value, bytes_of(space, lane) + offset, bytes);
    return value;
  }
  // The instruction's operands after destination or data.
  static std::string address_text(const std::string& space) {
    if (space == "flat_") return "v[2:3]";
    if (space == "global_") return "v[2:3], off";
    if (space == "scratch_") return "v2, off";
    if (space == "ds_") return "v2";
    return "v2, s[8:11], 0 offen";
  }
  void randomize(const std::string& space, Values values, unsigned bytes) {
    const u64 all = bench.wave().all_lanes;
    mask = random() & all;
    bench.set_exec(mask);
    for (unsigned lane = 0; lane < row_lanes; ++lane) {
      if (space == "flat_" || space == "global_")
        Lane<u64>::store(bench.v(address_register), lane, bench.memory_address + stride * lane);
      else
        bench.v(address_register)[lane] = space == "scratch_" ? 64 : stride * lane;
      for (unsigned d = 0; d < 4; ++d) {
        bench.v(result_register + d)[lane] = 0xabcd0000u + 64 * d + lane;
        bench.v(data_register + d)[lane] = static_cast<u32>(random());
      }
      if (lane >= bench.lanes()) continue;
      for (unsigned at = 0; at < stride; at += 8) {
        const u64 word = random();
        std::memcpy(bytes_of(space, lane) + at, &word, 8);
      }
      if (values == Values::integers) {
        if (lane % 3 == 0) {  // equal, and zero: where comparisons and counters turn over
          const u64 word = lane % 2 ? u64{0} : Lane<u64>::load(bench.v(data_register), lane);
          std::memcpy(bytes_of(space, lane), &word, bytes);
        }
        continue;
      }
      const auto number = [&]() -> u64 {
        const int n = static_cast<int>(random() % 33) - 16;
        switch (values) {
          case Values::halves:
            return float_to_half(static_cast<float>(n)).bits * u64{0x10001};
          case Values::bfloats:
            return (bits_of(static_cast<float>(n)) >> 16) * 0x10001;
          default:
            return bytes == 4 ? bits_of(n + 0.5f) : bits_of(n + 0.5);
        }
      };
      const u64 old = number();
      std::memcpy(bytes_of(space, lane), &old, bytes);
      put(lane, 0, bytes, number());
      put(lane, 1, bytes, number());
    }
    // Compare-and-swap shall find what it compares with in every other lane, in whichever operand it stands.
    for (unsigned lane = 0; lane < bench.lanes(); lane += 2)
      put(lane, lane / 2 % 2, bytes, value_at(space, lane, bytes));
  }
  void put(unsigned lane, unsigned operand, unsigned bytes, u64 value) {
    const unsigned reg = data_register + operand * bytes / 4;
    bench.v(reg)[lane] = static_cast<u32>(value);
    if (bytes == 8) bench.v(reg + 1)[lane] = static_cast<u32>(value >> 32);
  }
  u64 operand(unsigned lane, unsigned number, unsigned bytes) {
    const unsigned reg = data_register + number * bytes / 4;
    return bytes == 8 ? Lane<u64>::load(bench.v(reg), lane) : bench.v(reg)[lane];
  }
  bool run(const std::string& text) {
    if (!bench.run(text)) return false;
    EXPECT_FALSE(bench.failed()) << text << ": " << bench.error().message;
    return !bench.failed();
  }
  bool active(unsigned lane) const { return mask >> lane & 1; }

  void check_load(const std::string& space, const std::string& name, const Load& load, unsigned offset) {
    randomize(space, Values::integers, 8);
    const unsigned dwords = std::max(1u, load.bytes / 4);
    const std::string tail = offset == 0 ? "" : fmt::format(" offset:{}", offset);
    const std::string text = name + " " + tuple(result_register, dwords) + ", " + address_text(space) + tail;
    if (!run(text)) return;
    ++checked;
    for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
      u32 wanted[4] = {};
      std::memcpy(wanted, bytes_of(space, lane) + offset, load.bytes);
      if (load.is_signed) wanted[0] = sign_extended(wanted[0], 8 * load.bytes);
      for (unsigned d = 0; d < dwords; ++d) {
        const u32 before = 0xabcd0000u + 64 * d + lane;
        u32 expected = wanted[d];
        if (load.where == Where::low) expected = (before & 0xffff0000u) | (wanted[d] & 0xffffu);
        if (load.where == Where::high) expected = (before & 0xffffu) | wanted[d] << 16;
        ASSERT_EQ(bench.v(result_register + d)[lane], active(lane) ? expected : before) << text << " lane " << lane;
      }
    }
  }
  void check_store(const std::string& space, const std::string& name, const Store& store, unsigned offset) {
    randomize(space, Values::integers, 8);
    std::vector<std::vector<std::byte>> before;
    for (unsigned lane = 0; lane < bench.lanes(); ++lane)
      before.emplace_back(bytes_of(space, lane), bytes_of(space, lane) + stride);
    const std::string data = tuple(data_register, std::max(1u, store.bytes / 4)), address = address_text(space);
    const std::string tail = offset == 0 ? "" : fmt::format(" offset:{}", offset);
    const auto comma = address.find(", ");
    std::string text;
    if (space == "buffer_")
      text = name + " " + data + ", " + address + tail;
    else if (comma == std::string::npos)
      text = name + " " + address + ", " + data + tail;
    else
      text = name + " " + address.substr(0, comma) + ", " + data + address.substr(comma) + tail;
    if (!run(text)) return;
    ++checked;
    for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
      auto wanted = before[lane];
      if (active(lane))
        for (unsigned k = 0; k < store.bytes; ++k)
          wanted[offset + k] =
              static_cast<std::byte>(bench.v(data_register + k / 4)[lane] >> (8 * (k % 4) + store.shift));
      ASSERT_EQ(std::memcmp(bytes_of(space, lane), wanted.data(), stride), 0) << text << " lane " << lane;
    }
  }
  void check_atomic(const std::string& space, const std::string& text, const Atomic& atomic, bool returns) {
    randomize(space, atomic.values, atomic.bytes);
    std::vector<u64> old;
    for (unsigned lane = 0; lane < bench.lanes(); ++lane) old.push_back(value_at(space, lane, atomic.bytes));
    if (!run(text)) return;
    ++checked;
    const u64 all = atomic.bytes == 8 ? ~u64{0} : 0xffffffffu;
    for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
      const u64 changed =
          atomic.change(old[lane], operand(lane, 0, atomic.bytes), operand(lane, 1, atomic.bytes)) & all;
      ASSERT_EQ(value_at(space, lane, atomic.bytes), active(lane) ? changed : old[lane]) << text << " lane " << lane;
      const u64 before =
          atomic.bytes == 8 ? (0xabcd0040u + u64{lane}) << 32 | (0xabcd0000u + lane) : 0xabcd0000u + lane;
      const u64 got =
          atomic.bytes == 8 ? Lane<u64>::load(bench.v(result_register), lane) : bench.v(result_register)[lane];
      ASSERT_EQ(got, returns && active(lane) ? old[lane] : before) << text << " lane " << lane;
    }
  }

  u64 mask = 0;
};

TEST_P(MemoryProof, loads) {
  for (const std::string space : spaces)
    for (const Load& load : loads)
      for (const unsigned offset : {0u, 12u})
        check_load(space, space + (rdna3() ? load.rdna3 : load.gcn), load, offset);
  for (const Load& load : lds_loads) check_load("ds_", rdna3() ? load.rdna3 : load.gcn, load, 12);
}

TEST_P(MemoryProof, stores) {
  for (const std::string space : spaces)
    for (const Store& store : stores)
      for (const unsigned offset : {0u, 12u})
        check_store(space, space + (rdna3() ? store.rdna3 : store.gcn), store, offset);
  for (const Store& store : lds_stores) check_store("ds_", rdna3() ? store.rdna3 : store.gcn, store, 8);
}

TEST_P(MemoryProof, atomics) {
  const std::string old_value = bench.target().gfx940 ? " sc0" : " glc";
  for (const std::string space : spaces) {
    if (space == "scratch_") continue;  // there are none
    for (const Atomic& atomic : atomics) {
      const std::string name = rdna3() ? atomic.rdna3 : atomic.gcn;
      if (name.empty()) continue;
      const unsigned dwords = atomic.bytes / 4;
      const std::string data = tuple(data_register, dwords * atomic.operands);
      const std::string address = space == "flat_" ? "v[2:3], " + data : "v[2:3], " + data + ", off";
      if (space == "buffer_") {
        // The data register gets the old value.
        const std::string text = space + name + " " + data + ", v2, s[8:11], 0 offen";
        check_atomic(space, text, atomic, false);
        randomize(space, atomic.values, atomic.bytes);
        std::vector<u64> old, first, second;
        for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
          old.push_back(value_at(space, lane, atomic.bytes));
          first.push_back(operand(lane, 0, atomic.bytes));
          second.push_back(operand(lane, 1, atomic.bytes));
        }
        if (!run(text + old_value)) continue;
        ++checked;
        for (unsigned lane = 0; lane < bench.lanes(); ++lane)
          ASSERT_EQ(operand(lane, 0, atomic.bytes), active(lane) ? old[lane] : first[lane]) << text;
        continue;
      }
      check_atomic(space, space + name + " " + address, atomic, false);
      check_atomic(space, space + name + " " + tuple(result_register, dwords) + ", " + address + old_value, atomic,
                   true);
    }
  }
}

TEST_P(MemoryProof, lds_atomics) {
  for (const Atomic& atomic : lds_atomics)
    for (const bool returns : {false, true}) {
      std::string name = rdna3() ? atomic.rdna3 : atomic.gcn;
      if (name.empty()) continue;
      name.replace(name.find('@'), 1, returns ? "_rtn" : "");
      const unsigned dwords = atomic.bytes / 4;
      std::string text = name + " " + (returns ? tuple(result_register, dwords) + ", " : "") + "v2";
      for (unsigned k = 0; k < atomic.operands; ++k) text += ", " + tuple(data_register + k * dwords, dwords);
      check_atomic("ds_", text, atomic, returns);
    }
}

TEST_P(MemoryProof, lds_pairs) {
  for (const unsigned dwords : {1u, 2u})
    for (const unsigned apart : {1u, 64u}) {
      const std::string suffix = dwords == 1 ? "_b32" : "_b64";
      const std::string st64 = apart == 64 ? (rdna3() ? "_stride64" : "st64") : "";
      const unsigned element = 4 * dwords, first = apart == 1 ? 1 : 0, second = apart == 1 ? 3 : 2;
      const std::string offsets = fmt::format(" offset0:{} offset1:{}", first, second);
      const auto at = [&](unsigned lane, unsigned offset) {
        u64 value = 0;
        std::memcpy(&value, bytes_of("ds_", lane) + offset * apart * element, element);
        return value;
      };
      const std::string pair = tuple(result_register, 2 * dwords);
      const std::string one = tuple(data_register, dwords), other = tuple(data_register + dwords, dwords);
      randomize("ds_", Values::integers, 8);
      const std::string read = (rdna3() ? "ds_load_2addr" : "ds_read2") + st64 + suffix;
      ASSERT_TRUE(run(read + " " + pair + ", v2" + offsets)) << read;
      for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
        if (!active(lane)) continue;
        for (unsigned d = 0; d < dwords; ++d) {
          EXPECT_EQ(bench.v(result_register + d)[lane], static_cast<u32>(at(lane, first) >> 32 * d)) << read;
          EXPECT_EQ(bench.v(result_register + dwords + d)[lane], static_cast<u32>(at(lane, second) >> 32 * d)) << read;
        }
      }
      // One lane, so that lanes 64 elements apart do not meet.
      for (const bool exchanging : {false, true}) {
        randomize("ds_", Values::integers, 8);
        mask = 2;
        bench.set_exec(mask);
        const u64 old_first = at(1, first), old_second = at(1, second);
        std::string name = exchanging ? (rdna3() ? "ds_storexchg_2addr" : "ds_wrxchg2") + st64 + "_rtn" + suffix
                                      : (rdna3() ? "ds_store_2addr" : "ds_write2") + st64 + suffix;
        ASSERT_TRUE(run(name + " " + (exchanging ? pair + ", " : "") + "v2, " + one + ", " + other + offsets)) << name;
        EXPECT_EQ(at(1, first), operand(1, 0, element)) << name;
        EXPECT_EQ(at(1, second), operand(1, 1, element)) << name;
        if (!exchanging) continue;
        for (unsigned d = 0; d < dwords; ++d) {
          EXPECT_EQ(bench.v(result_register + d)[1], static_cast<u32>(old_first >> 32 * d)) << name;
          EXPECT_EQ(bench.v(result_register + dwords + d)[1], static_cast<u32>(old_second >> 32 * d)) << name;
        }
      }
      ++checked;
    }
}

TEST_P(MemoryProof, lds_counters_and_lane_addresses) {
  randomize("ds_", Values::integers, 8);
  mask = 0xb1;
  bench.set_exec(mask);
  bench.s(reg_m0) = 16u << 16;
  const u32 old = static_cast<u32>(value_at("ds_", 0, 4, 24));
  ASSERT_TRUE(run("ds_append v4 offset:8"));
  for (unsigned lane = 0; lane < 8; ++lane) EXPECT_EQ(bench.v(4)[lane], active(lane) ? old : 0xabcd0000u + lane);
  EXPECT_EQ(value_at("ds_", 0, 4, 24), old + 4);
  ASSERT_TRUE(run("ds_consume v5 offset:8"));
  EXPECT_EQ(bench.v(5)[0], old + 4);
  EXPECT_EQ(value_at("ds_", 0, 4, 24), old);
  bench.s(reg_m0) = 32;
  const std::string load = rdna3() ? "ds_load_addtid_b32" : "ds_read_addtid_b32",
                    store = rdna3() ? "ds_store_addtid_b32" : "ds_write_addtid_b32";
  ASSERT_TRUE(run(load + " v4 offset:4"));
  for (const unsigned lane : {0u, 4u, 5u, 7u}) EXPECT_EQ(bench.v(4)[lane], value_at("ds_", 1, 4, 4 + 4 * lane));
  ASSERT_TRUE(run(store + " v8 offset:4"));
  for (const unsigned lane : {0u, 4u, 5u, 7u}) EXPECT_EQ(value_at("ds_", 1, 4, 4 + 4 * lane), bench.v(8)[lane]);
  // The top bits of both halves say which of them is written.
  randomize("ds_", Values::integers, 8);
  std::vector<u64> before;
  for (unsigned lane = 0; lane < bench.lanes(); ++lane) before.push_back(value_at("ds_", lane, 8));
  ASSERT_TRUE(run("ds_condxchg32_rtn_b64 v[4:5], v2, v[8:9]"));
  for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
    if (!active(lane)) continue;
    u64 wanted = before[lane];
    const u32 low = bench.v(8)[lane], high = bench.v(9)[lane];
    if (low >= 0x80000000u) wanted = (wanted & ~u64{0xffffffffu}) | (low - 0x80000000u);
    if (high >= 0x80000000u) wanted = (wanted & 0xffffffffu) | u64{high - 0x80000000u} << 32;
    EXPECT_EQ(Lane<u64>::load(bench.v(4), lane), before[lane]);
    EXPECT_EQ(value_at("ds_", lane, 8), wanted);
  }
  EXPECT_TRUE(run("ds_nop"));
  ++checked;
}

TEST_P(MemoryProof, lanes_add_their_number_to_an_address) {
  ++checked;
  if (bench.target().major < 10) return;
  randomize("global_", Values::integers, 8);
  const auto in_memory = [&](unsigned at) {
    u32 value;
    std::memcpy(&value, bench.memory() + at, 4);
    return value;
  };
  ASSERT_TRUE(
      run(std::string(rdna3() ? "global_load_addtid_b32" : "global_load_dword_addtid") + " v4, s[16:17] offset:8"));
  for (unsigned lane = 0; lane < bench.lanes(); ++lane)
    EXPECT_EQ(bench.v(4)[lane], active(lane) ? in_memory(8 + 4 * lane) : 0xabcd0000u + lane);
  ASSERT_TRUE(
      run(std::string(rdna3() ? "global_store_addtid_b32" : "global_store_dword_addtid") + " v8, s[16:17] offset:8"));
  for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
    if (active(lane)) {
      EXPECT_EQ(in_memory(8 + 4 * lane), bench.v(8)[lane]);
    }
  }
}

TEST_P(MemoryProof, memory_to_lds_and_back) {
  ++checked;
  bench.s(reg_m0) = 128;
  struct Case {
    const char *name, *buffer;  // the buffer's form with the modifier
    unsigned bytes;
    bool is_signed;
  };
  const Case cases[] = {{"lds_dword", "dword", 4, false},
                        {"lds_ubyte", "ubyte", 1, false},
                        {"lds_sbyte", "sbyte", 1, true},
                        {"lds_ushort", "ushort", 2, false},
                        {"lds_sshort", "sshort", 2, true}};
  const auto verify = [&](const std::string& space, const std::string& text, const Case& one, unsigned offset) {
    randomize(space, Values::integers, 8);
    for (auto& byte : bench.lds()) byte = std::byte{0x55};
    if (!run(text)) return;
    for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
      u32 got, wanted = static_cast<u32>(value_at(space, lane, one.bytes, offset));
      std::memcpy(&got, bench.lds().data() + 128 + offset + 4 * lane, 4);
      if (one.is_signed) wanted = sign_extended(wanted, 8 * one.bytes);
      ASSERT_EQ(got, active(lane) ? wanted : 0x55555555u) << text << " lane " << lane;
    }
  };
  for (const Case& one : cases) {
    verify("global_", fmt::format("global_load_{} v[2:3], off offset:8", one.name), one, 8);
    verify("scratch_", fmt::format("scratch_load_{} v2, off offset:8", one.name), one, 8);
    verify("buffer_", fmt::format("buffer_load_{} v2, s[8:11], 0 offen offset:8 lds", one.buffer), one, 8);
  }
  const Case rdna3_cases[] = {
      {"b32", "", 4, false}, {"u8", "", 1, false}, {"i8", "", 1, true}, {"u16", "", 2, false}, {"i16", "", 2, true}};
  for (const Case& one : rdna3_cases)
    verify("buffer_", fmt::format("buffer_load_lds_{} v2, s[8:11], 0 offen offset:8", one.name), one, 8);
  randomize("buffer_", Values::integers, 8);
  for (auto& byte : bench.lds()) byte = static_cast<std::byte>(random());
  bench.set_exec(4);  // a buffer without an address register: all lanes go to one place
  if (!bench.target().gfx90a) return;
  ASSERT_TRUE(run("buffer_store_lds_dword s[8:11], 0 offset:16 lds"));
  u32 stored, kept;
  std::memcpy(&stored, bench.memory() + 16, 4);
  std::memcpy(&kept, bench.lds().data() + 128 + 16 + 8, 4);
  EXPECT_EQ(stored, kept);
}

TEST_P(MemoryProof, cache_maintenance_changes_nothing) {
  unsigned ran = 0;
  for (const char* text :
       {"buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_invl2", "buffer_wbl2", "buffer_wbl2 sc1", "buffer_inv",
        "buffer_inv sc1", "buffer_gl0_inv", "buffer_gl1_inv", "s_dcache_inv", "s_dcache_inv_vol", "s_dcache_wb",
        "s_dcache_wb_vol", "s_gl1_inv", "s_dcache_discard s[16:17], s5", "s_dcache_discard_x2 s[16:17], s5",
        "s_atc_probe 1, s[16:17], s5", "s_atc_probe_buffer 1, s[8:11], s5"}) {
    randomize("global_", Values::integers, 8);
    const std::vector<std::byte> before(bench.memory(), bench.memory() + 2048);
    if (!run(text)) continue;
    ++ran;
    EXPECT_EQ(std::memcmp(before.data(), bench.memory(), 2048), 0) << text;
  }
  EXPECT_GE(ran, 4u);
  ++checked;
}

TEST_P(MemoryProof, scalar_loads_stores_and_atomics) {
  bench.set_exec(0);  // scalar instructions do not care
  const auto fill = [&] {
    for (unsigned at = 0; at < 1024; at += 8) {
      const u64 word = random();
      std::memcpy(bench.memory() + at, &word, 8);
    }
    for (unsigned k = 20; k < 60; ++k) bench.s(k) = static_cast<u32>(random());
  };
  const auto in_memory = [&](unsigned at) {
    u32 value;
    std::memcpy(&value, bench.memory() + at, 4);
    return value;
  };
  for (unsigned dwords = 1; dwords <= 16; dwords *= 2) {
    const std::string gcn = dwords == 1 ? "dword" : fmt::format("dwordx{}", dwords),
                      newer = fmt::format("b{}", 32 * dwords), registers = tuple(20, dwords, 's');
    const std::string name = rdna3() ? newer : gcn;
    fill();
    ASSERT_TRUE(run("s_load_" + name + " " + registers + ", s[16:17], 0x40"));
    for (unsigned d = 0; d < dwords; ++d) EXPECT_EQ(bench.s(20 + d), in_memory(0x40 + 4 * d)) << name;
    fill();
    bench.s(10) = 0x40 + 8;  // only two dwords are inside of the buffer
    ASSERT_TRUE(run("s_buffer_load_" + name + " " + registers + ", s[8:11], 0x40"));
    for (unsigned d = 0; d < dwords; ++d) EXPECT_EQ(bench.s(20 + d), d < 2 ? in_memory(0x40 + 4 * d) : 0) << name;
    bench.s(10) = static_cast<u32>(bench.memory_bytes);
    for (const std::string kind : {"s_store_", "s_buffer_store_"}) {
      fill();
      const std::string base = kind == "s_store_" ? "s[16:17]" : "s[8:11]";
      if (!run(kind + gcn + " " + registers + ", " + base + ", 0x80")) continue;
      for (unsigned d = 0; d < dwords; ++d) EXPECT_EQ(in_memory(0x80 + 4 * d), bench.s(20 + d)) << kind << gcn;
    }
  }
  for (const Atomic& atomic : atomics) {
    if (atomic.values != Values::integers) continue;
    for (const std::string kind : {"s_", "s_buffer_"})
      for (const bool returns : {false, true}) {
        fill();
        const unsigned dwords = atomic.bytes / 4;
        const std::string text = kind + atomic.gcn + " " + tuple(20, dwords * atomic.operands, 's') + ", " +
                                 (kind == "s_" ? "s[16:17]" : "s[8:11]") + ", 0x40" + (returns ? " glc" : "");
        u64 data = bench.s(20), compare = bench.s(20 + dwords), old = in_memory(0x40);
        if (dwords == 2) {
          data = bench.wave().read64(20), compare = bench.wave().read64(22);
          old |= u64{in_memory(0x44)} << 32;
        }
        const u64 all = dwords == 2 ? ~u64{0} : 0xffffffffu;
        if (!run(text)) continue;
        const u64 now = dwords == 2 ? in_memory(0x40) | u64{in_memory(0x44)} << 32 : in_memory(0x40);
        EXPECT_EQ(now, atomic.change(old, data, compare) & all) << text;
        const u64 register_now = dwords == 2 ? bench.wave().read64(20) : bench.s(20);
        EXPECT_EQ(register_now, returns ? old : data) << text;
      }
  }
  for (const char* text : {"s_memtime s[20:21]", "s_memrealtime s[20:21]"})
    if (run(text)) {
      EXPECT_EQ(bench.wave().read64(20), bench.timestamp()) << text;
    }
  ++checked;
}

KERNCAP_FOR_ALL_TARGETS(MemoryProof);

}  // namespace
}  // namespace kerncap::softgpu::isa
