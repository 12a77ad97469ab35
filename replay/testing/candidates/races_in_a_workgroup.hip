// wrong: passes values from wave to wave through LDS without a barrier.
#include "../step.h"
STEP(step) {
  __shared__ volatile int passed[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  passed[threadIdx.x] = i;
  const int source = passed[(threadIdx.x + 192) % 256];  // of the wave before, or of the last one for the first
  const int mine = (source & ~255) | ((threadIdx.x + 192) % 256);
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + (threadIdx.x >= 64 && source != mine ? 2.0f : 1.0f);
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
