#pragma once
__device__ inline int helper_of_helper(int i) { return i + 1; }

// A framework's own kernel.
template <class T>
__global__ void in_header(T* data) {
  data[helper_of_helper(0)] = T(1);
}
