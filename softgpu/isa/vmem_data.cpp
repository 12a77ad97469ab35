// What vector memory instructions do with the data: loads and stores of each width, atomics.
#include <algorithm>
#include <atomic>
#include <deque>

#include "softgpu/isa/atomics.h"
#include "softgpu/isa/vmem.h"

namespace kerncap::softgpu::isa {
namespace {

template <unsigned dwords>
void load(u64 active, std::byte* const* pointers, u32* result, const u32*) {
  if (active == ~u64{0}) {
    for (unsigned i = 0; i < row_lanes; ++i) {
      u32 value[dwords];
      std::memcpy(value, pointers[i], sizeof value);
      for (unsigned d = 0; d < dwords; ++d) result[d * row_lanes + i] = value[d];
    }
    return;
  }
  for_lanes(active, [&](unsigned i) {
    u32 value[dwords];
    std::memcpy(value, pointers[i], sizeof value);
    for (unsigned d = 0; d < dwords; ++d) result[d * row_lanes + i] = value[d];
  });
}

template <unsigned dwords>
void store(u64 active, std::byte* const* pointers, u32*, const u32* data) {
  for_lanes(active, [&](unsigned i) {
    u32 value[dwords];
    for (unsigned d = 0; d < dwords; ++d) value[d] = data[d * row_lanes + i];
    std::memcpy(pointers[i], value, sizeof value);
  });
}

// Narrow loads: extend to the register, or fill one half and keep the other.
enum class Half { whole, low, high };
template <class T, Half half>
void load_narrow(u64 active, std::byte* const* pointers, u32* result, const u32*) {
  for_lanes(active, [&](unsigned i) {
    T narrow;
    std::memcpy(&narrow, pointers[i], sizeof narrow);
    const u32 value = static_cast<u32>(static_cast<i32>(narrow));
    if constexpr (half == Half::whole)
      result[i] = value;
    else if constexpr (half == Half::low)
      result[i] = (result[i] & 0xffff0000u) | (value & 0xffffu);
    else
      result[i] = (result[i] & 0xffffu) | value << 16;
  });
}
template <class T, unsigned shift>
void store_narrow(u64 active, std::byte* const* pointers, u32*, const u32* data) {
  for_lanes(active, [&](unsigned i) {
    const T narrow = static_cast<T>(data[i] >> shift);
    std::memcpy(pointers[i], &narrow, sizeof narrow);
  });
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

template <class T, auto F>
void atomic(u64 active, std::byte* const* pointers, u32* result, const u32* data) {
  for_lanes(active, [&](unsigned i) {
    const T old = atomic_update<T>(pointers[i], [operand = lane_value<T>(data, i)](T now) { return F(now, operand); });
    if (result != nullptr) put_lane(result, i, old);
  });
}

template <class T>
void compare_and_swap(u64 active, std::byte* const* pointers, u32* result, const u32* data) {
  constexpr unsigned second = sizeof(T) / 4 * row_lanes;
  for_lanes(active, [&](unsigned i) {
    const T wanted = lane_value<T>(data, i), expected = lane_value<T>(data + second, i);
    const T old = atomic_update<T>(pointers[i], [&](T now) { return now == expected ? wanted : now; });
    if (result != nullptr) put_lane(result, i, old);
  });
}

template <class T>
T conditional_subtract(T now, T operand) {
  return now < operand ? T{0} : static_cast<T>(now - operand);
}

std::deque<MemoryAccess>& accesses() {
  static auto* all = new std::deque<MemoryAccess>;
  return *all;
}

Instruction memory(const char* name, MemoryKind kind, unsigned bytes, MoveData move) {
  accesses().push_back({kind, static_cast<u8>(bytes), move});
  Instruction row;
  row.name = name;
  row.family = Family::vmem;
  row.execute = &run_memory;
  row.bytes = static_cast<u8>(bytes);
  row.detail = &accesses().back();
  return row;
}

// One dword of LDS for each lane.
Instruction memory_to_lds(const char* name, unsigned bytes, MoveData move) {
  Instruction row = memory(name, MemoryKind::load, bytes, move);
  row.execute = &run_memory_to_lds;
  return row;
}
Instruction with_execute(Instruction row, Execute execute) {
  row.execute = execute;
  return row;
}
Instruction with_flags(Instruction row, unsigned flags) {
  row.flags = static_cast<u16>(row.flags | flags);
  return row;
}

const Operation* cache_maintenance(Wave&, const Operation* op) { return following(op); }
Instruction maintenance(const char* name) {
  Instruction row;
  row.name = name;
  row.family = Family::vmem;
  row.execute = &cache_maintenance;
  return row;
}

}  // namespace

std::span<const Instruction> memory_instructions() {
  using enum MemoryKind;
  static const auto* table = new std::vector<Instruction>{
      memory("load_dword", MemoryKind::load, 4, &isa::load<1>),
      memory("load_dwordx2", MemoryKind::load, 8, &isa::load<2>),
      memory("load_dwordx3", MemoryKind::load, 12, &isa::load<3>),
      memory("load_dwordx4", MemoryKind::load, 16, &isa::load<4>),
      memory("load_ubyte", MemoryKind::load, 1, &load_narrow<u8, Half::whole>),
      memory("load_sbyte", MemoryKind::load, 1, &load_narrow<i8, Half::whole>),
      memory("load_ushort", MemoryKind::load, 2, &load_narrow<u16, Half::whole>),
      memory("load_sshort", MemoryKind::load, 2, &load_narrow<i16, Half::whole>),
      memory("load_ubyte_d16", MemoryKind::load, 1, &load_narrow<u8, Half::low>),
      memory("load_ubyte_d16_hi", MemoryKind::load, 1, &load_narrow<u8, Half::high>),
      memory("load_sbyte_d16", MemoryKind::load, 1, &load_narrow<i8, Half::low>),
      memory("load_sbyte_d16_hi", MemoryKind::load, 1, &load_narrow<i8, Half::high>),
      memory("load_short_d16", MemoryKind::load, 2, &load_narrow<u16, Half::low>),
      memory("load_short_d16_hi", MemoryKind::load, 2, &load_narrow<u16, Half::high>),
      memory("store_dword", MemoryKind::store, 4, &isa::store<1>),
      memory("store_dwordx2", MemoryKind::store, 8, &isa::store<2>),
      memory("store_dwordx3", MemoryKind::store, 12, &isa::store<3>),
      memory("store_dwordx4", MemoryKind::store, 16, &isa::store<4>),
      memory("store_byte", MemoryKind::store, 1, &store_narrow<u8, 0>),
      memory("store_byte_d16_hi", MemoryKind::store, 1, &store_narrow<u8, 16>),
      memory("store_short", MemoryKind::store, 2, &store_narrow<u16, 0>),
      memory("store_short_d16_hi", MemoryKind::store, 2, &store_narrow<u16, 16>),
#define KERNCAP_ATOMIC(NAME, T, WIDE, F)                                 \
  memory("atomic_" NAME, MemoryKind::atomic, 4, &isa::atomic<T, &F<T>>), \
      memory("atomic_" NAME "_x2", MemoryKind::atomic, 8, &isa::atomic<WIDE, &F<WIDE>>)
      KERNCAP_ATOMIC("add", u32, u64, atomic_add),
      KERNCAP_ATOMIC("sub", u32, u64, atomic_sub),
      KERNCAP_ATOMIC("smin", i32, i64, atomic_min),
      KERNCAP_ATOMIC("umin", u32, u64, atomic_min),
      KERNCAP_ATOMIC("smax", i32, i64, atomic_max),
      KERNCAP_ATOMIC("umax", u32, u64, atomic_max),
      KERNCAP_ATOMIC("and", u32, u64, atomic_and),
      KERNCAP_ATOMIC("or", u32, u64, atomic_or),
      KERNCAP_ATOMIC("xor", u32, u64, atomic_xor),
      KERNCAP_ATOMIC("inc", u32, u64, atomic_inc),
      KERNCAP_ATOMIC("dec", u32, u64, atomic_dec),
      KERNCAP_ATOMIC("swap", u32, u64, atomic_swap),
      KERNCAP_ATOMIC("fmin", float, double, atomic_float_min),
      KERNCAP_ATOMIC("fmax", float, double, atomic_float_max),
#undef KERNCAP_ATOMIC
      memory("atomic_cmpswap", MemoryKind::atomic, 4, &compare_and_swap<u32>),
      memory("atomic_cmpswap_x2", MemoryKind::atomic, 8, &compare_and_swap<u64>),
      memory("atomic_add_f32", MemoryKind::atomic, 4, &isa::atomic<float, &atomic_add<float>>),
      memory("atomic_add_f64", MemoryKind::atomic, 8, &isa::atomic<double, &atomic_add<double>>),
      memory("atomic_min_f64", MemoryKind::atomic, 8, &isa::atomic<double, &atomic_float_min<double>>),
      memory("atomic_max_f64", MemoryKind::atomic, 8, &isa::atomic<double, &atomic_float_max<double>>),
      memory("atomic_pk_add_f16", MemoryKind::atomic, 4, &isa::atomic<u32, &atomic_add_pk_f16>),
      memory("atomic_pk_add_bf16", MemoryKind::atomic, 4, &isa::atomic<u32, &atomic_add_pk_bf16>),
      memory("atomic_csub", MemoryKind::atomic, 4, &isa::atomic<u32, &conditional_subtract<u32>>),
      memory("atomic_fcmpswap", MemoryKind::atomic, 4, &compare_and_swap<float>),
      memory("atomic_fcmpswap_x2", MemoryKind::atomic, 8, &compare_and_swap<double>),
      memory_to_lds("load_lds_dword", 4, &isa::load<1>),
      memory_to_lds("load_lds_ubyte", 1, &load_narrow<u8, Half::whole>),
      memory_to_lds("load_lds_sbyte", 1, &load_narrow<i8, Half::whole>),
      memory_to_lds("load_lds_ushort", 2, &load_narrow<u16, Half::whole>),
      memory_to_lds("load_lds_sshort", 2, &load_narrow<i16, Half::whole>),
      with_execute(memory("store_lds_dword", MemoryKind::store, 4, &isa::store<1>), &run_lds_to_memory),
      with_flags(memory("load_dword_addtid", MemoryKind::load, 4, &isa::load<1>), instruction_adds_lane),
      with_flags(memory("store_dword_addtid", MemoryKind::store, 4, &isa::store<1>), instruction_adds_lane),
      maintenance("buffer_wbinvl1"),
      maintenance("buffer_wbinvl1_vol"),
      maintenance("buffer_invl2"),
      maintenance("buffer_wbl2"),
      maintenance("buffer_inv"),
      maintenance("buffer_gl0_inv"),
      maintenance("buffer_gl1_inv"),
  };
  return *table;
}

}  // namespace kerncap::softgpu::isa
