#pragma once

#include <hip/hip_runtime.h>

#include "common/device.h"
#include "reduction/block_reduce.h"
#include "reduction/reduce.h"

namespace reduction {

// Makes an operation's value of an input and its index.
struct Convert {
  template <typename Value, typename In>
  __device__ static Value make(In value, int /*index*/) {
    return static_cast<Value>(value);
  }
};

struct Locate {
  template <typename Value, typename In>
  __device__ static Value make(In value, int index) {
    return Value{value, index};
  }
};

// One partial result per workgroup.
template <typename Operation, typename Source, typename In>
__global__ void __launch_bounds__(kBlock)
    reduce_blocks(const In* __restrict__ values, int items, typename Operation::Value* __restrict__ partials) {
  using Value = typename Operation::Value;
  Value mine = Operation::neutral();
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < items; i += stride) {
    mine = Operation::join(mine, Source::template make<Value>(values[i], i));
  }
  mine = block_reduce<Operation>(mine);
  if (threadIdx.x == 0) partials[blockIdx.x] = mine;
}

// One workgroup joins the partial results.
template <typename Operation>
__global__ void __launch_bounds__(kBlock) reduce_partials(const typename Operation::Value* __restrict__ partials,
                                                          int count, typename Operation::Value* __restrict__ result) {
  typename Operation::Value mine = Operation::neutral();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    mine = Operation::join(mine, partials[i]);
  }
  mine = block_reduce<Operation>(mine);
  if (threadIdx.x == 0) *result = mine;
}

template <typename Operation, typename Source, typename In>
void launch_reduce(const In* values, int items, typename Operation::Value* partials, typename Operation::Value* result,
                   hipStream_t stream) {
  const int blocks = blocks_for(items);
  reduce_blocks<Operation, Source><<<blocks, kBlock, 0, stream>>>(values, items, partials);
  HIP_CHECK(hipGetLastError());
  reduce_partials<Operation><<<1, kBlock, 0, stream>>>(partials, blocks, result);
  HIP_CHECK(hipGetLastError());
}

}  // namespace reduction
