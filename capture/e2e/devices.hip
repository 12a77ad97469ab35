// A kernel on the second of two devices, with memory on both.
#include <hip/hip_runtime.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <vector>

__global__ void both(const uint32_t* first, uint32_t* second, uint32_t n, int peers) {
  const uint32_t i = threadIdx.x;
  if (i < n) second[i] = second[i] + (peers ? first[i] : i) + 1;
}

int main() {
  int devices = 0;
  if (hipGetDeviceCount(&devices) != hipSuccess || devices < 2) return 77;
  std::vector<uint32_t> values(256);
  for (uint32_t i = 0; i < 256; ++i) values[i] = i;
  uint32_t *first = nullptr, *second = nullptr;
  if (hipSetDevice(0) != hipSuccess || hipMalloc(reinterpret_cast<void**>(&first), 1024) != hipSuccess ||
      hipMemcpy(first, values.data(), 1024, hipMemcpyHostToDevice) != hipSuccess)
    return 1;
  if (hipSetDevice(1) != hipSuccess || hipMalloc(reinterpret_cast<void**>(&second), 1024) != hipSuccess ||
      hipMemcpy(second, values.data(), 1024, hipMemcpyHostToDevice) != hipSuccess)
    return 1;
  const int peers = hipDeviceEnablePeerAccess(0, 0) == hipSuccess;
  std::printf("first %" PRIu64 "\nsecond %" PRIu64 "\n", uint64_t(uintptr_t(first)), uint64_t(uintptr_t(second)));
  both<<<1, 256>>>(first, second, 256, peers);
  if (hipDeviceSynchronize() != hipSuccess || hipMemcpy(values.data(), second, 1024, hipMemcpyDeviceToHost) != hipSuccess)
    return 1;
  for (uint32_t i = 0; i < 256; ++i)
    if (values[i] != 2 * i + 1) return 1;
  return 0;
}
