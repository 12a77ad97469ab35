// honest: more code and variables, so that everything lies elsewhere in the code object.
#include "../step.h"
__device__ double padding[1000];
__device__ __attribute__((noinline)) float term(float c, float x) { return c * x + 1.0f; }
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (n < 0) padding[i] = 1;
  if (i < n) {
    out[i] = term(coefficients[i & 3], in[index[i]]);
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
