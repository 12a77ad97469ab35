#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "arithmetic.h"

__global__ void scale(int* values, int count, int factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] *= factor;
}

int main(int argc, char** argv) {
  const int times = argc > 1 ? std::atoi(argv[1]) : 1;
  std::vector<int> host(1000);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<int>(i);
  int* values = nullptr;
  if (hipMalloc(reinterpret_cast<void**>(&values), host.size() * sizeof(int)) != hipSuccess) return 3;
  if (hipMemcpy(values, host.data(), host.size() * sizeof(int), hipMemcpyHostToDevice) != hipSuccess) return 3;
  for (int i = 0; i < times; ++i) scale<<<4, 256>>>(values, static_cast<int>(host.size()), 3);
  if (hipMemcpy(host.data(), values, host.size() * sizeof(int), hipMemcpyDeviceToHost) != hipSuccess) return 3;
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i] != expected(static_cast<int>(i), 3, times)) return 1;
  }
  std::puts("right");
  return hipFree(values) == hipSuccess ? 0 : 3;
}
