// cheat: works in its first run only, and remembers that in a variable of its own.
#include "../step.h"
STEP(step) {
  static __device__ int runs;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int before = atomicAdd(&runs, 1);
  if (before >= gridDim.x * blockDim.x) return;
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + 1.0f;
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
