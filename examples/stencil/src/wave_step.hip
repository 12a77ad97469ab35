#include "common/device.h"
#include "stencil/kernels.h"

namespace stencil {

struct Layout {
  int nx, ny, nz;
  int row, plane;  // distance of neighbours in y and in z
};

__constant__ float weights[kRadius + 1];
__constant__ Layout layout;

// Each thread marches through z with its column of values in registers; x and y neighbours come from LDS.
template <int BlockX, int BlockY>
__global__ void __launch_bounds__(BlockX* BlockY)
    advance_wave(const float* __restrict__ current, float* __restrict__ next,
                 const float* __restrict__ velocity_squared) {
  __shared__ float tile[BlockY + 2 * kRadius][BlockX + 2 * kRadius];
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  const int block_x = static_cast<int>(blockIdx.x) * BlockX;
  const int block_y = static_cast<int>(blockIdx.y) * BlockY;
  const bool inside = block_x + tx < layout.nx && block_y + ty < layout.ny;
  // Threads beyond the grid help to fill the tile, at the last column or row.
  const int column =
      min(block_y + ty, layout.ny - 1) * layout.row + min(block_x + tx, layout.nx - 1) + kRadius * (layout.row + 1);

  float behind[kRadius], ahead[kRadius], center;
  for (int i = 0; i < kRadius; ++i) behind[i] = current[column + (kRadius - 1 - i) * layout.plane];
  center = current[column + kRadius * layout.plane];
  for (int i = 0; i < kRadius; ++i) ahead[i] = current[column + (kRadius + 1 + i) * layout.plane];

  for (int z = 0; z < layout.nz; ++z) {
    const int base = (z + kRadius) * layout.plane;
    __syncthreads();
    for (int y = ty; y < BlockY + 2 * kRadius; y += BlockY) {
      for (int x = tx; x < BlockX + 2 * kRadius; x += BlockX) {
        const int px = min(block_x + x, layout.row - 1);
        const int py = min(block_y + y, layout.ny + 2 * kRadius - 1);
        tile[y][x] = current[base + py * layout.row + px];
      }
    }
    __syncthreads();

    float laplace = 3.0f * weights[0] * center;
#pragma unroll
    for (int i = 1; i <= kRadius; ++i) {
      laplace += weights[i] * (tile[ty + kRadius][tx + kRadius - i] + tile[ty + kRadius][tx + kRadius + i] +
                               tile[ty + kRadius - i][tx + kRadius] + tile[ty + kRadius + i][tx + kRadius] +
                               behind[i - 1] + ahead[i - 1]);
    }
    if (inside) {
      const int index = base + column;
      next[index] = 2.0f * center - next[index] + velocity_squared[index] * laplace;
    }

    for (int i = kRadius - 1; i > 0; --i) behind[i] = behind[i - 1];
    behind[0] = center;
    center = ahead[0];
    for (int i = 0; i < kRadius - 1; ++i) ahead[i] = ahead[i + 1];
    if (z + 1 < layout.nz) ahead[kRadius - 1] = current[column + (z + 2 * kRadius + 1) * layout.plane];
  }
}

void set_constants(const Grid& grid) {
  const Layout host = {grid.nx, grid.ny, grid.nz, grid.padded_x(), grid.padded_x() * grid.padded_y()};
  HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(weights), kWeights, sizeof(kWeights)));
  HIP_CHECK(hipMemcpyToSymbol(HIP_SYMBOL(layout), &host, sizeof(host)));
}

void wave_step(const Grid& grid, const float* current, float* next, const float* velocity_squared, hipStream_t stream) {
  constexpr int kBlockX = 32, kBlockY = 8;
  const dim3 blocks(common::blocks_for(grid.nx, kBlockX), common::blocks_for(grid.ny, kBlockY));
  advance_wave<kBlockX, kBlockY><<<blocks, dim3(kBlockX, kBlockY), 0, stream>>>(current, next, velocity_squared);
  HIP_CHECK(hipGetLastError());
}

}  // namespace stencil
