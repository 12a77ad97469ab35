// Allocations, copies, streams and events.
#include <cstring>
#include <numeric>
#include <vector>

#include "check.h"

static void copies() {
  const size_t count = 1 << 20, bytes = count * sizeof(int);
  std::vector<int> from(count), to(count);
  std::iota(from.begin(), from.end(), 3);
  int *first = nullptr, *second = nullptr;
  HIP_OK(hipMalloc(&first, bytes));
  HIP_OK(hipMalloc(&second, bytes));
  HIP_OK(hipMemcpy(first, from.data(), bytes, hipMemcpyHostToDevice));
  HIP_OK(hipMemcpy(second, first, bytes, hipMemcpyDeviceToDevice));
  HIP_OK(hipMemcpy(to.data(), second, bytes, hipMemcpyDeviceToHost));
  EXPECT(from == to);
  HIP_OK(hipMemset(first, 0x5a, bytes));
  HIP_OK(hipMemcpy(to.data(), first, bytes, hipMemcpyDeviceToHost));
  for (const int value : to) EXPECT(value == 0x5a5a5a5a);
  HIP_OK(hipFree(first));
  HIP_OK(hipFree(second));
}

static void pitched() {
  const size_t width = 100, height = 37;
  char* device = nullptr;
  size_t pitch = 0;
  HIP_OK(hipMallocPitch(reinterpret_cast<void**>(&device), &pitch, width, height));
  std::vector<char> from(width * height), to(width * height);
  for (size_t at = 0; at < from.size(); ++at) from[at] = static_cast<char>(at * 13);
  HIP_OK(hipMemcpy2D(device, pitch, from.data(), width, width, height, hipMemcpyHostToDevice));
  HIP_OK(hipMemcpy2D(to.data(), width, device, pitch, width, height, hipMemcpyDeviceToHost));
  EXPECT(from == to);
  HIP_OK(hipFree(device));
}

static void streams() {
  const size_t count = 1 << 18, bytes = count * sizeof(float);
  float *pinned = nullptr, *device = nullptr;
  HIP_OK(hipHostMalloc(&pinned, 2 * bytes));
  HIP_OK(hipMalloc(&device, bytes));
  for (size_t at = 0; at < count; ++at) pinned[at] = static_cast<float>(at);
  hipStream_t up = nullptr, down = nullptr;
  hipEvent_t start = nullptr, ready = nullptr, end = nullptr;
  HIP_OK(hipStreamCreate(&up));
  HIP_OK(hipStreamCreate(&down));
  HIP_OK(hipEventCreate(&start));
  HIP_OK(hipEventCreate(&ready));
  HIP_OK(hipEventCreate(&end));
  HIP_OK(hipEventRecord(start, up));
  HIP_OK(hipMemcpyAsync(device, pinned, bytes, hipMemcpyHostToDevice, up));
  HIP_OK(hipEventRecord(ready, up));
  HIP_OK(hipStreamWaitEvent(down, ready, 0));
  HIP_OK(hipMemcpyAsync(pinned + count, device, bytes, hipMemcpyDeviceToHost, down));
  HIP_OK(hipEventRecord(end, down));
  HIP_OK(hipEventSynchronize(end));
  EXPECT(std::memcmp(pinned, pinned + count, bytes) == 0);
  float milliseconds = -1;
  HIP_OK(hipEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 0 && milliseconds < 60000);
  bool called = false;
  HIP_OK(hipStreamAddCallback(down, [](hipStream_t, hipError_t, void* flag) { *static_cast<bool*>(flag) = true; }, &called, 0));
  HIP_OK(hipStreamSynchronize(down));
  EXPECT(called);
  HIP_OK(hipEventDestroy(start));
  HIP_OK(hipEventDestroy(ready));
  HIP_OK(hipEventDestroy(end));
  HIP_OK(hipStreamDestroy(up));
  HIP_OK(hipStreamDestroy(down));
  HIP_OK(hipHostFree(pinned));
  HIP_OK(hipFree(device));
}

static void limits() {
  size_t free_bytes = 0, total = 0;
  HIP_OK(hipMemGetInfo(&free_bytes, &total));
  EXPECT(total >= (size_t{64} << 20) && free_bytes <= total);
  void* too_much = nullptr;
  EXPECT(hipMalloc(&too_much, total + (size_t{1} << 30)) == hipErrorOutOfMemory);
  // What was freed can be had again, many times over.
  for (int round = 0; round < 20; ++round) {
    void* most = nullptr;
    HIP_OK(hipMalloc(&most, total / 2));
    HIP_OK(hipFree(most));
  }
}

int main() {
  copies();
  pitched();
  streams();
  limits();
  std::puts("all good");
}
