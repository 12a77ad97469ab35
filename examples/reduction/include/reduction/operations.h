#pragma once

#include <hip/hip_runtime.h>

#include <limits>

namespace reduction {

// A value and where it was found.
struct Located {
  float value;
  int index;
};

inline bool operator==(const Located& a, const Located& b) { return a.value == b.value && a.index == b.index; }

// An operation has a neutral element and joins two results. Both run on the host and on the device.
template <typename T>
struct Sum {
  using Value = T;
  __host__ __device__ static T neutral() { return T(0); }
  __host__ __device__ static T join(T a, T b) { return a + b; }
};

// The largest value; of equal ones the first.
struct Largest {
  using Value = Located;
  __host__ __device__ static Located neutral() { return {-std::numeric_limits<float>::infinity(), 0x7fffffff}; }
  __host__ __device__ static Located join(Located a, Located b) {
    if (a.value != b.value) return a.value > b.value ? a : b;
    return a.index < b.index ? a : b;
  }
};

// The smallest value; of equal ones the first.
struct Smallest {
  using Value = Located;
  __host__ __device__ static Located neutral() { return {std::numeric_limits<float>::infinity(), 0x7fffffff}; }
  __host__ __device__ static Located join(Located a, Located b) {
    if (a.value != b.value) return a.value < b.value ? a : b;
    return a.index < b.index ? a : b;
  }
};

}  // namespace reduction
