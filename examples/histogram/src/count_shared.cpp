#include "common/device.h"
#include "histogram/kernels.h"

namespace histogram {

// Each workgroup counts in LDS, in two copies against contention, and adds its counts to global memory at the end.
template <int Copies>
__global__ void __launch_bounds__(256) histogram_shared(const Pixels* pixels, int words, unsigned* bins) {
  __shared__ unsigned local[Copies][kBins];
  for (int bin = static_cast<int>(threadIdx.x); bin < Copies * kBins; bin += static_cast<int>(blockDim.x)) {
    local[bin / kBins][bin % kBins] = 0;
  }
  __syncthreads();

  unsigned* mine = local[threadIdx.x % Copies];
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < words; i += stride) {
    const Pixels four = pixels[i];
    atomicAdd(&mine[four.x], 1u);
    atomicAdd(&mine[four.y], 1u);
    atomicAdd(&mine[four.z], 1u);
    atomicAdd(&mine[four.w], 1u);
  }
  __syncthreads();

  for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += static_cast<int>(blockDim.x)) {
    unsigned count = 0;
    for (int copy = 0; copy < Copies; ++copy) count += local[copy][bin];
    if (count != 0) atomicAdd(&bins[bin], count);
  }
}

void count_shared(const Pixels* pixels, int words, unsigned* bins, hipStream_t stream) {
  histogram_shared<2><<<64, 256, 0, stream>>>(pixels, words, bins);
  HIP_CHECK(hipGetLastError());
}

}  // namespace histogram
