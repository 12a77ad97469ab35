// wrong: uses a register that it has not set.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float unset;
  asm volatile("v_mov_b32 %0, v47" : "=v"(unset) : : "v48");  // v48: so that as many registers exist
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + 1.0f + unset;
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
