// asks for all the LDS there is; the test makes that more than there is.
#include "../step.h"
STEP(step) {
  __shared__ volatile float values[16000];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[threadIdx.x] = 1.0f;
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + values[threadIdx.x];
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
