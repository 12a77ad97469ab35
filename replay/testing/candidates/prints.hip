// honest, and talkative.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + 1.0f;
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
  if (i % 1000 == 1) printf("work-item %d of %s: %.2f %5u|%-4x|%c%%\n", i, "step", out[i], 42u, 255, 'x');
}
