// What the proofs of vector instructions share: formulas of the tests, and checks beyond those of vector_check.h.
#pragma once

#include <gtest/gtest.h>

#include "softgpu/isa/half_reference.h"
#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {

using L = long double;

template <class T>
T smallest(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T>
T largest(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}
template <class T>
T middle(T a, T b, T c) {
  if (a != a || b != b || c != c) return smallest(smallest(a, b), c);
  T x[] = {a, b, c};
  std::sort(x, x + 3, [](T p, T q) { return p < q || (p == q && std::signbit(p) && !std::signbit(q)); });
  return x[1];
}
inline half narrow_half(L x) { return exact_half(x); }
inline float narrow(L x) { return static_cast<float>(x); }
inline u32 words(u32 low, u32 high) { return (low & 0xffff) | high << 16; }
inline half low_half(u32 x) { return {static_cast<u16>(x)}; }
inline half high_half(u32 x) { return {static_cast<u16>(x >> 16)}; }
inline float bfloat_value(u32 bits) { return std::bit_cast<float>(bits << 16); }
inline float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
// v_mad_f32 and its like: the product is rounded, denormals are zero.
inline float multiply_add(float a, float b, float c) {
  const float product = flush(narrow(L{flush(a)} * flush(b)));
  return flush(narrow(L{product} + flush(c)));
}
inline float legacy(float a, float b) { return a == 0 || b == 0 ? 0.0f : narrow(L{a} * b); }
inline float legacy_product(float a, float b, float) { return legacy(a, b); }
inline half mad_half(half a, half b, half c) {
  return narrow_half(value_of(narrow_half(value_of(a) * value_of(b))) + value_of(c));
}
inline i64 clip(L x, L low, L high) { return std::isnan(x) ? 0 : static_cast<i64>(std::clamp(x, low, high)); }
inline L even(L x) { return std::nearbyint(x); }

class VectorProofBase : public VectorCheck {
 protected:
  // The last round of each check has all lanes off.
  template <class Signature, class F>
  void check(const std::string& name, F expected, const std::string& other_name = "") {
    VectorCheck::check<Signature>(name, expected, other_name);
    bench.set_exec(bench.wave().all_lanes);
  }
  template <class Signature, class F>
  void check_suffix(const std::string& name, const std::string& suffix, F expected,
                    const std::string& other_name = "") {
    VectorCheck::check_suffix<Signature>(name, suffix, expected, other_name);
    bench.set_exec(bench.wave().all_lanes);
  }

  // The destination is a source too: F(a, b, old).
  template <class R, class A, class B, class F>
  void accumulate(const std::string& name, F expected, const std::string& suffix = "") {
    for (int round = 0; round < 6; ++round) {
      const u64 mask = round == 4 ? random() & bench.wave().all_lanes : round == 5 ? 0 : bench.wave().all_lanes;
      bench.set_exec(mask);
      std::vector<R> old(row_lanes);
      std::vector<A> a(row_lanes);
      std::vector<B> b(row_lanes);
      for (unsigned i = 0; i < row_lanes; ++i) {
        old[i] = interesting<R>(random), a[i] = interesting<A>(random), b[i] = interesting<B>(random);
        Lane<R>::store(bench.v(0), i, old[i]);
        Lane<A>::store(bench.v(8), i, a[i]);
        Lane<B>::store(bench.v(10), i, b[i]);
      }
      bool ran = false;
      for (const bool halves : {false, true}) {
        const std::string text = name + " " + registers<R>(0, 'v', halves) + ", " + registers<A>(8, 'v', halves) +
                                 ", " + registers<B>(10, 'v', halves) + suffix;
        if (!bench.run(text)) continue;
        ran = true;
        ASSERT_FALSE(bench.failed()) << bench.error().message;
        for (unsigned i = 0; i < bench.lanes(); ++i) {
          const R wanted = mask >> i & 1 ? expected(a[i], b[i], old[i]) : old[i];
          const R got = Lane<R>::load(bench.v(0), i);
          ASSERT_TRUE(same_result(got, wanted)) << text << " lane " << i;
        }
        break;
      }
      bench.set_exec(bench.wave().all_lanes);
      if (!ran) return;
    }
    ++checked;
  }
  // Results within one unit of a half's last place.
  template <class F>
  void near_half(const std::string& name, F exact, L low, L high) {
    for (unsigned i = 0; i < row_lanes; ++i)
      Lane<half>::store(bench.v(8), i, exact_half(low + (high - low) * static_cast<L>(i) / 64));
    if (!bench.run(name + " v0, v8") && !bench.run(name + " v0.l, v8.l")) return;
    ++checked;
    ASSERT_FALSE(bench.failed()) << bench.error().message;
    for (unsigned i = 0; i < bench.lanes(); ++i) {
      const L x = value_of(Lane<half>::load(bench.v(8), i)), wanted = exact(x);
      const L got = value_of(Lane<half>::load(bench.v(0), i));
      const L unit = std::ldexp(1.0L, std::max(std::ilogb(std::fabs(wanted)) - 10, -24));
      EXPECT_LE(std::fabs(got - wanted), unit) << name << " " << static_cast<double>(x);
    }
  }
};

}  // namespace kerncap::softgpu::isa
