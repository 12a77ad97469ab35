// cheat: right outputs, and a note left in memory that nobody had allocated.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + 1.0f;
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) {
    launches += 1;
    out[0x40000] = 3.0f;
  }
}
