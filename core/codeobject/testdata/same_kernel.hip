// One kernel among others, and the same file with one thing changed at a time (-DINSTRUCTIONS ...). No HIP headers.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))

#ifdef CONSTANTS
__constant__ float table[4] = {1, 2, 3, 5};
#else
__constant__ float table[4] = {1, 2, 3, 4};
#endif

__device__ __attribute__((noinline)) float callee(float x) {
#ifdef CALLEE
  return x * 3.0f + 1.0f;
#else
  return x * 2.0f + 1.0f;
#endif
}

__device__ __attribute__((noinline)) int unnamed(int n) {
#ifdef UNNAMED
  const int values[16] = {5, 2, 3, 4, 1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17};
#else
  const int values[16] = {5, 2, 3, 4, 1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
#endif
  return values[n & 15];
}

#ifndef ALONE
__device__ __attribute__((noinline)) int first_of(int n) {
  const int values[16] = {6, 2, 3, 4, 1, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  return values[n & 15];
}
extern "C" __global__ void another(int* p) { p[0] = first_of(p[1]); }

extern "C" __global__ void other(float* p) { p[1] = callee(table[2]) - 7.0f; }
#endif

extern "C" __global__ void wanted(float* p, int n) {
#ifdef INSTRUCTIONS
  p[n] = callee(table[n]) + 2.0f;
#else
  p[n] = callee(table[n]) + unnamed(n) + 1.5f;
#endif
}
