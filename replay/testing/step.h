// What the captured kernel and every candidate share: the device variables and the signature.
#pragma once
#include <hip/hip_runtime.h>

__constant__ float coefficients[4];
__device__ unsigned launches;

// out[i] = coefficients[i % 4] * in[index[i]] + 1;  state[i] += out[i];  **rows: pointers to blocks of 64 floats that
// get doubled;  launches counts.
#define STEP(name) \
  extern "C" __global__ void name(const float* in, float* out, float* state, const int* index, float** rows, int n)
