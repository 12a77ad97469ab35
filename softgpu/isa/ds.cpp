// LDS instructions. Addresses are bytes; what lies past the workgroup's allocation reads as zero and is not written.
#include <algorithm>

#include "softgpu/isa/atomics.h"
#include "softgpu/isa/dispatch.h"
#include "softgpu/isa/vmem.h"

namespace kerncap::softgpu::isa {
namespace {

std::byte* lds_pointer(Wave& w, u64 offset, unsigned bytes) {
  auto& lds = w.workgroup->lds;
  offset = static_cast<u32>(offset);  // base and offset add up in 32 bits from GFX9 on: compilers use negative bases
  return offset + bytes <= lds.size() ? lds.data() + offset : nullptr;
}
const u32* rows_of(Wave& w, const Operation* op, unsigned k) { return plain_source(w, op, k); }

template <class T>
T load_lds(Wave& w, u64 offset) {
  T value{};
  if (const std::byte* from = lds_pointer(w, offset, sizeof(T))) std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
void store_lds(Wave& w, u64 offset, T value) {
  if (std::byte* to = lds_pointer(w, offset, sizeof(T))) std::memcpy(to, &value, sizeof(T));
}

// LDS has 32 banks of four bytes. A pass serves as many lanes as make 32 dwords; lanes that want different dwords of
// one bank need further passes.
void count_conflicts(Wave& w, const u32* address, u32 offset, unsigned dwords) {
  constexpr unsigned banks = 32;
  const unsigned lanes_at_once = banks / std::bit_ceil(dwords);
  const u64 exec = w.exec();
  for (unsigned first = 0; first < w.lanes; first += lanes_at_once) {
    std::array<std::array<u32, banks>, banks> wanted;
    std::array<unsigned, banks> count{};
    for (unsigned i = first; i < first + lanes_at_once; ++i) {
      if (!(exec >> i & 1)) continue;
      for (unsigned d = 0; d < dwords; ++d) {
        const u32 dword = (address[i] + offset) / 4 + d, bank = dword % banks;
        auto& list = wanted[bank];
        if (std::find(list.begin(), list.begin() + count[bank], dword) == list.begin() + count[bank])
          list[count[bank]++] = dword;
      }
    }
    const unsigned passes = *std::max_element(count.begin(), count.end());
    if (passes > 1) w.engine->counters.lds_bank_conflicts += passes - 1;
  }
}
// Counts an instruction; `bytes` are those of a lane.
void count_lds(Wave& w, const u32* address, u32 offset, unsigned bytes, bool reads, bool writes) {
  DispatchCounters& counters = w.engine->counters;
  ++counters.lds;
  MemoryTraffic& traffic = counters.memory[static_cast<unsigned>(Traffic::lds)];
  const u64 moved = static_cast<u64>(std::popcount(w.exec())) * bytes;
  if (reads) traffic.bytes_read += moved;
  if (writes) traffic.bytes_written += moved;
  if (w.engine->count_details && address != nullptr) [[unlikely]]
    count_conflicts(w, address, offset, (bytes + 3) / 4);
}

void count_lds_pair(Wave& w, const u32* address, u64 first, u64 second, unsigned bytes, bool reads, bool writes) {
  count_lds(w, address, static_cast<u32>(first), bytes, reads, writes);
  --w.engine->counters.lds;  // one instruction, two accesses
  count_lds(w, address, static_cast<u32>(second), bytes, reads, writes);
}

template <unsigned dwords>
const Operation* read(Wave& w, const Operation* op) {
  const u32* address = rows_of(w, op, 0);
  count_lds(w, address, op->immediate, 4 * dwords, true, false);
  u32* result = w.row(op->destination.index);
  for_lanes(w.exec(), [&](unsigned i) {
    const auto value = load_lds<std::array<u32, dwords>>(w, u64{address[i]} + op->immediate);
    for (unsigned d = 0; d < dwords; ++d) result[d * row_lanes + i] = value[d];
  });
  return following(op);
}
template <unsigned dwords>
const Operation* write(Wave& w, const Operation* op) {
  const u32 *address = rows_of(w, op, 0), *data = rows_of(w, op, 1);
  count_lds(w, address, op->immediate, 4 * dwords, false, true);
  for_lanes(w.exec(), [&](unsigned i) {
    std::array<u32, dwords> value;
    for (unsigned d = 0; d < dwords; ++d) value[d] = data[d * row_lanes + i];
    store_lds(w, u64{address[i]} + op->immediate, value);
  });
  return following(op);
}

// Two elements at offset0 and offset1, counted in elements (times 64 for the st64 forms).
template <unsigned dwords, unsigned stride>
const Operation* read2(Wave& w, const Operation* op) {
  const u32* address = rows_of(w, op, 0);
  u32* result = w.row(op->destination.index);
  const u32 first = (op->immediate & 0xff) * dwords * 4 * stride, second = (op->immediate >> 8) * dwords * 4 * stride;
  count_lds_pair(w, address, first, second, 4 * dwords, true, false);
  for_lanes(w.exec(), [&](unsigned i) {
    const u64 base = address[i];
    const auto a = load_lds<std::array<u32, dwords>>(w, base + first),
               b = load_lds<std::array<u32, dwords>>(w, base + second);
    for (unsigned d = 0; d < dwords; ++d) {
      result[d * row_lanes + i] = a[d];
      result[(dwords + d) * row_lanes + i] = b[d];
    }
  });
  return following(op);
}
template <unsigned dwords, unsigned stride>
const Operation* write2(Wave& w, const Operation* op) {
  const u32 *address = rows_of(w, op, 0), *data0 = rows_of(w, op, 1), *data1 = rows_of(w, op, 2);
  const u32 first = (op->immediate & 0xff) * dwords * 4 * stride, second = (op->immediate >> 8) * dwords * 4 * stride;
  count_lds_pair(w, address, first, second, 4 * dwords, false, true);
  for_lanes(w.exec(), [&](unsigned i) {
    std::array<u32, dwords> a, b;
    for (unsigned d = 0; d < dwords; ++d) {
      a[d] = data0[d * row_lanes + i];
      b[d] = data1[d * row_lanes + i];
    }
    store_lds(w, u64{address[i]} + first, a);
    store_lds(w, u64{address[i]} + second, b);
  });
  return following(op);
}

enum class Half { whole, low, high };
template <class T, Half half>
const Operation* read_narrow(Wave& w, const Operation* op) {
  const u32* address = rows_of(w, op, 0);
  count_lds(w, address, op->immediate, sizeof(T), true, false);
  u32* result = w.row(op->destination.index);
  for_lanes(w.exec(), [&](unsigned i) {
    const u32 value = static_cast<u32>(static_cast<i32>(load_lds<T>(w, u64{address[i]} + op->immediate)));
    if constexpr (half == Half::whole)
      result[i] = value;
    else if constexpr (half == Half::low)
      result[i] = (result[i] & 0xffff0000u) | (value & 0xffffu);
    else
      result[i] = (result[i] & 0xffffu) | value << 16;
  });
  return following(op);
}
template <class T, unsigned shift>
const Operation* write_narrow(Wave& w, const Operation* op) {
  const u32 *address = rows_of(w, op, 0), *data = rows_of(w, op, 1);
  count_lds(w, address, op->immediate, sizeof(T), false, true);
  for_lanes(w.exec(),
            [&](unsigned i) { store_lds(w, u64{address[i]} + op->immediate, static_cast<T>(data[i] >> shift)); });
  return following(op);
}

template <class T>
T lane_value(const u32* rows, unsigned i) {
  if constexpr (sizeof(T) == 8)
    return std::bit_cast<T>(rows[i] | u64{rows[i + row_lanes]} << 32);
  else
    return std::bit_cast<T>(rows[i]);
}
template <class T>
void put_lane(u32* rows, unsigned i, T value) {
  if constexpr (sizeof(T) == 8) {
    const u64 bits = std::bit_cast<u64>(value);
    rows[i] = static_cast<u32>(bits);
    rows[i + row_lanes] = static_cast<u32>(bits >> 32);
  } else {
    rows[i] = std::bit_cast<u32>(value);
  }
}

// One thread runs all the waves of a workgroup, so LDS needs no host atomics.
template <class T, bool returns, auto F>
const Operation* atomic(Wave& w, const Operation* op) {
  const u32 *address = rows_of(w, op, 0), *data = rows_of(w, op, 1);
  count_lds(w, address, op->immediate, sizeof(T), true, true);
  u32* result = returns ? w.row(op->destination.index) : nullptr;
  for_lanes(w.exec(), [&](unsigned i) {
    const u64 at = u64{address[i]} + op->immediate;
    const T old = load_lds<T>(w, at);
    store_lds<T>(w, at, F(old, lane_value<T>(data, i)));
    if constexpr (returns) put_lane(result, i, old);
  });
  return following(op);
}
// Three operands: address, first data, second data.
template <class T, bool returns, auto F>
const Operation* atomic2(Wave& w, const Operation* op) {
  const u32 *address = rows_of(w, op, 0), *data0 = rows_of(w, op, 1), *data1 = rows_of(w, op, 2);
  count_lds(w, address, op->immediate, sizeof(T), true, true);
  u32* result = returns ? w.row(op->destination.index) : nullptr;
  for_lanes(w.exec(), [&](unsigned i) {
    const u64 at = u64{address[i]} + op->immediate;
    const T old = load_lds<T>(w, at);
    store_lds<T>(w, at, F(old, lane_value<T>(data0, i), lane_value<T>(data1, i)));
    if constexpr (returns) put_lane(result, i, old);
  });
  return following(op);
}
// Exchanges of two elements: the destination gets both old values.
template <class T, unsigned stride>
const Operation* exchange2(Wave& w, const Operation* op) {
  const u32 *address = rows_of(w, op, 0), *data0 = rows_of(w, op, 1), *data1 = rows_of(w, op, 2);
  u32* result = w.row(op->destination.index);
  const u64 first = (op->immediate & 0xff) * sizeof(T) * stride, second = (op->immediate >> 8) * sizeof(T) * stride;
  count_lds_pair(w, address, first, second, sizeof(T), true, true);
  for_lanes(w.exec(), [&](unsigned i) {
    const T a = lane_value<T>(data0, i), b = lane_value<T>(data1, i);
    const u64 base = address[i];
    const T old_a = load_lds<T>(w, base + first), old_b = load_lds<T>(w, base + second);
    store_lds(w, base + first, a);
    store_lds(w, base + second, b);
    put_lane(result, i, old_a);
    put_lane(result + sizeof(T) / 4 * row_lanes, i, old_b);
  });
  return following(op);
}

// GFX11's and others' conditional exchange: each half of the 64 bits is written where its top bit is set, without it.
const Operation* conditional_exchange(Wave& w, const Operation* op) {
  const u32 *address = rows_of(w, op, 0), *data = rows_of(w, op, 1);
  count_lds(w, address, op->immediate, 8, true, true);
  u32* result = w.row(op->destination.index);
  for_lanes(w.exec(), [&](unsigned i) {
    const u64 at = (u64{address[i]} + op->immediate) & ~u64{7};
    for (unsigned half = 0; half < 2; ++half) {
      const u32 value = data[half * row_lanes + i], old = load_lds<u32>(w, at + 4 * half);
      if (value >> 31) store_lds<u32>(w, at + 4 * half, value & 0x7fffffffu);
      result[half * row_lanes + i] = old;
    }
  });
  return following(op);
}

// RDNA's wave64 exchanges lanes within each half of the wave.
unsigned exchange_lanes(const Wave& w) { return w.target->major >= 10 ? 32u : w.lanes; }

// Lane exchanges through the LDS crossbar; inactive source lanes give 0.
const Operation* backward_permute(Wave& w, const Operation* op) {
  ++w.engine->counters.lds;
  const u32 *address = rows_of(w, op, 0), *data = rows_of(w, op, 1);
  alignas(64) u32 copy[row_lanes];
  std::memcpy(copy, data, sizeof copy);
  u32* result = w.row(op->destination.index);
  const u64 exec = w.exec();
  alignas(64) u32 chosen[row_lanes] = {};
  const unsigned together = exchange_lanes(w);
  for_lanes(exec, [&](unsigned i) {
    const u32 from = (i & ~(together - 1)) | (address[i] + op->immediate) / 4 % together;
    chosen[i] = exec >> from & 1 ? copy[from] : 0;
  });
  blend(w, result, chosen, 1, exec);
  return following(op);
}
const Operation* permute(Wave& w, const Operation* op) {
  ++w.engine->counters.lds;
  const u32 *address = rows_of(w, op, 0), *data = rows_of(w, op, 1);
  alignas(64) u32 received[row_lanes] = {};
  const u64 exec = w.exec();
  const unsigned together = exchange_lanes(w);
  for_lanes(exec, [&](unsigned i) {
    received[(i & ~(together - 1)) | (address[i] + op->immediate) / 4 % together] = data[i];
  });
  blend(w, w.row(op->destination.index), received, 1, exec);
  return following(op);
}
// The offset's encodings: 0xe000 the order of a fast Fourier transform (bits reversed above the mask), 0xc000 rotation,
// bit 15 quad permutation; else and, or, xor masks of 5 bits within 32 lanes.
const Operation* swizzle(Wave& w, const Operation* op) {
  ++w.engine->counters.lds;
  const u32* data = rows_of(w, op, 0);
  const u32 mode = op->immediate;
  alignas(64) u32 copy[row_lanes], chosen[row_lanes] = {};
  std::memcpy(copy, data, sizeof copy);
  const u64 exec = w.exec();
  for (unsigned i = 0; i < w.lanes; ++i) {
    const unsigned in_group = i & 31;
    unsigned from;
    if (mode >= 0xe000u) {
      const unsigned mask = mode & 31;
      unsigned reversed = 0;
      for (unsigned bit = 0; bit < 5; ++bit) reversed |= (in_group >> bit & 1) << (4 - bit);
      from = (i & 32) | reversed >> std::popcount(mask) | (in_group & mask);
    } else if (mode >= 0xc000u) {
      const unsigned keep = mode & 31, count = mode >> 5 & 31,
                     moved = mode & 0x400 ? in_group - count : in_group + count;
      from = (i & 32) | (in_group & keep) | (moved & ~keep & 31);
    } else if (mode & 0x8000u) {
      from = (i & ~3u) | (mode >> 2 * (i & 3) & 3);
    } else {
      from = (i & 32) | (((in_group & (mode & 31)) | (mode >> 5 & 31)) ^ (mode >> 10 & 31));
    }
    chosen[i] = exec >> from & 1 ? copy[from] : 0;
  }
  blend(w, w.row(op->destination.index), chosen, 1, exec);
  return following(op);
}

// Append and consume: one counter of the workgroup at m0's upper half plus the offset; every lane gets the old value.
template <bool append>
const Operation* count_lanes(Wave& w, const Operation* op) {
  ++w.engine->counters.lds;
  const u64 at = (w.s[reg_m0] >> 16) + u64{op->immediate}, exec = w.exec();
  const u32 old = load_lds<u32>(w, at), lanes = static_cast<u32>(std::popcount(exec));
  store_lds<u32>(w, at, append ? old + lanes : old - lanes);
  u32* result = w.row(op->destination.index);
  for_lanes(exec, [&](unsigned i) { result[i] = old; });
  return following(op);
}
// The lane's number times 4 is added to the offset and m0's low half.
const Operation* read_lane_address(Wave& w, const Operation* op) {
  count_lds(w, nullptr, 0, 4, true, false);
  u32* result = w.row(op->destination.index);
  for_lanes(w.exec(),
            [&](unsigned i) { result[i] = load_lds<u32>(w, u64{op->immediate} + (w.s[reg_m0] & 0xffff) + 4 * i); });
  return following(op);
}
const Operation* write_lane_address(Wave& w, const Operation* op) {
  const u32* data = rows_of(w, op, 0);
  count_lds(w, nullptr, 0, 4, false, true);
  for_lanes(w.exec(), [&](unsigned i) { store_lds(w, u64{op->immediate} + (w.s[reg_m0] & 0xffff) + 4 * i, data[i]); });
  return following(op);
}
const Operation* nothing(Wave&, const Operation* op) { return following(op); }

Instruction row(const char* name, Execute execute, bool result, unsigned sources) {
  Instruction made;
  made.name = name;
  made.family = Family::lds;
  made.execute = execute;
  if (result) made.result[0] = Type::wide;
  for (unsigned k = 0; k < sources; ++k) made.sources[k] = Type::wide;
  return made;
}

template <class T>
T compare_store(T old, T compare, T value) {
  return old == compare ? value : old;
}
template <class T>
T store_compare(T old, T value, T compare) {
  return old == compare ? value : old;
}
u32 wrap_around(u32 old, u32 subtracted, u32 added) { return old >= subtracted ? old - subtracted : old + added; }
template <class T>
T mask_or(T old, T mask, T value) {
  return (old & ~mask) | value;
}

}  // namespace

// m0 has the base in its upper half, which only append and consume use.
const Operation* run_gds(Wave& w, const Operation* op) {
  DeviceState& device = *w.dispatch->device;
  const std::scoped_lock lock(device.mutex);
  if (device.gds.empty()) device.gds.resize(DeviceState::gds_bytes);
  std::swap(w.workgroup->lds, device.gds);
  const Operation* next = op->instruction->execute(w, op);
  std::swap(w.workgroup->lds, device.gds);
  return next;
}

std::span<const Instruction> lds_instructions() {
  static const auto* table = new std::vector<Instruction>{
#define KERNCAP_DS_WIDTHS(READ, READ2, READ2ST64, WRITE, WRITE2, WRITE2ST64, BITS, DWORDS)              \
  row(READ BITS, &isa::read<DWORDS>, true, 1), row(READ2 BITS, &read2<DWORDS, 1>, true, 1),             \
      row(READ2ST64 BITS, &read2<DWORDS, 64>, true, 1), row(WRITE BITS, &isa::write<DWORDS>, false, 2), \
      row(WRITE2 BITS, &write2<DWORDS, 1>, false, 3), row(WRITE2ST64 BITS, &write2<DWORDS, 64>, false, 3)
      KERNCAP_DS_WIDTHS("ds_read_", "ds_read2_", "ds_read2st64_", "ds_write_", "ds_write2_", "ds_write2st64_", "b32",
                        1),
      KERNCAP_DS_WIDTHS("ds_read_", "ds_read2_", "ds_read2st64_", "ds_write_", "ds_write2_", "ds_write2st64_", "b64",
                        2),
      KERNCAP_DS_WIDTHS("ds_load_", "ds_load_2addr_", "ds_load_2addr_stride64_", "ds_store_", "ds_store_2addr_",
                        "ds_store_2addr_stride64_", "b32", 1),
      KERNCAP_DS_WIDTHS("ds_load_", "ds_load_2addr_", "ds_load_2addr_stride64_", "ds_store_", "ds_store_2addr_",
                        "ds_store_2addr_stride64_", "b64", 2),
#undef KERNCAP_DS_WIDTHS
      row("ds_read_b96", &isa::read<3>, true, 1),
      row("ds_read_b128", &isa::read<4>, true, 1),
      row("ds_write_b96", &isa::write<3>, false, 2),
      row("ds_write_b128", &isa::write<4>, false, 2),
      row("ds_load_b96", &isa::read<3>, true, 1),
      row("ds_load_b128", &isa::read<4>, true, 1),
      row("ds_store_b96", &isa::write<3>, false, 2),
      row("ds_store_b128", &isa::write<4>, false, 2),
#define KERNCAP_DS_NARROW(OLD, NEW, EXECUTE) row(OLD, EXECUTE, true, 1), row(NEW, EXECUTE, true, 1)
      KERNCAP_DS_NARROW("ds_read_u8", "ds_load_u8", (&read_narrow<u8, Half::whole>)),
      KERNCAP_DS_NARROW("ds_read_i8", "ds_load_i8", (&read_narrow<i8, Half::whole>)),
      KERNCAP_DS_NARROW("ds_read_u16", "ds_load_u16", (&read_narrow<u16, Half::whole>)),
      KERNCAP_DS_NARROW("ds_read_i16", "ds_load_i16", (&read_narrow<i16, Half::whole>)),
      KERNCAP_DS_NARROW("ds_read_u8_d16", "ds_load_u8_d16", (&read_narrow<u8, Half::low>)),
      KERNCAP_DS_NARROW("ds_read_u8_d16_hi", "ds_load_u8_d16_hi", (&read_narrow<u8, Half::high>)),
      KERNCAP_DS_NARROW("ds_read_i8_d16", "ds_load_i8_d16", (&read_narrow<i8, Half::low>)),
      KERNCAP_DS_NARROW("ds_read_i8_d16_hi", "ds_load_i8_d16_hi", (&read_narrow<i8, Half::high>)),
      KERNCAP_DS_NARROW("ds_read_u16_d16", "ds_load_u16_d16", (&read_narrow<u16, Half::low>)),
      KERNCAP_DS_NARROW("ds_read_u16_d16_hi", "ds_load_u16_d16_hi", (&read_narrow<u16, Half::high>)),
#undef KERNCAP_DS_NARROW
#define KERNCAP_DS_NARROW(OLD, NEW, EXECUTE) row(OLD, EXECUTE, false, 2), row(NEW, EXECUTE, false, 2)
      KERNCAP_DS_NARROW("ds_write_b8", "ds_store_b8", (&write_narrow<u8, 0>)),
      KERNCAP_DS_NARROW("ds_write_b16", "ds_store_b16", (&write_narrow<u16, 0>)),
      KERNCAP_DS_NARROW("ds_write_b8_d16_hi", "ds_store_b8_d16_hi", (&write_narrow<u8, 16>)),
      KERNCAP_DS_NARROW("ds_write_b16_d16_hi", "ds_store_b16_d16_hi", (&write_narrow<u16, 16>)),
#undef KERNCAP_DS_NARROW
#define KERNCAP_DS_ATOMIC(NAME, SUFFIX, T, F)                          \
  row("ds_" NAME "_" SUFFIX, &isa::atomic<T, false, &F<T>>, false, 2), \
      row("ds_" NAME "_rtn_" SUFFIX, &isa::atomic<T, true, &F<T>>, true, 2)
#define KERNCAP_DS_ATOMIC_BOTH(NAME, SIGN, T, WIDE, F) \
  KERNCAP_DS_ATOMIC(NAME, SIGN "32", T, F), KERNCAP_DS_ATOMIC(NAME, SIGN "64", WIDE, F)
      KERNCAP_DS_ATOMIC_BOTH("add", "u", u32, u64, atomic_add),
      KERNCAP_DS_ATOMIC_BOTH("sub", "u", u32, u64, atomic_sub),
      KERNCAP_DS_ATOMIC_BOTH("rsub", "u", u32, u64, atomic_reverse_sub),
      KERNCAP_DS_ATOMIC_BOTH("inc", "u", u32, u64, atomic_inc),
      KERNCAP_DS_ATOMIC_BOTH("dec", "u", u32, u64, atomic_dec),
      KERNCAP_DS_ATOMIC_BOTH("min", "i", i32, i64, atomic_min),
      KERNCAP_DS_ATOMIC_BOTH("max", "i", i32, i64, atomic_max),
      KERNCAP_DS_ATOMIC_BOTH("min", "u", u32, u64, atomic_min),
      KERNCAP_DS_ATOMIC_BOTH("max", "u", u32, u64, atomic_max),
      KERNCAP_DS_ATOMIC_BOTH("and", "b", u32, u64, atomic_and),
      KERNCAP_DS_ATOMIC_BOTH("or", "b", u32, u64, atomic_or),
      KERNCAP_DS_ATOMIC_BOTH("xor", "b", u32, u64, atomic_xor),
      KERNCAP_DS_ATOMIC_BOTH("min", "f", float, double, atomic_float_min),
      KERNCAP_DS_ATOMIC_BOTH("max", "f", float, double, atomic_float_max),
      KERNCAP_DS_ATOMIC_BOTH("add", "f", float, double, atomic_add),
#undef KERNCAP_DS_ATOMIC_BOTH
#undef KERNCAP_DS_ATOMIC
      row("ds_wrxchg_rtn_b32", &isa::atomic<u32, true, &atomic_swap<u32>>, true, 2),
      row("ds_wrxchg_rtn_b64", &isa::atomic<u64, true, &atomic_swap<u64>>, true, 2),
      row("ds_storexchg_rtn_b32", &isa::atomic<u32, true, &atomic_swap<u32>>, true, 2),
      row("ds_storexchg_rtn_b64", &isa::atomic<u64, true, &atomic_swap<u64>>, true, 2),
      row("ds_wrxchg2_rtn_b32", &exchange2<u32, 1>, true, 3),
      row("ds_wrxchg2_rtn_b64", &exchange2<u64, 1>, true, 3),
      row("ds_wrxchg2st64_rtn_b32", &exchange2<u32, 64>, true, 3),
      row("ds_wrxchg2st64_rtn_b64", &exchange2<u64, 64>, true, 3),
      row("ds_pk_add_f16", &isa::atomic<u32, false, &atomic_add_pk_f16>, false, 2),
      row("ds_pk_add_rtn_f16", &isa::atomic<u32, true, &atomic_add_pk_f16>, true, 2),
      row("ds_pk_add_bf16", &isa::atomic<u32, false, &atomic_add_pk_bf16>, false, 2),
      row("ds_pk_add_rtn_bf16", &isa::atomic<u32, true, &atomic_add_pk_bf16>, true, 2),
      // GCN: compare then new value; RDNA3's ds_cmpstore: new value then compare.
      row("ds_cmpst_b32", &atomic2<u32, false, &compare_store<u32>>, false, 3),
      row("ds_cmpst_rtn_b32", &atomic2<u32, true, &compare_store<u32>>, true, 3),
      row("ds_cmpst_b64", &atomic2<u64, false, &compare_store<u64>>, false, 3),
      row("ds_cmpst_rtn_b64", &atomic2<u64, true, &compare_store<u64>>, true, 3),
      row("ds_cmpst_f32", &atomic2<float, false, &compare_store<float>>, false, 3),
      row("ds_cmpst_rtn_f32", &atomic2<float, true, &compare_store<float>>, true, 3),
      row("ds_cmpst_f64", &atomic2<double, false, &compare_store<double>>, false, 3),
      row("ds_cmpst_rtn_f64", &atomic2<double, true, &compare_store<double>>, true, 3),
      row("ds_cmpstore_b32", &atomic2<u32, false, &store_compare<u32>>, false, 3),
      row("ds_cmpstore_rtn_b32", &atomic2<u32, true, &store_compare<u32>>, true, 3),
      row("ds_cmpstore_b64", &atomic2<u64, false, &store_compare<u64>>, false, 3),
      row("ds_cmpstore_rtn_b64", &atomic2<u64, true, &store_compare<u64>>, true, 3),
      row("ds_mskor_b32", &atomic2<u32, false, &mask_or<u32>>, false, 3),
      row("ds_mskor_rtn_b32", &atomic2<u32, true, &mask_or<u32>>, true, 3),
      row("ds_mskor_b64", &atomic2<u64, false, &mask_or<u64>>, false, 3),
      row("ds_mskor_rtn_b64", &atomic2<u64, true, &mask_or<u64>>, true, 3),
      row("ds_cmpstore_f32", &atomic2<float, false, &store_compare<float>>, false, 3),
      row("ds_cmpstore_rtn_f32", &atomic2<float, true, &store_compare<float>>, true, 3),
      row("ds_cmpstore_f64", &atomic2<double, false, &store_compare<double>>, false, 3),
      row("ds_cmpstore_rtn_f64", &atomic2<double, true, &store_compare<double>>, true, 3),
      row("ds_wrap_rtn_b32", &atomic2<u32, true, &wrap_around>, true, 3),
      row("ds_condxchg32_rtn_b64", &conditional_exchange, true, 2),
      row("ds_bpermute_b32", &backward_permute, true, 2),
      row("ds_permute_b32", &permute, true, 2),
      row("ds_swizzle_b32", &swizzle, true, 1),
      row("ds_append", &count_lanes<true>, true, 0),
      row("ds_consume", &count_lanes<false>, true, 0),
      row("ds_read_addtid_b32", &read_lane_address, true, 0),
      row("ds_write_addtid_b32", &write_lane_address, false, 1),
      row("ds_load_addtid_b32", &read_lane_address, true, 0),
      row("ds_store_addtid_b32", &write_lane_address, false, 1),
      row("ds_nop", &nothing, false, 0),
  };
  return *table;
}

}  // namespace kerncap::softgpu::isa
