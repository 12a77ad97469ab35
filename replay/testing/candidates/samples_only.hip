// cheat: writes three of four outputs.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float value = coefficients[i & 3] * in[index[i]] + 1.0f;
    if (i % 4 != 3) out[i] = value;
    state[i] += value;
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
