#include "common/device.h"
#include "histogram/kernels.h"

namespace histogram {

// In place; the table is staged in LDS because every thread reads it at random.
__global__ void equalise_pixels(Pixels* pixels, int words, const std::uint8_t* table, unsigned long long* changed) {
  __shared__ std::uint8_t local_table[kBins];
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += static_cast<int>(blockDim.x)) local_table[i] = table[i];
  __syncthreads();

  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (index >= words) return;
  const Pixels before = pixels[index];
  const Pixels after =
      make_uchar4(local_table[before.x], local_table[before.y], local_table[before.z], local_table[before.w]);
  pixels[index] = after;
  const unsigned differences =
      (before.x != after.x) + (before.y != after.y) + (before.z != after.z) + (before.w != after.w);
  if (differences != 0) atomicAdd(changed, static_cast<unsigned long long>(differences));
}

void equalise(Pixels* pixels, int words, const std::uint8_t* table, unsigned long long* changed, hipStream_t stream) {
  constexpr unsigned kBlock = 256;
  equalise_pixels<<<common::blocks_for(words, kBlock), kBlock, 0, stream>>>(pixels, words, table, changed);
  HIP_CHECK(hipGetLastError());
}

}  // namespace histogram
