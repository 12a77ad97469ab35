// Matrix products through rocBLAS, of every type that it has, with every combination of transposed operands, compared
// with the host: exactly for small integers, and to the type's precision for fractions.
//   gemm [TYPE ...]       without arguments: all of them
#include <hip/hip_runtime_api.h>
#include <rocblas/rocblas.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    if (const auto status = (call); static_cast<int>(status) != 0) {                                         \
      std::fprintf(stderr, "gemm: %s (line %d) fails with %d\n", #call, __LINE__, static_cast<int>(status)); \
      std::exit(1);                                                                                          \
    }                                                                                                        \
  } while (false)

using Number = std::complex<double>;

// bfloat16 is the upper half of a float.
struct Bfloat16 {
  std::uint16_t bits;
};

template <typename T>
T to(Number value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    const float number = static_cast<float>(value.real());
    std::uint32_t bits;
    std::memcpy(&bits, &number, 4);
    return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return T(value);
  } else {
    return static_cast<T>(value.real());
  }
}
template <typename T>
Number from(T value) {
  if constexpr (std::is_same_v<T, Bfloat16>) {
    const std::uint32_t bits = std::uint32_t{value.bits} << 16;
    float number;
    std::memcpy(&number, &bits, 4);
    return number;
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return Number(value);
  } else {
    return static_cast<double>(value);
  }
}

unsigned random_state = 1;
unsigned random_bits() { return (random_state = random_state * 1664525u + 1013904223u) >> 8; }

// -1, 0 and 1: every sum is exact in every type. Or fractions, which are rounded.
Number random_number(bool integers, bool complex) {
  const auto part = [&] {
    return integers ? static_cast<int>(random_bits() % 3) - 1 : (random_bits() % 4001) / 2000.0 - 1;
  };
  const double real = part();
  return {real, complex ? part() : 0};
}

template <typename T>
T* upload(const std::vector<T>& values) {
  T* device = nullptr;
  CHECK(hipMalloc(reinterpret_cast<void**>(&device), values.size() * sizeof(T)));
  CHECK(hipMemcpy(device, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
  return device;
}

struct Size {
  int m, n, k;
};

// In: the operands; Out: the result; Scalar: alpha and beta, which have the type that is computed with.
template <typename In, typename Out, typename Scalar>
bool products(rocblas_handle handle, const char* name, rocblas_datatype in, rocblas_datatype out,
              rocblas_datatype compute, double precision) {
  constexpr bool complex = std::is_same_v<In, std::complex<float>> || std::is_same_v<In, std::complex<double>>;
  double worst = 0;
  int cases = 0;
  for (const Size size : {Size{128, 128, 64}, Size{37, 29, 52}, Size{64, 1, 96}}) {
    for (const auto transpose_a :
         {rocblas_operation_none, rocblas_operation_transpose, rocblas_operation_conjugate_transpose}) {
      for (const auto transpose_b : {rocblas_operation_none, rocblas_operation_transpose}) {
        for (const bool integers : {true, false}) {
          if (!complex && transpose_a == rocblas_operation_conjugate_transpose) continue;
          if (std::is_integral_v<In> && !integers) continue;
          const bool ta = transpose_a != rocblas_operation_none, tb = transpose_b != rocblas_operation_none;
          const int lda = ta ? size.k : size.m, ldb = tb ? size.n : size.k, ldc = size.m;
          std::vector<In> a(static_cast<std::size_t>(size.m) * size.k), b(static_cast<std::size_t>(size.k) * size.n);
          std::vector<Out> c(static_cast<std::size_t>(size.m) * size.n), result(c.size());
          for (In& value : a) value = to<In>(random_number(integers, complex));
          for (In& value : b) value = to<In>(random_number(integers, complex));
          for (Out& value : c) value = to<Out>(random_number(integers, complex));
          const Scalar alpha = to<Scalar>(2), beta = to<Scalar>(3);
          In *device_a = upload(a), *device_b = upload(b);
          Out *device_c = upload(c), *device_d = upload(result);
          CHECK(rocblas_gemm_ex(handle, transpose_a, transpose_b, size.m, size.n, size.k, &alpha, device_a, in, lda,
                                device_b, in, ldb, &beta, device_c, out, ldc, device_d, out, ldc, compute,
                                rocblas_gemm_algo_standard, 0, 0));
          CHECK(hipMemcpy(result.data(), device_d, result.size() * sizeof(Out), hipMemcpyDeviceToHost));
          for (void* memory : {static_cast<void*>(device_a), static_cast<void*>(device_b), static_cast<void*>(device_c),
                               static_cast<void*>(device_d)})
            CHECK(hipFree(memory));
          ++cases;
          for (int row = 0; row < size.m; ++row) {
            for (int column = 0; column < size.n; ++column) {
              Number sum = 0;
              double scale = 0;
              for (int at = 0; at < size.k; ++at) {
                Number left = from(ta ? a[at + static_cast<std::size_t>(row) * lda]
                                      : a[row + static_cast<std::size_t>(at) * lda]);
                if (transpose_a == rocblas_operation_conjugate_transpose) left = std::conj(left);
                const Number right = from(tb ? b[column + static_cast<std::size_t>(at) * ldb]
                                             : b[at + static_cast<std::size_t>(column) * ldb]);
                sum += left * right;
                scale += std::abs(left * right);
              }
              const std::size_t at = row + static_cast<std::size_t>(column) * ldc;
              const Number expected = 2.0 * sum + 3.0 * from(c[at]);
              const double difference = std::abs(from(result[at]) - expected);
              const double relative = integers ? (difference == 0 ? 0 : 1e9) : difference / (2 * scale + 3);
              if (!(relative <= worst)) worst = std::isfinite(relative) ? relative : 1e9;
            }
          }
        }
      }
    }
  }
  const bool good = worst <= precision;
  std::printf("%-24s %2d products, relative error at most %.1e (%.0e allowed): %s\n", name, cases, worst, precision,
              good ? "agrees" : "DIFFERS");
  return good;
}

}  // namespace

int main(int count, char** arguments) {
  rocblas_handle handle = nullptr;
  CHECK(rocblas_create_handle(&handle));
  const auto wanted = [&](const char* name) {
    if (count < 2) return true;
    for (int at = 1; at < count; ++at)
      if (std::string(name) == arguments[at]) return true;
    return false;
  };
  bool good = true;
  int types = 0;
  const auto check = [&]<typename In, typename Out, typename Scalar>(const char* name, In, Out, Scalar,
                                                                     rocblas_datatype in, rocblas_datatype out,
                                                                     rocblas_datatype compute, double precision) {
    if (!wanted(name)) return;
    ++types;
    good &= products<In, Out, Scalar>(handle, name, in, out, compute, precision);
    std::fflush(stdout);
  };
  using Half = _Float16;
  constexpr double f16 = 2e-3, bf16 = 1e-2, f32 = 1e-6, f64 = 1e-14;
  check("f32", float{}, float{}, float{}, rocblas_datatype_f32_r, rocblas_datatype_f32_r, rocblas_datatype_f32_r, f32);
  check("f64", double{}, double{}, double{}, rocblas_datatype_f64_r, rocblas_datatype_f64_r, rocblas_datatype_f64_r,
        f64);
  check("complex-f32", std::complex<float>{}, std::complex<float>{}, std::complex<float>{}, rocblas_datatype_f32_c,
        rocblas_datatype_f32_c, rocblas_datatype_f32_c, f32);
  check("complex-f64", std::complex<double>{}, std::complex<double>{}, std::complex<double>{}, rocblas_datatype_f64_c,
        rocblas_datatype_f64_c, rocblas_datatype_f64_c, f64);
  check("f16", Half{}, Half{}, Half{}, rocblas_datatype_f16_r, rocblas_datatype_f16_r, rocblas_datatype_f16_r, 2 * f16);
  check("f16-sum-f32", Half{}, Half{}, float{}, rocblas_datatype_f16_r, rocblas_datatype_f16_r, rocblas_datatype_f32_r,
        f16);
  check("f16-result-f32", Half{}, float{}, float{}, rocblas_datatype_f16_r, rocblas_datatype_f32_r,
        rocblas_datatype_f32_r, f32);
  check("bf16-sum-f32", Bfloat16{}, Bfloat16{}, float{}, rocblas_datatype_bf16_r, rocblas_datatype_bf16_r,
        rocblas_datatype_f32_r, bf16);
  check("bf16-result-f32", Bfloat16{}, float{}, float{}, rocblas_datatype_bf16_r, rocblas_datatype_f32_r,
        rocblas_datatype_f32_r, f32);
  check("i8-result-i32", std::int8_t{}, std::int32_t{}, std::int32_t{}, rocblas_datatype_i8_r, rocblas_datatype_i32_r,
        rocblas_datatype_i32_r, 0);
  CHECK(rocblas_destroy_handle(handle));
  if (types == 0) {
    std::fprintf(stderr, "gemm: no such type\n");
    return 2;
  }
  std::puts(good ? "all good" : "something differs");
  return good ? 0 : 1;
}
