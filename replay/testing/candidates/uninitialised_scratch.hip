// wrong: reads an element of a private array that it has not written.
#include "../step.h"
STEP(step) {
  volatile float values[40];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i & 31] = 1.0f;
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + values[i & 31] + values[32 + (i & 7)];
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
