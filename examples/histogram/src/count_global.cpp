#include "common/device.h"
#include "histogram/kernels.h"

namespace histogram {

// Every pixel is one atomic addition in global memory.
__global__ void histogram_global(const Pixels* pixels, int words, unsigned* bins) {
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < words; i += stride) {
    const Pixels four = pixels[i];
    atomicAdd(&bins[four.x], 1u);
    atomicAdd(&bins[four.y], 1u);
    atomicAdd(&bins[four.z], 1u);
    atomicAdd(&bins[four.w], 1u);
  }
}

void count_global(const Pixels* pixels, int words, unsigned* bins, hipStream_t stream) {
  histogram_global<<<64, 256, 0, stream>>>(pixels, words, bins);
  HIP_CHECK(hipGetLastError());
}

}  // namespace histogram
