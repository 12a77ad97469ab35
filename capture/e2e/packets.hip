// The kernel of packets.cpp, as a code object of its own.
#include <hip/hip_runtime.h>

extern "C" __global__ void step(unsigned* p, unsigned number) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i] = p[i] * 31 + number + i;
}
