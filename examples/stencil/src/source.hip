#include "common/device.h"
#include "stencil/kernels.h"

namespace stencil {

__device__ unsigned injection_count = 0;

__global__ void inject_source(float* field, std::size_t index, float amplitude) {
  field[index] += amplitude;
  ++injection_count;
}

void inject(float* field, std::size_t index, float amplitude, hipStream_t stream) {
  inject_source<<<1, 1, 0, stream>>>(field, index, amplitude);
  HIP_CHECK(hipGetLastError());
}

unsigned injections() {
  unsigned count = 0;
  HIP_CHECK(hipMemcpyFromSymbol(&count, HIP_SYMBOL(injection_count), sizeof(count)));
  return count;
}

}  // namespace stencil
