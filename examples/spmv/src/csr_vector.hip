#include "common/device.h"
#include "spmv/kernels.h"

namespace spmv {
namespace {

constexpr int kRowsPerThread = 4;

// `Lanes` neighbouring lanes share a row and add up by shuffles.
template <int Lanes>
__global__ void multiply_vector(DeviceCsr matrix, const float* __restrict__ x, float* __restrict__ y) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int lane = thread % Lanes;
  const int row = thread / Lanes;
  float sum = 0;
  if (row < matrix.rows) {
    const int end = matrix.offsets[row + 1];
    for (int i = matrix.offsets[row] + lane; i < end; i += Lanes) sum += matrix.values[i] * x[matrix.columns[i]];
  }
  for (int distance = Lanes / 2; distance > 0; distance /= 2) sum += __shfl_down(sum, distance, Lanes);
  if (lane == 0 && row < matrix.rows) y[row] = sum;
}

}  // namespace

// Not the kernel of the same name in csr_scalar.hip: a thread has several rows.
static __global__ void apply_damping(float* y, int rows, float damping, float teleport) {
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); row < rows; row += stride) {
    y[row] = damping * y[row] + teleport;
  }
}

void step_vector(const DeviceCsr& matrix, const float* x, float damping, float teleport, float* y, hipStream_t stream) {
  constexpr unsigned kBlock = 256;
  constexpr int kLanes = 16;
  const std::size_t threads = static_cast<std::size_t>(matrix.rows) * kLanes;
  multiply_vector<kLanes><<<common::blocks_for(threads, kBlock), kBlock, 0, stream>>>(matrix, x, y);
  HIP_CHECK(hipGetLastError());
  const unsigned blocks = common::blocks_for(matrix.rows, kBlock * kRowsPerThread);
  apply_damping<<<blocks, kBlock, 0, stream>>>(y, matrix.rows, damping, teleport);
  HIP_CHECK(hipGetLastError());
}

}  // namespace spmv
