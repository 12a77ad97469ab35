// Launches far more kernels than a queue's ring has places, without waiting, while one of the first is being captured for
// long (there is much memory to read). usage: launch_flood LAUNCHES MIB
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void increment(int* p) {
  if (threadIdx.x == 0) p[0]++;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 40000;
  const size_t size = size_t(argc > 2 ? std::atoi(argv[2]) : 512) << 20;
  int *p = nullptr, *large = nullptr;
  if (hipMalloc(reinterpret_cast<void**>(&p), 4) != hipSuccess || hipMemset(p, 0, 4) != hipSuccess) return 1;
  if (hipMalloc(reinterpret_cast<void**>(&large), size) != hipSuccess) return 77;
  for (int i = 0; i < n; ++i) increment<<<1, 64>>>(p);
  int result = 0;
  if (hipDeviceSynchronize() != hipSuccess || hipMemcpy(&result, p, 4, hipMemcpyDeviceToHost) != hipSuccess) return 1;
  std::printf("result %d\n", result);
  return result == n ? 0 : 1;
}
