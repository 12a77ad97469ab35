// Five launches of one kernel, some of them in ROCTX ranges: dispatch 0 before any, 1 and 2 in "step 1" (2 nested deeper),
// 3 in the started range "whole", 4 after all. Each adds 1.
#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" int roctxRangePushA(const char*);
extern "C" int roctxRangePop();
extern "C" uint64_t roctxRangeStartA(const char*);
extern "C" void roctxRangeStop(uint64_t);
extern "C" int roctx_stand_in_calls();

__global__ void increment(uint32_t* p) { p[threadIdx.x]++; }

int main() {
  uint32_t* p = nullptr;
  if (hipMalloc(reinterpret_cast<void**>(&p), 256) != hipSuccess || hipMemset(p, 0, 256) != hipSuccess) return 1;
  std::printf("address %llu\n", (unsigned long long)(uintptr_t)p);
  increment<<<1, 64>>>(p);
  const int outer = roctxRangePushA("step 1");
  increment<<<1, 64>>>(p);
  const int inner = roctxRangePushA("part");
  increment<<<1, 64>>>(p);
  const int back = roctxRangePop();
  roctxRangePop();
  const uint64_t whole = roctxRangeStartA("whole");
  increment<<<1, 64>>>(p);
  roctxRangeStop(whole);
  increment<<<1, 64>>>(p);
  uint32_t result[64];
  if (hipMemcpy(result, p, 256, hipMemcpyDeviceToHost) != hipSuccess) return 1;
  std::printf("result %u\nlevels %d\ncalls %d\n", result[5], outer * 100 + inner * 10 + back, roctx_stand_in_calls());
  return result[5] == 5 ? 0 : 1;
}
