// writes where no memory is.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i + (1ll << 31)] = coefficients[i & 3];
  if (i == 0) launches += 1;
}
