#pragma once

#include <hip/hip_runtime.h>

#include "common/device.h"
#include "matmul/problem.h"

namespace matmul {

// What happens to a finished element.
struct Identity {
  template <typename T>
  __device__ T operator()(T value, int /*column*/) const {
    return value;
  }
};

struct BiasRelu {
  const float* bias;

  __device__ float operator()(float value, int column) const {
    const float shifted = value + bias[column];
    return shifted > 0.0f ? shifted : 0.0f;
  }
};

// A workgroup computes a Tile x Tile block of C, Rows elements of one column per thread, from blocks of A and B in LDS.
template <typename In, typename Out, int Tile, int Rows, typename Epilogue>
__global__ void __launch_bounds__(Tile* Tile / Rows)
    gemm_tiled(Shape shape, const In* __restrict__ a, const In* __restrict__ b, Out* __restrict__ c,
               Epilogue epilogue) {
  static_assert(Tile % Rows == 0, "each thread has the same number of rows");
  constexpr int kStride = Tile / Rows;
  __shared__ Out a_tile[Tile][Tile + 1];
  __shared__ Out b_tile[Tile][Tile];

  const int column = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(threadIdx.y);
  const int global_column = static_cast<int>(blockIdx.x) * Tile + column;
  const int block_row = static_cast<int>(blockIdx.y) * Tile;

  Out sums[Rows] = {};
  for (int k0 = 0; k0 < shape.k; k0 += Tile) {
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      const int row = first_row + r * kStride;
      const int global_row = block_row + row;
      const bool a_inside = global_row < shape.m && k0 + column < shape.k;
      const bool b_inside = k0 + row < shape.k && global_column < shape.n;
      a_tile[row][column] = a_inside ? static_cast<Out>(a[global_row * shape.k + k0 + column]) : Out(0);
      b_tile[row][column] = b_inside ? static_cast<Out>(b[(k0 + row) * shape.n + global_column]) : Out(0);
    }
    __syncthreads();

#pragma unroll 4
    for (int k = 0; k < Tile; ++k) {
      const Out b_value = b_tile[k][column];
#pragma unroll
      for (int r = 0; r < Rows; ++r) sums[r] += a_tile[first_row + r * kStride][k] * b_value;
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    const int global_row = block_row + first_row + r * kStride;
    if (global_row < shape.m && global_column < shape.n) {
      c[global_row * shape.n + global_column] = epilogue(sums[r], global_column);
    }
  }
}

template <typename In, typename Out, int Tile, int Rows, typename Epilogue>
void launch_gemm(const Shape& shape, const In* a, const In* b, Out* c, Epilogue epilogue, hipStream_t stream) {
  const dim3 grid(common::blocks_for(shape.n, Tile), common::blocks_for(shape.m, Tile));
  const dim3 block(Tile, Tile / Rows);
  gemm_tiled<In, Out, Tile, Rows, Epilogue><<<grid, block, 0, stream>>>(shape, a, b, c, epilogue);
  HIP_CHECK(hipGetLastError());
}

}  // namespace matmul
