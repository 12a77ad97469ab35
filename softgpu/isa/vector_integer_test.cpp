// Integer vector instructions, each against a formula written for the test, on every target that has it.
#include <gtest/gtest.h>

#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {
namespace {

using wide = __int128;

template <class T>
T clipped(wide x) {
  const wide low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return static_cast<T>(x < low ? low : x > high ? high : x);
}
int leading_zeros(u32 x) {
  int n = 0;
  while (n < 32 && !(x >> (31 - n) & 1)) ++n;
  return n;
}
u32 byte_of(u32 x, int k) { return x >> (8 * k) & 0xff; }
u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }

class VectorInteger : public VectorCheck {};

TEST_P(VectorInteger, bitwise) {
  check<u32(u32)>("v_not_b32", [](u32 a) { return a ^ 0xffffffffu; });
  check<u32(u32, u32)>("v_and_b32", [](u32 a, u32 b) { return a & b; });
  check<u32(u32, u32)>("v_or_b32", [](u32 a, u32 b) { return a | b; });
  check<u32(u32, u32)>("v_xor_b32", [](u32 a, u32 b) { return a ^ b; });
  check<u32(u32, u32)>("v_xnor_b32", [](u32 a, u32 b) { return ~a ^ b; });
  check<u32(u32, u32, u32)>("v_and_or_b32", [](u32 a, u32 b, u32 c) { return (a & b) | c; });
  check<u32(u32, u32, u32)>("v_or3_b32", [](u32 a, u32 b, u32 c) { return a | b | c; });
  check<u32(u32, u32, u32)>("v_xor3_b32", [](u32 a, u32 b, u32 c) { return a ^ b ^ c; });
  check<u32(u32, u32, u32)>("v_bfi_b32", [](u32 a, u32 b, u32 c) {
    u32 r = 0;
    for (int k = 0; k < 32; ++k) r |= ((a >> k & 1) ? b >> k & 1 : c >> k & 1) << k;
    return r;
  });
  check<u32(u32)>("v_bfrev_b32", [](u32 a) {
    u32 r = 0;
    for (int k = 0; k < 32; ++k) r |= (a >> k & 1) << (31 - k);
    return r;
  });
  check<u32(u32, u32)>("v_bcnt_u32_b32", [](u32 a, u32 b) {
    for (int k = 0; k < 32; ++k) b += a >> k & 1;
    return b;
  });
  check<u32(u32, u32)>("v_bfm_b32", [](u32 a, u32 b) {
    u32 r = 0;
    for (u32 k = 0; k < (a & 31); ++k)
      if (k + (b & 31) < 32) r |= 1u << (k + (b & 31));
    return r;
  });
  check<u32(u32)>(
      "v_ffbh_u32", [](u32 a) { return a ? static_cast<u32>(leading_zeros(a)) : ~0u; }, "v_clz_i32_u32");
  check<u32(u32)>(
      "v_ffbl_b32",
      [](u32 a) {
        for (u32 k = 0; k < 32; ++k)
          if (a >> k & 1) return k;
        return ~0u;
      },
      "v_ctz_i32_b32");
  check<u32(u32)>(
      "v_ffbh_i32",
      [](u32 a) {
        for (u32 k = 1; k < 32; ++k)
          if ((a >> (31 - k) & 1) != a >> 31) return k;
        return ~0u;
      },
      "v_cls_i32");
}

TEST_P(VectorInteger, sums_and_differences) {
  check<u32(u32, u32)>(
      "v_add_u32", [](u32 a, u32 b) { return static_cast<u32>(u64{a} + b); }, "v_add_nc_u32");
  check<u32(u32, u32)>(
      "v_sub_u32", [](u32 a, u32 b) { return static_cast<u32>(u64{a} - b); }, "v_sub_nc_u32");
  check<u32(u32, u32)>(
      "v_subrev_u32", [](u32 a, u32 b) { return static_cast<u32>(u64{b} - a); }, "v_subrev_nc_u32");
  check<u32(u32, u32, u32)>("v_add3_u32", [](u32 a, u32 b, u32 c) { return static_cast<u32>(u64{a} + b + c); });
  check<u32(u32, u32)>(
      "v_add_i32", [](u32 a, u32 b) { return static_cast<u32>(u64{a} + b); }, "v_add_nc_i32");
  check<u32(u32, u32)>(
      "v_sub_i32", [](u32 a, u32 b) { return static_cast<u32>(u64{a} - b); }, "v_sub_nc_i32");
  check_suffix<u32(u32, u32)>(
      "v_add_u32", "clamp", [](u32 a, u32 b) { return clipped<u32>(wide{a} + b); }, "v_add_nc_u32");
  check_suffix<u32(u32, u32)>(
      "v_sub_u32", "clamp", [](u32 a, u32 b) { return clipped<u32>(wide{a} - b); }, "v_sub_nc_u32");
  check_suffix<i32(i32, i32)>(
      "v_add_i32", "clamp", [](i32 a, i32 b) { return clipped<i32>(wide{a} + b); }, "v_add_nc_i32");
  check_suffix<i32(i32, i32)>(
      "v_sub_i32", "clamp", [](i32 a, i32 b) { return clipped<i32>(wide{a} - b); }, "v_sub_nc_i32");
  check<u32(u32, u32, u32)>("v_xad_u32", [](u32 a, u32 b, u32 c) { return (a ^ b) + c; });
}

TEST_P(VectorInteger, shifts_use_the_low_bits_of_the_amount) {
  check<u32(u32, u32)>("v_lshlrev_b32", [](u32 a, u32 b) { return static_cast<u32>(u64{b} << (a % 32)); });
  check<u32(u32, u32)>("v_lshrrev_b32", [](u32 a, u32 b) { return b >> (a % 32); });
  check<i32(u32, i32)>("v_ashrrev_i32", [](u32 a, i32 b) { return static_cast<i32>(i64{b} >> (a % 32)); });
  check<u64(u32, u64)>("v_lshlrev_b64", [](u32 a, u64 b) { return b << (a % 64); });
  check<u64(u32, u64)>("v_lshrrev_b64", [](u32 a, u64 b) { return b >> (a % 64); });
  check<i64(u32, i64)>("v_ashrrev_i64", [](u32 a, i64 b) { return b >> (a % 64); });
  check<u32(u32, u32, u32)>("v_lshl_add_u32", [](u32 a, u32 b, u32 c) { return (a << (b % 32)) + c; });
  check<u32(u32, u32, u32)>("v_add_lshl_u32", [](u32 a, u32 b, u32 c) { return (a + b) << (c % 32); });
  check<u32(u32, u32, u32)>("v_lshl_or_b32", [](u32 a, u32 b, u32 c) { return (a << (b % 32)) | c; });
  check<u32(u32, u32, u32)>("v_alignbit_b32",
                            [](u32 a, u32 b, u32 c) { return c % 32 ? (a << (32 - c % 32)) | (b >> (c % 32)) : b; });
  check<u32(u32, u32, u32)>("v_alignbyte_b32", [](u32 a, u32 b, u32 c) {
    return c % 4 ? (a << (32 - 8 * (c % 4))) | (b >> (8 * (c % 4))) : b;
  });
  check<u32(u32, u32, u32)>("v_bfe_u32", [](u32 a, u32 b, u32 c) {
    u32 r = 0;
    for (u32 k = 0; k < c % 32; ++k)
      if (b % 32 + k < 32) r |= (a >> (b % 32 + k) & 1) << k;
    return r;
  });
  check<i32(i32, u32, u32)>("v_bfe_i32", [](i32 a, u32 b, u32 c) {
    u32 r = 0;
    for (u32 k = 0; k < 32 && c % 32; ++k)
      r |= static_cast<u32>((i64{a} >> std::min(b % 32 + std::min(k, c % 32 - 1), 31u)) & 1) << k;
    return static_cast<i32>(r);
  });
}

TEST_P(VectorInteger, minima_maxima_medians) {
  check<u32(u32, u32)>("v_min_u32", [](u32 a, u32 b) { return a < b ? a : b; });
  check<u32(u32, u32)>("v_max_u32", [](u32 a, u32 b) { return a > b ? a : b; });
  check<i32(i32, i32)>("v_min_i32", [](i32 a, i32 b) { return a < b ? a : b; });
  check<i32(i32, i32)>("v_max_i32", [](i32 a, i32 b) { return a > b ? a : b; });
  const auto sorted = [](auto a, auto b, auto c, int k) {
    decltype(a) x[] = {a, b, c};
    std::sort(x, x + 3);
    return x[k];
  };
  check<u32(u32, u32, u32)>("v_min3_u32", [&](u32 a, u32 b, u32 c) { return sorted(a, b, c, 0); });
  check<u32(u32, u32, u32)>("v_med3_u32", [&](u32 a, u32 b, u32 c) { return sorted(a, b, c, 1); });
  check<u32(u32, u32, u32)>("v_max3_u32", [&](u32 a, u32 b, u32 c) { return sorted(a, b, c, 2); });
  check<i32(i32, i32, i32)>("v_min3_i32", [&](i32 a, i32 b, i32 c) { return sorted(a, b, c, 0); });
  check<i32(i32, i32, i32)>("v_med3_i32", [&](i32 a, i32 b, i32 c) { return sorted(a, b, c, 1); });
  check<i32(i32, i32, i32)>("v_max3_i32", [&](i32 a, i32 b, i32 c) { return sorted(a, b, c, 2); });
}

TEST_P(VectorInteger, products) {
  check<u32(u32, u32)>("v_mul_lo_u32", [](u32 a, u32 b) { return static_cast<u32>(u64{a} * b); });
  check<u32(u32, u32)>("v_mul_hi_u32", [](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); });
  check<i32(i32, i32)>("v_mul_hi_i32", [](i32 a, i32 b) { return static_cast<i32>(i64{a} * b >> 32); });
  const auto low24 = [](u32 a) { return u64{a % (1u << 24)}; };
  const auto sign24 = [](u32 a) {
    i64 x = a % (1u << 24);
    return x >= 1 << 23 ? x - (1 << 24) : x;
  };
  check<u32(u32, u32)>("v_mul_u32_u24", [&](u32 a, u32 b) { return static_cast<u32>(low24(a) * low24(b)); });
  check<u32(u32, u32)>("v_mul_hi_u32_u24", [&](u32 a, u32 b) { return static_cast<u32>(low24(a) * low24(b) >> 32); });
  check<u32(u32, u32)>("v_mul_i32_i24", [&](u32 a, u32 b) { return static_cast<u32>(sign24(a) * sign24(b)); });
  check<u32(u32, u32)>("v_mul_hi_i32_i24", [&](u32 a, u32 b) { return static_cast<u32>(sign24(a) * sign24(b) >> 32); });
  check<u32(u32, u32, u32)>("v_mad_u32_u24",
                            [&](u32 a, u32 b, u32 c) { return static_cast<u32>(low24(a) * low24(b) + c); });
  check<u32(u32, u32, u32)>("v_mad_i32_i24",
                            [&](u32 a, u32 b, u32 c) { return static_cast<u32>(sign24(a) * sign24(b) + c); });
}

TEST_P(VectorInteger, bytes) {
  check<u32(u32, u32, u32)>("v_perm_b32", [](u32 a, u32 b, u32 c) {
    u32 r = 0;
    for (int k = 0; k < 4; ++k) {
      const u32 s = byte_of(c, k);
      u32 x = 0xff;
      if (s < 4)
        x = byte_of(b, static_cast<int>(s));
      else if (s < 8)
        x = byte_of(a, static_cast<int>(s) - 4);
      else if (s == 8)
        x = b & 0x8000 ? 0xff : 0;
      else if (s == 9)
        x = b >> 31 ? 0xff : 0;
      else if (s == 10)
        x = a & 0x8000 ? 0xff : 0;
      else if (s == 11)
        x = a >> 31 ? 0xff : 0;
      else if (s == 12)
        x = 0;
      r |= x << (8 * k);
    }
    return r;
  });
  check<u32(u32, u32, u32)>("v_lerp_u8", [](u32 a, u32 b, u32 c) {
    u32 r = 0;
    for (int k = 0; k < 4; ++k) r |= ((byte_of(a, k) + byte_of(b, k) + (byte_of(c, k) & 1)) / 2) << (8 * k);
    return r;
  });
  check<u32(u32, u32, u32)>("v_sad_u8", [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 4; ++k) c += distance(byte_of(a, k), byte_of(b, k));
    return c;
  });
  check<u32(u32, u32, u32)>("v_sad_hi_u8", [](u32 a, u32 b, u32 c) {
    u32 s = 0;
    for (int k = 0; k < 4; ++k) s += distance(byte_of(a, k), byte_of(b, k));
    return (s << 16) + c;
  });
  check<u32(u32, u32, u32)>("v_sad_u16", [](u32 a, u32 b, u32 c) {
    return distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16) + c;
  });
  check<u32(u32, u32, u32)>("v_sad_u32", [](u32 a, u32 b, u32 c) { return distance(a, b) + c; });
  check<u32(u32, u32, u32)>("v_msad_u8", [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 4; ++k)
      if (byte_of(b, k)) c += distance(byte_of(a, k), byte_of(b, k));
    return c;
  });
}

TEST_P(VectorInteger, sixteen_bits) {
  const auto rev = [](auto f) { return [f](u16 a, u16 b) { return f(b, a); }; };
  const auto plus = [](u16 a, u16 b) { return static_cast<u16>(a + b); };
  const auto minus = [](u16 a, u16 b) { return static_cast<u16>(a - b); };
  check<u16(u16, u16)>("v_add_u16", plus, "v_add_nc_u16");
  check<u16(u16, u16)>("v_sub_u16", minus, "v_sub_nc_u16");
  check<u16(u16, u16)>("v_subrev_u16", rev(minus));
  check<u16(u16, u16)>("v_mul_lo_u16", [](u16 a, u16 b) { return static_cast<u16>(u32{a} * b); });
  check<u16(u16, u16)>("v_lshlrev_b16", [](u16 a, u16 b) { return static_cast<u16>(u32{b} << (a % 16)); });
  check<u16(u16, u16)>("v_lshrrev_b16", [](u16 a, u16 b) { return static_cast<u16>(b >> (a % 16)); });
  check<i16(u16, i16)>("v_ashrrev_i16", [](u16 a, i16 b) { return static_cast<i16>(b >> (a % 16)); });
  check<u16(u16, u16)>("v_min_u16", [](u16 a, u16 b) { return std::min(a, b); });
  check<u16(u16, u16)>("v_max_u16", [](u16 a, u16 b) { return std::max(a, b); });
  check<i16(i16, i16)>("v_min_i16", [](i16 a, i16 b) { return std::min(a, b); });
  check<i16(i16, i16)>("v_max_i16", [](i16 a, i16 b) { return std::max(a, b); });
  check<u16(u16, u16, u16)>("v_mad_u16", [](u16 a, u16 b, u16 c) { return static_cast<u16>(u32{a} * b + c); });
  check<i16(i16, i16, i16)>("v_mad_i16", [](i16 a, i16 b, i16 c) { return static_cast<i16>(i32{a} * b + c); });
}

TEST_P(VectorInteger, packed_sixteen_bits) {
  const auto each = [](auto f) {
    return [f](u32 a, u32 b) {
      return u32{static_cast<u16>(f(static_cast<u16>(a), static_cast<u16>(b)))} |
             u32{static_cast<u16>(f(static_cast<u16>(a >> 16), static_cast<u16>(b >> 16)))} << 16;
    };
  };
  check<u32(u32, u32)>("v_pk_add_u16", each([](u16 a, u16 b) { return a + b; }));
  check<u32(u32, u32)>("v_pk_sub_i16", each([](u16 a, u16 b) { return a - b; }));
  check<u32(u32, u32)>("v_pk_mul_lo_u16", each([](u16 a, u16 b) { return u32{a} * b; }));
  check<u32(u32, u32)>("v_pk_min_i16",
                       each([](u16 a, u16 b) { return std::min(static_cast<i16>(a), static_cast<i16>(b)); }));
  check<u32(u32, u32)>("v_pk_max_u16", each([](u16 a, u16 b) { return std::max(a, b); }));
  check<u32(u32, u32)>("v_pk_lshlrev_b16", each([](u16 a, u16 b) { return u32{b} << (a % 16); }));
  check<u32(u32, u32)>("v_pk_ashrrev_i16", each([](u16 a, u16 b) { return static_cast<i16>(b) >> (a % 16); }));
  check_suffix<u32(u32, u32)>("v_pk_add_u16", "clamp", each([](u16 a, u16 b) { return std::min(a + b, 65535); }));
  check_suffix<u32(u32, u32)>("v_pk_add_u16", "op_sel:[1,0] op_sel_hi:[0,1]", [](u32 a, u32 b) {
    return (((a >> 16) + b) & 0xffff) | ((a & 0xffff) + (b >> 16)) << 16;
  });
}

TEST_P(VectorInteger, dot_products) {
  check<u32(u32, u32, u32)>("v_dot4_i32_i8", [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 4; ++k)
      c += static_cast<u32>(i32{static_cast<i8>(byte_of(a, k))} * static_cast<i8>(byte_of(b, k)));
    return c;
  });
  check<u32(u32, u32, u32)>("v_dot4_u32_u8", [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 4; ++k) c += byte_of(a, k) * byte_of(b, k);
    return c;
  });
  check<u32(u32, u32, u32)>("v_dot8_u32_u4", [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 8; ++k) c += (a >> (4 * k) & 15) * (b >> (4 * k) & 15);
    return c;
  });
  check<u32(u32, u32, u32)>("v_dot2_i32_i16", [](u32 a, u32 b, u32 c) {
    for (int k = 0; k < 2; ++k)
      c += static_cast<u32>(i32{static_cast<i16>(a >> 16 * k)} * static_cast<i16>(b >> 16 * k));
    return c;
  });
}

KERNCAP_FOR_ALL_TARGETS(VectorInteger);

}  // namespace
}  // namespace kerncap::softgpu::isa
