// cheat: right outputs, and a scratch value left in an input.
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
    const_cast<float*>(in)[700000] = 1e9f;
  }
}
