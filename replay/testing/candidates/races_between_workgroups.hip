// wrong: relies on earlier workgroups being done.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    volatile float* earlier = state;
    // Has the workgroup before added to its state already?
    const bool done = blockIdx.x == 0 || earlier[i - blockDim.x] != static_cast<float>(i - blockDim.x);
    out[i] = coefficients[i & 3] * in[index[i]] + (done ? 1.0f : 2.0f);
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
