// honest: the same work in other words.
#include "../step.h"
STEP(step) {
  const int i = threadIdx.x + blockDim.x * blockIdx.x;
  if (i == 0) ++launches;
  if (i >= n) return;
  const float value = in[index[i]] * coefficients[i % 4] + 1.0f;
  rows[i / 64][i % 64] += rows[i / 64][i % 64];
  out[i] = value;
  state[i] = state[i] + value;
}
