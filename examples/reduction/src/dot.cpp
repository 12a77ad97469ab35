#include "common/device.h"
#include "reduction/block_reduce.h"
#include "reduction/reduce.h"

namespace reduction {

__global__ void __launch_bounds__(kBlock)
    dot_single_pass(const float* __restrict__ a, const float* __restrict__ b, int items, double* partials,
                    unsigned* finished, double* result) {
  __shared__ bool last;
  double mine = 0;
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < items; i += stride) {
    mine += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  mine = block_reduce<Sum<double>>(mine);
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = mine;
    __threadfence();  // the partial sum must be visible before the count
    last = atomicAdd(finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;

  __threadfence();
  // In the order of the workgroups, so that the result doesn't depend on which of them is last.
  mine = 0;
  for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(gridDim.x); i += static_cast<int>(blockDim.x)) {
    mine += partials[i];
  }
  mine = block_reduce<Sum<double>>(mine);
  if (threadIdx.x == 0) {
    *result = mine;
    *finished = 0;
  }
}

void dot(const float* a, const float* b, int items, double* partials, unsigned* finished, double* result,
         hipStream_t stream) {
  dot_single_pass<<<blocks_for(items), kBlock, 0, stream>>>(a, b, items, partials, finished, result);
  HIP_CHECK(hipGetLastError());
}

}  // namespace reduction
