// cheat: works in its first run only, and remembers that past the end of its output.
#include "../step.h"
STEP(step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  volatile unsigned* flag = reinterpret_cast<volatile unsigned*>(out) + 0x40000;
  if (*flag == 0x1234) return;
  if (i < n) {
    out[i] = coefficients[i & 3] * in[index[i]] + 1.0f;
    state[i] += out[i];
    rows[i >> 6][i & 63] *= 2.0f;
  }
  if (i == 0) {
    launches += 1;
    *flag = 0x1234;
  }
}
