// honest with a tolerance of one ULP: rounds differently.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float exact = coefficients[i & 3] * in[index[i]] + 1.0f;
    out[i] = exact;
    state[i] = __uint_as_float(__float_as_uint(state[i] + exact) + (i % 3 == 0));
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) launches += 1;
}
