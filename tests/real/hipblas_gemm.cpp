// Matrix products through hipBLAS, of each of its types: the same results as the host's, exactly, because the numbers
// are small integers.
#include <hip/hip_runtime_api.h>
#include <hipblas/hipblas.h>

#include <complex>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

#define CHECK(call)                                                                                                  \
  do {                                                                                                               \
    if (const auto status = (call); static_cast<int>(status) != 0) {                                                 \
      std::fprintf(stderr, "hipblas_gemm: %s (line %d) fails with %d\n", #call, __LINE__, static_cast<int>(status)); \
      std::exit(1);                                                                                                  \
    }                                                                                                                \
  } while (false)

constexpr int m = 65, n = 33, k = 40;

template <typename T>
T number(unsigned& state) {
  const auto part = [&] { return static_cast<int>((state = state * 1664525u + 1013904223u) >> 16 & 3) - 1; };
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    const auto real = part();
    return T(real, part());
  } else {
    return static_cast<T>(part());
  }
}

template <typename T, typename Call>
bool products(const char* name, Call call) {
  unsigned state = 3;
  std::vector<T> a(m * k), b(k * n), c(m * n);
  for (T& value : a) value = number<T>(state);
  for (T& value : b) value = number<T>(state);
  T *device_a = nullptr, *device_b = nullptr, *device_c = nullptr;
  CHECK(hipMalloc(reinterpret_cast<void**>(&device_a), a.size() * sizeof(T)));
  CHECK(hipMalloc(reinterpret_cast<void**>(&device_b), b.size() * sizeof(T)));
  CHECK(hipMalloc(reinterpret_cast<void**>(&device_c), c.size() * sizeof(T)));
  CHECK(hipMemcpy(device_a, a.data(), a.size() * sizeof(T), hipMemcpyHostToDevice));
  CHECK(hipMemcpy(device_b, b.data(), b.size() * sizeof(T), hipMemcpyHostToDevice));
  CHECK(hipMemset(device_c, 0, c.size() * sizeof(T)));
  const T one = static_cast<T>(1), zero = static_cast<T>(0);
  CHECK(call(&one, device_a, device_b, &zero, device_c));
  CHECK(hipMemcpy(c.data(), device_c, c.size() * sizeof(T), hipMemcpyDeviceToHost));
  bool good = true;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      T sum = static_cast<T>(0);
      for (int at = 0; at < k; ++at) sum += a[row + at * m] * b[at + column * k];
      good &= sum == c[row + column * m];
    }
  }
  for (T* memory : {device_a, device_b, device_c}) CHECK(hipFree(memory));
  std::printf("%-12s %s\n", name, good ? "agrees" : "DIFFERS");
  return good;
}

}  // namespace

int main() {
  hipblasHandle_t handle = nullptr;
  CHECK(hipblasCreate(&handle));
  constexpr auto plain = HIPBLAS_OP_N;
  bool good = true;
  good &= products<float>("f32", [&](auto* one, auto* a, auto* b, auto* zero, auto* c) {
    return hipblasSgemm(handle, plain, plain, m, n, k, one, a, m, b, k, zero, c, m);
  });
  good &= products<double>("f64", [&](auto* one, auto* a, auto* b, auto* zero, auto* c) {
    return hipblasDgemm(handle, plain, plain, m, n, k, one, a, m, b, k, zero, c, m);
  });
  good &= products<_Float16>("f16", [&](auto* one, auto* a, auto* b, auto* zero, auto* c) {
    const auto half = [](auto* pointer) { return reinterpret_cast<const hipblasHalf*>(pointer); };
    return hipblasHgemm(handle, plain, plain, m, n, k, half(one), half(a), m, half(b), k, half(zero),
                        reinterpret_cast<hipblasHalf*>(c), m);
  });
  good &= products<std::complex<float>>("complex-f32", [&](auto* one, auto* a, auto* b, auto* zero, auto* c) {
    const auto pair = [](auto* pointer) { return reinterpret_cast<const hipblasComplex*>(pointer); };
    return hipblasCgemm(handle, plain, plain, m, n, k, pair(one), pair(a), m, pair(b), k, pair(zero),
                        reinterpret_cast<hipblasComplex*>(c), m);
  });
  good &= products<std::complex<double>>("complex-f64", [&](auto* one, auto* a, auto* b, auto* zero, auto* c) {
    const auto pair = [](auto* pointer) { return reinterpret_cast<const hipblasDoubleComplex*>(pointer); };
    return hipblasZgemm(handle, plain, plain, m, n, k, pair(one), pair(a), m, pair(b), k, pair(zero),
                        reinterpret_cast<hipblasDoubleComplex*>(c), m);
  });
  CHECK(hipblasDestroy(handle));
  std::puts(good ? "all good" : "something differs");
  return good ? 0 : 1;
}
