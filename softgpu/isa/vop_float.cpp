// f32 and f64 vector arithmetic.
#include "softgpu/isa/float_rules.h"
#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {
namespace {

constexpr unsigned accumulates = instruction_reads_destination;

// v_mad and v_mac round the product and treat denormals as zero.
float flushed(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }
float mad(float a, float b, float c) { return flushed(flushed(flushed(a) * flushed(b)) + flushed(c)); }
// "Legacy" multiplication: anything times zero is zero.
float legacy_multiply(float a, float b) { return a == 0.0f || b == 0.0f ? 0.0f : a * b; }

template <class T>
T fraction(T x) {
  // The largest value below one bounds the result, as for tiny negative numbers.
  constexpr T below_one = sizeof(T) == 4 ? T(0x1.fffffep-1) : T(0x1.fffffffffffffp-1);
  if (std::isinf(x)) return std::numeric_limits<T>::quiet_NaN();
  const T result = x - std::floor(x);
  return result < below_one || std::isnan(result) ? result : below_one;
}
// Whole revolutions are exact, so that integers give exactly 0 and 1.
double part_of_revolution(float x) { return static_cast<double>(x) - __builtin_roundeven(static_cast<double>(x)); }
// sin and cos take revolutions; outside of +-256 the hardware gives 0 and 1.
float sine(float x) {
  if (std::isinf(x) || std::isnan(x)) return std::numeric_limits<float>::quiet_NaN();
  if (std::fabs(x) > 256.0f) return 0.0f;
  return static_cast<float>(std::sin(part_of_revolution(x) * 6.283185307179586476925));
}
float cosine(float x) {
  if (std::isinf(x) || std::isnan(x)) return std::numeric_limits<float>::quiet_NaN();
  if (std::fabs(x) > 256.0f) return 1.0f;
  return static_cast<float>(std::cos(part_of_revolution(x) * 6.283185307179586476925));
}
template <class T>
i32 exponent_of(T x) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return 0;
  int e = 0;
  static_cast<void>(std::frexp(x, &e));
  return e;
}
template <class T>
T mantissa_of(T x) {
  if (std::isnan(x) || std::isinf(x)) return x;
  int e = 0;
  return std::frexp(x, &e);
}
double scale_exponent(double x, i32 e) { return std::ldexp(x, e); }
float scale_exponent(float x, i32 e) { return std::ldexp(x, e); }

// Cube map face and coordinates (v_cube*): the major axis is the largest magnitude, z before y before x.
enum class Axis { x, y, z };
Axis major_axis(float x, float y, float z) {
  if (std::fabs(z) >= std::fabs(x) && std::fabs(z) >= std::fabs(y)) return Axis::z;
  return std::fabs(y) >= std::fabs(x) ? Axis::y : Axis::x;
}
float cube_face(float x, float y, float z) {
  switch (major_axis(x, y, z)) {
    case Axis::z:
      return z < 0 ? 5.0f : 4.0f;
    case Axis::y:
      return y < 0 ? 3.0f : 2.0f;
    default:
      return x < 0 ? 1.0f : 0.0f;
  }
}
float cube_major(float x, float y, float z) {
  switch (major_axis(x, y, z)) {
    case Axis::z:
      return 2.0f * z;
    case Axis::y:
      return 2.0f * y;
    default:
      return 2.0f * x;
  }
}
float cube_s(float x, float y, float z) {
  switch (major_axis(x, y, z)) {
    case Axis::z:
      return z < 0 ? -x : x;
    case Axis::y:
      return x;
    default:
      return x < 0 ? z : -z;
  }
}
float cube_t(float x, float y, float z) {
  switch (major_axis(x, y, z)) {
    case Axis::z:
      return -y;
    case Axis::y:
      return y < 0 ? -z : z;
    default:
      return -y;
  }
}

}  // namespace

std::span<const Instruction> float_instructions() {
  using F1 = float(float);
  using F2 = float(float, float);
  using F3 = float(float, float, float);
  using D1 = double(double);
  using D2 = double(double, double);
  using D3 = double(double, double, double);
  static const auto* table = new std::vector<Instruction>{
      lanewise<F2>([](float a, float b) { return a + b; }, "v_add_f32"),
      lanewise<F2>([](float a, float b) { return a - b; }, "v_sub_f32"),
      lanewise<F2>([](float a, float b) { return b - a; }, "v_subrev_f32"),
      lanewise<F2>([](float a, float b) { return a * b; }, "v_mul_f32"),
      lanewise<F2>([](float a, float b) { return legacy_multiply(a, b); }, "v_mul_legacy_f32"),
      lanewise<F2>([](float a, float b) { return legacy_multiply(a, b); }, "v_mul_dx9_zero_f32"),
      lanewise<F2>([](float a, float b) { return minimum(a, b); }, "v_min_f32"),
      lanewise<F2>([](float a, float b) { return maximum(a, b); }, "v_max_f32"),
      lanewise<F3>([](float a, float b, float c) { return minimum(minimum(a, b), c); }, "v_min3_f32"),
      lanewise<F3>([](float a, float b, float c) { return maximum(maximum(a, b), c); }, "v_max3_f32"),
      lanewise<F3>([](float a, float b, float c) { return median(a, b, c); }, "v_med3_f32"),
      lanewise<F3>([](float a, float b, float c) { return minimum(maximum(a, b), c); }, "v_maxmin_f32"),
      lanewise<F3>([](float a, float b, float c) { return maximum(minimum(a, b), c); }, "v_minmax_f32"),
      lanewise<F3>([](float a, float b, float c) { return std::fma(a, b, c); }, "v_fma_f32"),
      lanewise<F3>([](float a, float b, float c) { return std::fma(a, b, c); }, "v_fmac_f32", accumulates),
      lanewise<F3>([](float a, float b, float c) { return std::fma(a, b, c); }, "v_fmaak_f32"),
      lanewise<F3>([](float a, float k, float b) { return std::fma(a, k, b); }, "v_fmamk_f32"),
      lanewise<F3>([](float a, float b, float c) { return mad(a, b, c); }, "v_mad_f32"),
      lanewise<F3>([](float a, float b, float c) { return mad(a, b, c); }, "v_mac_f32", accumulates),
      lanewise<F3>([](float a, float b, float c) { return mad(a, b, c); }, "v_madak_f32"),
      lanewise<F3>([](float a, float k, float b) { return mad(a, k, b); }, "v_madmk_f32"),
      lanewise<F3>([](float a, float b, float c) { return legacy_multiply(a, b) + c; }, "v_mad_legacy_f32"),
      lanewise<F3>([](float a, float b, float c) { return a == 0.0f || b == 0.0f ? c : std::fma(a, b, c); },
                   "v_fma_dx9_zero_f32"),
      lanewise<F3>([](float a, float b, float c) { return a == 0.0f || b == 0.0f ? c : std::fma(a, b, c); },
                   "v_fmac_dx9_zero_f32", accumulates),
      lanewise<F3>([](float a, float b, float c) { return legacy_multiply(a, b) + c; }, "v_mac_legacy_f32",
                   accumulates),
      lanewise<F1>([](float a) { return 1.0f / a; }, "v_rcp_f32"),
      lanewise<F1>([](float a) { return 1.0f / a; }, "v_rcp_iflag_f32"),
      lanewise<F1>([](float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }, "v_rsq_f32"),
      lanewise<F1>([](float a) { return std::sqrt(a); }, "v_sqrt_f32"),
      lanewise<F1>([](float a) { return std::exp2(a); }, "v_exp_f32"),
      lanewise<F1>([](float a) { return std::log2(a); }, "v_log_f32"),
      lanewise<F1>([](float a) { return std::exp2(a); }, "v_exp_legacy_f32"),
      lanewise<F1>([](float a) { return std::log2(a); }, "v_log_legacy_f32"),
      lanewise<F1>([](float a) { return sine(a); }, "v_sin_f32"),
      lanewise<F1>([](float a) { return cosine(a); }, "v_cos_f32"),
      lanewise<F1>([](float a) { return std::floor(a); }, "v_floor_f32"),
      lanewise<F1>([](float a) { return std::ceil(a); }, "v_ceil_f32"),
      lanewise<F1>([](float a) { return std::trunc(a); }, "v_trunc_f32"),
      lanewise<F1>([](float a) { return round_even(a); }, "v_rndne_f32"),
      lanewise<F1>([](float a) { return fraction(a); }, "v_fract_f32"),
      lanewise<float(float, i32)>([](float a, i32 e) { return scale_exponent(a, e); }, "v_ldexp_f32"),
      lanewise<i32(float)>([](float a) { return exponent_of(a); }, "v_frexp_exp_i32_f32"),
      lanewise<F1>([](float a) { return mantissa_of(a); }, "v_frexp_mant_f32"),
      lanewise<F3>([](float a, float b, float c) { return divide_fixup(a, b, c); }, "v_div_fixup_f32"),
      lanewise<F3>([](float a, float b, float c) { return cube_face(a, b, c); }, "v_cubeid_f32"),
      lanewise<F3>([](float a, float b, float c) { return cube_major(a, b, c); }, "v_cubema_f32"),
      lanewise<F3>([](float a, float b, float c) { return cube_s(a, b, c); }, "v_cubesc_f32"),
      lanewise<F3>([](float a, float b, float c) { return cube_t(a, b, c); }, "v_cubetc_f32"),
      lanewise<float(float, float, float)>(
          [](float a, float b, float c) {
            // v_mullit: like legacy multiplication, with -FLT_MAX where the third is not positive or a NaN is around.
            constexpr float lowest = std::numeric_limits<float>::lowest();
            if (b == lowest || b == -std::numeric_limits<float>::infinity() || std::isnan(b) || c <= 0.0f ||
                std::isnan(c))
              return lowest;
            return legacy_multiply(a, b);
          },
          "v_mullit_f32"),
      // f64
      lanewise<D2>([](double a, double b) { return a + b; }, "v_add_f64"),
      lanewise<D2>([](double a, double b) { return a * b; }, "v_mul_f64"),
      lanewise<D2>([](double a, double b) { return minimum(a, b); }, "v_min_f64"),
      lanewise<D2>([](double a, double b) { return maximum(a, b); }, "v_max_f64"),
      lanewise<D3>([](double a, double b, double c) { return std::fma(a, b, c); }, "v_fma_f64"),
      lanewise<D3>([](double a, double b, double c) { return std::fma(a, b, c); }, "v_fmac_f64", accumulates),
      lanewise<D1>([](double a) { return 1.0 / a; }, "v_rcp_f64"),
      lanewise<D1>([](double a) { return 1.0 / std::sqrt(a); }, "v_rsq_f64"),
      lanewise<D1>([](double a) { return std::sqrt(a); }, "v_sqrt_f64"),
      lanewise<D1>([](double a) { return std::floor(a); }, "v_floor_f64"),
      lanewise<D1>([](double a) { return std::ceil(a); }, "v_ceil_f64"),
      lanewise<D1>([](double a) { return std::trunc(a); }, "v_trunc_f64"),
      lanewise<D1>([](double a) { return round_even(a); }, "v_rndne_f64"),
      lanewise<D1>([](double a) { return fraction(a); }, "v_fract_f64"),
      lanewise<double(double, i32)>([](double a, i32 e) { return scale_exponent(a, e); }, "v_ldexp_f64"),
      lanewise<i32(double)>([](double a) { return exponent_of(a); }, "v_frexp_exp_i32_f64"),
      lanewise<D1>([](double a) { return mantissa_of(a); }, "v_frexp_mant_f64"),
      lanewise<D3>([](double a, double b, double c) { return divide_fixup(a, b, c); }, "v_div_fixup_f64"),
      lanewise<double(double, u32)>([](double a, u32 b) { return trigonometric_preoperation(a, b); },
                                    "v_trig_preop_f64"),
  };
  return *table;
}

}  // namespace kerncap::softgpu::isa
