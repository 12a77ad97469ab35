// compiled for smaller workgroups than the application launches.
#include "../step.h"
extern "C" __global__ __launch_bounds__(64) void step(const float* in, float* out, float* state, const int* index, float** rows, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + 1.0f;
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
