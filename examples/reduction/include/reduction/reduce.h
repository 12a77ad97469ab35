#pragma once

#include <hip/hip_runtime.h>

#include "reduction/operations.h"

namespace reduction {

constexpr int kBlock = 256;
constexpr int kMaxBlocks = 64;

// Workgroups that share `items`.
inline int blocks_for(int items) {
  const int blocks = (items + kBlock - 1) / kBlock;
  return blocks < 1 ? 1 : blocks < kMaxBlocks ? blocks : kMaxBlocks;
}

// All leave their result in *result; `partials` has room for kMaxBlocks values.
void sum(const float* values, int items, double* partials, double* result, hipStream_t stream);
void sum(const int* values, int items, long long* partials, long long* result, hipStream_t stream);
void largest(const float* values, int items, Located* partials, Located* result, hipStream_t stream);
void smallest(const float* values, int items, Located* partials, Located* result, hipStream_t stream);

// The scalar product in one kernel: the last workgroup to finish adds up the partial sums. *finished must be 0 and is
// 0 again afterwards.
void dot(const float* a, const float* b, int items, double* partials, unsigned* finished, double* result,
         hipStream_t stream);

}  // namespace reduction
