#pragma once

#include <hip/hip_runtime.h>

#include "reduction/operations.h"

namespace reduction {

template <typename T>
__device__ T shuffle_down(T value, int distance) {
  return __shfl_down(value, distance);
}

__device__ inline Located shuffle_down(Located value, int distance) {
  return {__shfl_down(value.value, distance), __shfl_down(value.index, distance)};
}

// Within a wave of 32 or 64 lanes; lane 0 has the result.
template <typename Operation>
__device__ typename Operation::Value wave_reduce(typename Operation::Value value) {
  for (int distance = warpSize / 2; distance > 0; distance /= 2) {
    value = Operation::join(value, shuffle_down(value, distance));
  }
  return value;
}

// Within a workgroup of at most 1024 threads, a multiple of the wave's size; thread 0 has the result.
template <typename Operation>
__device__ typename Operation::Value block_reduce(typename Operation::Value value) {
  using Value = typename Operation::Value;
  __shared__ Value wave_results[32];
  const int lane = static_cast<int>(threadIdx.x) % warpSize;
  const int wave = static_cast<int>(threadIdx.x) / warpSize;
  const int waves = static_cast<int>(blockDim.x) / warpSize;

  value = wave_reduce<Operation>(value);
  if (lane == 0) wave_results[wave] = value;
  __syncthreads();
  if (wave == 0) value = wave_reduce<Operation>(lane < waves ? wave_results[lane] : Operation::neutral());
  __syncthreads();
  return value;
}

}  // namespace reduction
