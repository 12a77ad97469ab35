// What memory instructions do, as tables for memory_proof_test.cpp: names on GCN and RDNA3, sizes, and how an atomic
// changes the value, written without regard to how the interpreter does it.
#pragma once

#include <bit>

#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa::memory_tables {

inline float as_float(u64 bits) { return std::bit_cast<float>(static_cast<u32>(bits)); }
inline double as_double(u64 bits) { return std::bit_cast<double>(bits); }
inline u64 bits_of(float x) { return std::bit_cast<u32>(x); }
inline u64 bits_of(double x) { return std::bit_cast<u64>(x); }

enum class Where { whole, low, high };
struct Load {
  const char *gcn, *rdna3;
  unsigned bytes;
  bool is_signed = false;
  Where where = Where::whole;
};
inline constexpr Load loads[] = {
    {"load_dword", "load_b32", 4},
    {"load_dwordx2", "load_b64", 8},
    {"load_dwordx3", "load_b96", 12},
    {"load_dwordx4", "load_b128", 16},
    {"load_ubyte", "load_u8", 1},
    {"load_sbyte", "load_i8", 1, true},
    {"load_ushort", "load_u16", 2},
    {"load_sshort", "load_i16", 2, true},
    {"load_ubyte_d16", "load_d16_u8", 1, false, Where::low},
    {"load_ubyte_d16_hi", "load_d16_hi_u8", 1, false, Where::high},
    {"load_sbyte_d16", "load_d16_i8", 1, true, Where::low},
    {"load_sbyte_d16_hi", "load_d16_hi_i8", 1, true, Where::high},
    {"load_short_d16", "load_d16_b16", 2, false, Where::low},
    {"load_short_d16_hi", "load_d16_hi_b16", 2, false, Where::high},
};
inline constexpr Load lds_loads[] = {
    {"ds_read_b32", "ds_load_b32", 4},
    {"ds_read_b64", "ds_load_b64", 8},
    {"ds_read_b96", "ds_load_b96", 12},
    {"ds_read_b128", "ds_load_b128", 16},
    {"ds_read_u8", "ds_load_u8", 1},
    {"ds_read_i8", "ds_load_i8", 1, true},
    {"ds_read_u16", "ds_load_u16", 2},
    {"ds_read_i16", "ds_load_i16", 2, true},
    {"ds_read_u8_d16", "ds_load_u8_d16", 1, false, Where::low},
    {"ds_read_u8_d16_hi", "ds_load_u8_d16_hi", 1, false, Where::high},
    {"ds_read_i8_d16", "ds_load_i8_d16", 1, true, Where::low},
    {"ds_read_i8_d16_hi", "ds_load_i8_d16_hi", 1, true, Where::high},
    {"ds_read_u16_d16", "ds_load_u16_d16", 2, false, Where::low},
    {"ds_read_u16_d16_hi", "ds_load_u16_d16_hi", 2, false, Where::high},
};
struct Store {
  const char *gcn, *rdna3;
  unsigned bytes, shift = 0;
};
inline constexpr Store stores[] = {
    {"store_dword", "store_b32", 4},    {"store_dwordx2", "store_b64", 8},
    {"store_dwordx3", "store_b96", 12}, {"store_dwordx4", "store_b128", 16},
    {"store_byte", "store_b8", 1},      {"store_byte_d16_hi", "store_d16_hi_b8", 1, 16},
    {"store_short", "store_b16", 2},    {"store_short_d16_hi", "store_d16_hi_b16", 2, 16},
};
inline constexpr Store lds_stores[] = {
    {"ds_write_b32", "ds_store_b32", 4},  {"ds_write_b64", "ds_store_b64", 8},
    {"ds_write_b96", "ds_store_b96", 12}, {"ds_write_b128", "ds_store_b128", 16},
    {"ds_write_b8", "ds_store_b8", 1},    {"ds_write_b8_d16_hi", "ds_store_b8_d16_hi", 1, 16},
    {"ds_write_b16", "ds_store_b16", 2},  {"ds_write_b16_d16_hi", "ds_store_b16_d16_hi", 2, 16},
};

// Change of a 32-bit and of a 64-bit value.
enum class Values { integers, floats, halves, bfloats };
using Change = u64 (*)(u64 old, u64 data, u64 compare);
struct Atomic {
  const char *gcn, *rdna3;
  unsigned bytes;
  Change change;
  unsigned operands = 1;
  Values values = Values::integers;
};
template <class T>
inline u64 smaller(u64 a, u64 b, u64) {
  return static_cast<T>(a) < static_cast<T>(b) ? a : b;
}
template <class T>
inline u64 larger(u64 a, u64 b, u64) {
  return static_cast<T>(a) > static_cast<T>(b) ? a : b;
}
inline u64 add(u64 a, u64 b, u64) { return a + b; }
inline u64 subtract(u64 a, u64 b, u64) { return a - b; }
inline u64 reverse(u64 a, u64 b, u64) { return b - a; }
inline u64 conjunction(u64 a, u64 b, u64) { return a & b; }
inline u64 disjunction(u64 a, u64 b, u64) { return a | b; }
inline u64 difference(u64 a, u64 b, u64) { return a ^ b; }
inline u64 exchange(u64, u64 b, u64) { return b; }
inline u64 increase(u64 a, u64 b, u64) { return a >= b ? 0 : a + 1; }
inline u64 decrease(u64 a, u64 b, u64) { return a == 0 || a > b ? b : a - 1; }
inline u64 exchange_if(u64 a, u64 b, u64 c) { return a == c ? b : a; }
inline u64 clamped_subtract(u64 a, u64 b, u64) { return a < b ? 0 : a - b; }
inline u64 add_f32(u64 a, u64 b, u64) { return bits_of(as_float(a) + as_float(b)); }
inline u64 add_f64(u64 a, u64 b, u64) { return bits_of(as_double(a) + as_double(b)); }
inline u64 min_f32(u64 a, u64 b, u64) { return as_float(a) < as_float(b) ? a : b; }
inline u64 max_f32(u64 a, u64 b, u64) { return as_float(a) > as_float(b) ? a : b; }
inline u64 min_f64(u64 a, u64 b, u64) { return as_double(a) < as_double(b) ? a : b; }
inline u64 max_f64(u64 a, u64 b, u64) { return as_double(a) > as_double(b) ? a : b; }
// Small integers, whose sums are exact in each format.
inline u64 add_pairs(u64 a, u64 b, Values values) {
  u64 result = 0;
  for (unsigned shift = 0; shift < 32; shift += 16) {
    const u16 x = static_cast<u16>(a >> shift), y = static_cast<u16>(b >> shift);
    u16 sum;
    if (values == Values::halves)
      sum = float_to_half(half_to_float({x}) + half_to_float({y})).bits;
    else
      sum = static_cast<u16>(bits_of(as_float(u64{x} << 16) + as_float(u64{y} << 16)) >> 16);
    result |= u64{sum} << shift;
  }
  return result;
}
inline u64 add_halves(u64 a, u64 b, u64) { return add_pairs(a, b, Values::halves); }
inline u64 add_bfloats(u64 a, u64 b, u64) { return add_pairs(a, b, Values::bfloats); }

inline constexpr Atomic atomics[] = {
    {"atomic_swap", "atomic_swap_b32", 4, exchange},
    {"atomic_swap_x2", "atomic_swap_b64", 8, exchange},
    {"atomic_cmpswap", "atomic_cmpswap_b32", 4, exchange_if, 2},
    {"atomic_cmpswap_x2", "atomic_cmpswap_b64", 8, exchange_if, 2},
    {"atomic_add", "atomic_add_u32", 4, add},
    {"atomic_add_x2", "atomic_add_u64", 8, add},
    {"atomic_sub", "atomic_sub_u32", 4, subtract},
    {"atomic_sub_x2", "atomic_sub_u64", 8, subtract},
    {"atomic_smin", "atomic_min_i32", 4, smaller<i32>},
    {"atomic_smin_x2", "atomic_min_i64", 8, smaller<i64>},
    {"atomic_umin", "atomic_min_u32", 4, smaller<u32>},
    {"atomic_umin_x2", "atomic_min_u64", 8, smaller<u64>},
    {"atomic_smax", "atomic_max_i32", 4, larger<i32>},
    {"atomic_smax_x2", "atomic_max_i64", 8, larger<i64>},
    {"atomic_umax", "atomic_max_u32", 4, larger<u32>},
    {"atomic_umax_x2", "atomic_max_u64", 8, larger<u64>},
    {"atomic_and", "atomic_and_b32", 4, conjunction},
    {"atomic_and_x2", "atomic_and_b64", 8, conjunction},
    {"atomic_or", "atomic_or_b32", 4, disjunction},
    {"atomic_or_x2", "atomic_or_b64", 8, disjunction},
    {"atomic_xor", "atomic_xor_b32", 4, difference},
    {"atomic_xor_x2", "atomic_xor_b64", 8, difference},
    {"atomic_inc", "atomic_inc_u32", 4, increase},
    {"atomic_inc_x2", "atomic_inc_u64", 8, increase},
    {"atomic_dec", "atomic_dec_u32", 4, decrease},
    {"atomic_dec_x2", "atomic_dec_u64", 8, decrease},
    {"atomic_csub", "atomic_csub_u32", 4, clamped_subtract},
    {"atomic_fcmpswap", "atomic_cmpswap_f32", 4, exchange_if, 2, Values::floats},
    {"atomic_fcmpswap_x2", "", 8, exchange_if, 2, Values::floats},
    {"atomic_fmin", "atomic_min_f32", 4, min_f32, 1, Values::floats},
    {"atomic_fmax", "atomic_max_f32", 4, max_f32, 1, Values::floats},
    {"atomic_fmin_x2", "", 8, min_f64, 1, Values::floats},
    {"atomic_fmax_x2", "", 8, max_f64, 1, Values::floats},
    {"atomic_min_f64", "", 8, min_f64, 1, Values::floats},
    {"atomic_max_f64", "", 8, max_f64, 1, Values::floats},
    {"atomic_add_f32", "atomic_add_f32", 4, add_f32, 1, Values::floats},
    {"atomic_add_f64", "", 8, add_f64, 1, Values::floats},
    {"atomic_pk_add_f16", "", 4, add_halves, 1, Values::halves},
    {"atomic_pk_add_bf16", "", 4, add_bfloats, 1, Values::bfloats},
};
inline u64 mask_or(u64 a, u64 mask, u64 value) { return (a & ~mask) | value; }
inline u64 wrap(u64 a, u64 b, u64 c) { return static_cast<u32>(a) >= static_cast<u32>(b) ? a - b : a + c; }
// GCN's ds_cmpst has the value to compare with first.
inline u64 exchange_if_first(u64 a, u64 compare, u64 data) { return a == compare ? data : a; }
// "@" stands for nothing, or for "_rtn" where the old value is returned.
inline constexpr Atomic lds_atomics[] = {
    {"ds_add@_u32", "ds_add@_u32", 4, add},
    {"ds_add@_u64", "ds_add@_u64", 8, add},
    {"ds_sub@_u32", "ds_sub@_u32", 4, subtract},
    {"ds_sub@_u64", "ds_sub@_u64", 8, subtract},
    {"ds_rsub@_u32", "ds_rsub@_u32", 4, reverse},
    {"ds_rsub@_u64", "ds_rsub@_u64", 8, reverse},
    {"ds_inc@_u32", "ds_inc@_u32", 4, increase},
    {"ds_inc@_u64", "ds_inc@_u64", 8, increase},
    {"ds_dec@_u32", "ds_dec@_u32", 4, decrease},
    {"ds_dec@_u64", "ds_dec@_u64", 8, decrease},
    {"ds_min@_i32", "ds_min@_i32", 4, smaller<i32>},
    {"ds_min@_i64", "ds_min@_i64", 8, smaller<i64>},
    {"ds_max@_i32", "ds_max@_i32", 4, larger<i32>},
    {"ds_max@_i64", "ds_max@_i64", 8, larger<i64>},
    {"ds_min@_u32", "ds_min@_u32", 4, smaller<u32>},
    {"ds_min@_u64", "ds_min@_u64", 8, smaller<u64>},
    {"ds_max@_u32", "ds_max@_u32", 4, larger<u32>},
    {"ds_max@_u64", "ds_max@_u64", 8, larger<u64>},
    {"ds_and@_b32", "ds_and@_b32", 4, conjunction},
    {"ds_and@_b64", "ds_and@_b64", 8, conjunction},
    {"ds_or@_b32", "ds_or@_b32", 4, disjunction},
    {"ds_or@_b64", "ds_or@_b64", 8, disjunction},
    {"ds_xor@_b32", "ds_xor@_b32", 4, difference},
    {"ds_xor@_b64", "ds_xor@_b64", 8, difference},
    {"ds_mskor@_b32", "ds_mskor@_b32", 4, mask_or, 2},
    {"ds_mskor@_b64", "ds_mskor@_b64", 8, mask_or, 2},
    {"ds_wrxchg@_b32", "ds_storexchg@_b32", 4, exchange},
    {"ds_wrxchg@_b64", "ds_storexchg@_b64", 8, exchange},
    {"ds_wrap@_b32", "ds_wrap@_b32", 4, wrap, 2},
    {"ds_cmpst@_b32", "", 4, exchange_if_first, 2},
    {"ds_cmpst@_b64", "", 8, exchange_if_first, 2},
    {"ds_cmpst@_f32", "", 4, exchange_if_first, 2, Values::floats},
    {"ds_cmpst@_f64", "", 8, exchange_if_first, 2, Values::floats},
    {"", "ds_cmpstore@_b32", 4, exchange_if, 2},
    {"", "ds_cmpstore@_b64", 8, exchange_if, 2},
    {"", "ds_cmpstore@_f32", 4, exchange_if, 2, Values::floats},
    {"", "ds_cmpstore@_f64", 8, exchange_if, 2, Values::floats},
    {"ds_min@_f32", "ds_min@_f32", 4, min_f32, 1, Values::floats},
    {"ds_max@_f32", "ds_max@_f32", 4, max_f32, 1, Values::floats},
    {"ds_min@_f64", "ds_min@_f64", 8, min_f64, 1, Values::floats},
    {"ds_max@_f64", "ds_max@_f64", 8, max_f64, 1, Values::floats},
    {"ds_add@_f32", "ds_add@_f32", 4, add_f32, 1, Values::floats},
    {"ds_add@_f64", "ds_add@_f64", 8, add_f64, 1, Values::floats},
    {"ds_pk_add@_f16", "ds_pk_add@_f16", 4, add_halves, 1, Values::halves},
    {"ds_pk_add@_bf16", "ds_pk_add@_bf16", 4, add_bfloats, 1, Values::bfloats},
};

}  // namespace kerncap::softgpu::isa::memory_tables
