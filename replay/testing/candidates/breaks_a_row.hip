// wrong: in memory that is only reached through a table of pointers.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + 1.0f;
    state[i] += out[i];
    rows[i >> 6][i & 63] *= i == 3001 ? 3.0f : 2.0f;
  }
  if (i == 0) launches += 1;
}
