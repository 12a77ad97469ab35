// honest: through LDS, private memory and atomics, each used as it should be.
#include "../step.h"
STEP(step) {
  __shared__ float values[256];
  __shared__ int count;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  volatile float kept[16];
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  kept[i & 15] = i < n ? in[index[i]] : 0.0f;
  values[255 - threadIdx.x] = kept[i & 15];
  __syncthreads();
  if (i < n) {
    out[i] = coefficients[i & 3] * values[255 - threadIdx.x] + (count == blockDim.x ? 1.0f : 2.0f);
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) atomicAdd(&launches, 1u);
}
