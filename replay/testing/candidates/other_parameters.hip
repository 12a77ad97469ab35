// takes other parameters than the captured kernel.
#include "../step.h"
extern "C" __global__ void step(const float* in, float* out, int n) {
  out[0] = in[n] + coefficients[0];
  launches += 1;
}
