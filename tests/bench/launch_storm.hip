// Launches a tiny kernel many times; prints the host's microseconds for each launch. usage: launch_storm N
#include <hip/hip_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void increment(int* p) {
  if (threadIdx.x == 0) p[0]++;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 100000;
  int* p = nullptr;
  if (hipMalloc(reinterpret_cast<void**>(&p), 4) != hipSuccess || hipMemset(p, 0, 4) != hipSuccess) return 1;
  increment<<<1, 64>>>(p);
  if (hipDeviceSynchronize() != hipSuccess) return 1;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < n; ++i) increment<<<1, 64>>>(p);
  if (hipDeviceSynchronize() != hipSuccess) return 1;
  const auto time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  int result = 0;
  if (hipMemcpy(&result, p, 4, hipMemcpyDeviceToHost) != hipSuccess || result != n + 1) return 1;
  std::printf("%.4f\n", time / n);
  return 0;
}
