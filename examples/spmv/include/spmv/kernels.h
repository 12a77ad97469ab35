#pragma once

#include <hip/hip_runtime.h>

namespace spmv {

// A matrix in device memory.
struct DeviceCsr {
  int rows;
  const int* offsets;
  const int* columns;
  const float* values;
};

// y = damping * matrix * x + teleport, with one thread per row.
void step_scalar(const DeviceCsr& matrix, const float* x, float damping, float teleport, float* y, hipStream_t stream);

// The same with several lanes per row, for long rows.
void step_vector(const DeviceCsr& matrix, const float* x, float damping, float teleport, float* y, hipStream_t stream);

}  // namespace spmv
