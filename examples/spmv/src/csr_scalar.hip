#include "common/device.h"
#include "spmv/kernels.h"

namespace spmv {
namespace {

__global__ void multiply_scalar(DeviceCsr matrix, const float* __restrict__ x, float* __restrict__ y) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= matrix.rows) return;
  float sum = 0;
  const int end = matrix.offsets[row + 1];
  for (int i = matrix.offsets[row]; i < end; ++i) sum += matrix.values[i] * x[matrix.columns[i]];
  y[row] = sum;
}

}  // namespace

// csr_vector.hip has another kernel of this name: static functions of one symbol, in two translation units.
static __global__ void apply_damping(float* y, int rows, float damping, float teleport) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row < rows) y[row] = damping * y[row] + teleport;
}

void step_scalar(const DeviceCsr& matrix, const float* x, float damping, float teleport, float* y, hipStream_t stream) {
  constexpr unsigned kBlock = 256;
  const unsigned blocks = common::blocks_for(matrix.rows, kBlock);
  multiply_scalar<<<blocks, kBlock, 0, stream>>>(matrix, x, y);
  HIP_CHECK(hipGetLastError());
  apply_damping<<<blocks, kBlock, 0, stream>>>(y, matrix.rows, damping, teleport);
  HIP_CHECK(hipGetLastError());
}

}  // namespace spmv
