// Scalar arithmetic: SOP2, SOPC and SOPK's arithmetic. SOP1 and what changes EXEC is in sop_mask.cpp.
#include "softgpu/isa/scalar_row.h"

namespace kerncap::softgpu::isa {
namespace {

template <class T>
T bit_field(T value, u32 offset, u32 width) {
  if (width == 0) return 0;
  constexpr u32 bits = sizeof(T) * 8;
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>) {
    if (offset + width >= bits) return value >> offset;
    return static_cast<T>(static_cast<U>(value) << (bits - offset - width)) >> (bits - width);
  } else {
    return offset + width >= bits ? value >> offset : (value >> offset) & ((U{1} << width) - 1);
  }
}

}  // namespace

std::span<const Instruction> scalar_instructions() {
  static const auto* table =
      new std::vector<Instruction>{
          // SOP2
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = u64{a} + b;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_add_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                c = b > a;
                return a - b;
              },
              "s_sub_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = a + b;
                c = (~(a ^ b) & (a ^ r)) >> 31;
                return r;
              },
              "s_add_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = a - b;
                c = ((a ^ b) & (a ^ r)) >> 31;
                return r;
              },
              "s_sub_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = u64{a} + b + c;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_addc_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 t = u64{b} + c;
                c = t > a;
                return static_cast<u32>(a - t);
              },
              "s_subb_u32"),
          sop<i32(i32, i32)>(
              [](i32 a, i32 b, bool& c) {
                c = a < b;
                return c ? a : b;
              },
              "s_min_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                c = a < b;
                return c ? a : b;
              },
              "s_min_u32"),
          sop<i32(i32, i32)>(
              [](i32 a, i32 b, bool& c) {
                c = a > b;
                return c ? a : b;
              },
              "s_max_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                c = a > b;
                return c ? a : b;
              },
              "s_max_u32"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool& c) { return c ? a : b; }, "s_cselect_b32"),
          sop<u64(u64, u64)>([](u64 a, u64 b, bool& c) { return c ? a : b; }, "s_cselect_b64"),
#define KERNCAP_LOGIC(NAME, EXPRESSION) \
  sop<u32(u32, u32)>(                   \
      [](u32 a, u32 b, bool& c) {       \
        const u32 r = EXPRESSION;       \
        c = r != 0;                     \
        return r;                       \
      },                                \
      "s_" NAME "_b32"),                \
      sop<u64(u64, u64)>(               \
          [](u64 a, u64 b, bool& c) {   \
            const u64 r = EXPRESSION;   \
            c = r != 0;                 \
            return r;                   \
          },                            \
          "s_" NAME "_b64")
          KERNCAP_LOGIC("and", a & b),
          KERNCAP_LOGIC("or", a | b),
          KERNCAP_LOGIC("xor", a ^ b),
          KERNCAP_LOGIC("andn2", a & ~b),
          KERNCAP_LOGIC("orn2", a | ~b),
          KERNCAP_LOGIC("nand", ~(a & b)),
          KERNCAP_LOGIC("nor", ~(a | b)),
          KERNCAP_LOGIC("xnor", ~(a ^ b)),
#undef KERNCAP_LOGIC
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = a << (b & 31);
                c = r != 0;
                return r;
              },
              "s_lshl_b32"),
          sop<u64(u64, u32)>(
              [](u64 a, u32 b, bool& c) {
                const u64 r = a << (b & 63);
                c = r != 0;
                return r;
              },
              "s_lshl_b64"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = a >> (b & 31);
                c = r != 0;
                return r;
              },
              "s_lshr_b32"),
          sop<u64(u64, u32)>(
              [](u64 a, u32 b, bool& c) {
                const u64 r = a >> (b & 63);
                c = r != 0;
                return r;
              },
              "s_lshr_b64"),
          sop<i32(i32, u32)>(
              [](i32 a, u32 b, bool& c) {
                const i32 r = a >> (b & 31);
                c = r != 0;
                return r;
              },
              "s_ashr_i32"),
          sop<i64(i64, u32)>(
              [](i64 a, u32 b, bool& c) {
                const i64 r = a >> (b & 63);
                c = r != 0;
                return r;
              },
              "s_ashr_i64"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return ((1u << (a & 31)) - 1) << (b & 31); }, "s_bfm_b32"),
          sop<u64(u32, u32)>([](u32 a, u32 b, bool&) { return ((u64{1} << (a & 63)) - 1) << (b & 63); }, "s_bfm_b64"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return a * b; }, "s_mul_i32"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return static_cast<u32>(u64{a} * b >> 32); }, "s_mul_hi_u32"),
          sop<i32(i32, i32)>([](i32 a, i32 b, bool&) { return static_cast<i32>(i64{a} * b >> 32); }, "s_mul_hi_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = bit_field<u32>(a, b & 31, b >> 16 & 127);
                c = r != 0;
                return r;
              },
              "s_bfe_u32"),
          sop<i32(i32, u32)>(
              [](i32 a, u32 b, bool& c) {
                const i32 r = bit_field<i32>(a, b & 31, b >> 16 & 127);
                c = r != 0;
                return r;
              },
              "s_bfe_i32"),
          sop<u64(u64, u32)>(
              [](u64 a, u32 b, bool& c) {
                const u64 r = bit_field<u64>(a, b & 63, b >> 16 & 127);
                c = r != 0;
                return r;
              },
              "s_bfe_u64"),
          sop<i64(i64, u32)>(
              [](i64 a, u32 b, bool& c) {
                const i64 r = bit_field<i64>(a, b & 63, b >> 16 & 127);
                c = r != 0;
                return r;
              },
              "s_bfe_i64"),
          sop<i32(i32, i32)>(
              [](i32 a, i32 b, bool& c) {
                const i64 d = i64{a} - b;
                const i32 r = static_cast<i32>(d < 0 ? -d : d);
                c = r != 0;
                return r;
              },
              "s_absdiff_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = (u64{a} << 1) + b;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_lshl1_add_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = (u64{a} << 2) + b;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_lshl2_add_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = (u64{a} << 3) + b;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_lshl3_add_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = (u64{a} << 4) + b;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_lshl4_add_u32"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return (a & 0xffffu) | b << 16; }, "s_pack_ll_b32_b16"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return (a & 0xffffu) | (b & 0xffff0000u); },
                             "s_pack_lh_b32_b16"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return a >> 16 | (b & 0xffff0000u); }, "s_pack_hh_b32_b16"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return a >> 16 | b << 16; }, "s_pack_hl_b32_b16"),
  // SOPC
#define KERNCAP_COMPARE(NAME, OPERATOR)                                                                   \
  sop<void(i32, i32)>([](i32 a, i32 b, bool& c) { c = a OPERATOR b; }, "s_cmp_" NAME "_i32"),             \
      sop<void(u32, u32)>([](u32 a, u32 b, bool& c) { c = a OPERATOR b; }, "s_cmp_" NAME "_u32"),         \
      sopk<void(i32, i32)>([](i32 a, i32 b, bool& c) { c = a OPERATOR b; }, "s_cmpk_" NAME "_i32", true), \
      sopk<void(u32, u32)>([](u32 a, u32 b, bool& c) { c = a OPERATOR(b & 0xffffu); }, "s_cmpk_" NAME "_u32", false)
          KERNCAP_COMPARE("eq", ==),
          KERNCAP_COMPARE("lg", !=),
          KERNCAP_COMPARE("gt", >),
          KERNCAP_COMPARE("ge", >=),
          KERNCAP_COMPARE("lt", <),
          KERNCAP_COMPARE("le", <=),
#undef KERNCAP_COMPARE
          sop<void(u64, u64)>([](u64 a, u64 b, bool& c) { c = a == b; }, "s_cmp_eq_u64"),
          sop<void(u64, u64)>([](u64 a, u64 b, bool& c) { c = a != b; }, "s_cmp_lg_u64"),
          sop<void(u32, u32)>([](u32 a, u32 b, bool& c) { c = !(a >> (b & 31) & 1); }, "s_bitcmp0_b32"),
          sop<void(u32, u32)>([](u32 a, u32 b, bool& c) { c = a >> (b & 31) & 1; }, "s_bitcmp1_b32"),
          sop<void(u64, u32)>([](u64 a, u32 b, bool& c) { c = !(a >> (b & 63) & 1); }, "s_bitcmp0_b64"),
          sop<void(u64, u32)>([](u64 a, u32 b, bool& c) { c = a >> (b & 63) & 1; }, "s_bitcmp1_b64"),
          // SOPK
          sopk<i32(i32)>([](i32 a, bool&) { return a; }, "s_movk_i32", true),
          sopk_accumulate<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = a + b;
                c = (~(a ^ b) & (a ^ r)) >> 31;
                return r;
              },
              "s_addk_i32"),
          sopk_accumulate<u32(u32, u32)>([](u32 a, u32 b, bool&) { return a * b; }, "s_mulk_i32"),
      };
  return *table;
}

}  // namespace kerncap::softgpu::isa
