#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>

#include "matmul/problem.h"

namespace matmul {

// Each in a translation unit of its own, all made from the template in gemm_kernel.h.
void gemm(const Shape& shape, const float* a, const float* b, float* c, hipStream_t stream);
void gemm(const Shape& shape, const double* a, const double* b, double* c, hipStream_t stream);
void gemm(const Shape& shape, const std::int8_t* a, const std::int8_t* b, std::int32_t* c, hipStream_t stream);

// C = max(0, A B + bias), the bias given for each column; for small products the plain kernel and a second pass.
void gemm_bias_relu(const Shape& shape, const float* a, const float* b, const float* bias, float* c, bool fused,
                    hipStream_t stream);

}  // namespace matmul
