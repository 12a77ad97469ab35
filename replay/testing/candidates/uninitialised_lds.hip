// wrong: adds up LDS that nobody has cleared.
#include "../step.h"
STEP(step) {
  __shared__ float partial[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[threadIdx.x] += 1.0f;  // the first value is whatever was there
  __syncthreads();
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + partial[threadIdx.x];
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
