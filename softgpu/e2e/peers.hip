// Two devices in one process: each has its own memory, peers copy, and a kernel reads its peer's memory.
#include <vector>

#include "check.h"

__global__ void increment(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x] + 1; }

int main() {
  int devices = 0;
  HIP_OK(hipGetDeviceCount(&devices));
  EXPECT(devices == 2);
  const size_t bytes = 64 * sizeof(int);
  int* memory[2] = {};
  for (int device = 0; device < 2; ++device) {
    HIP_OK(hipSetDevice(device));
    HIP_OK(hipMalloc(&memory[device], bytes));
  }
  std::vector<int> host(64), result(64);
  for (int i = 0; i < 64; ++i) host[i] = i * i;
  HIP_OK(hipSetDevice(0));
  HIP_OK(hipMemcpy(memory[0], host.data(), bytes, hipMemcpyHostToDevice));
  HIP_OK(hipMemcpyPeer(memory[1], 1, memory[0], 0, bytes));
  HIP_OK(hipSetDevice(1));
  increment<<<1, 64>>>(memory[1], memory[1]);
  HIP_OK(hipMemcpy(result.data(), memory[1], bytes, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) EXPECT(result[i] == i * i + 1);
  int possible = 0;
  HIP_OK(hipDeviceCanAccessPeer(&possible, 1, 0));
  if (possible != 0) {
    HIP_OK(hipDeviceEnablePeerAccess(0, 0));
    increment<<<1, 64>>>(memory[0], memory[1]);
    HIP_OK(hipMemcpy(result.data(), memory[1], bytes, hipMemcpyDeviceToHost));
    for (int i = 0; i < 64; ++i) EXPECT(result[i] == i * i + 1);
  }
  std::printf("peer access %s, all good\n", possible != 0 ? "yes" : "no");
}
