// wrong: a device variable is not updated.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + 1.0f;
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (n < 0) launches += 1;
}
