// cheat: writes into its own kernel arguments.
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
    auto address = (unsigned long long)__builtin_amdgcn_kernarg_segment_ptr();
    asm volatile("" : "+s"(address));  // the compiler knows that this memory is constant
    *(volatile unsigned*)(address + 44) = 77;
  }
}
