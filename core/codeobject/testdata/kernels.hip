// What the tests of this folder compile, without the HIP headers so that any clang with an AMD GPU target can.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
struct dim3 {
  unsigned x, y, z;
};
extern "C" int __hipPushCallConfiguration(dim3, dim3, unsigned long, void*);
extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);

__constant__ float weights[8];
__device__ int launches;

template <typename T>
__global__ void scale(T* data, const T* factor, int n) {
  if (n > 0) {
    data[0] *= factor[0] * weights[1];
    ++launches;
  }
}
template __global__ void scale<float>(float*, const float*, int);
template __global__ void scale<double>(double*, const double*, int);

namespace {
__global__ void copy(const float* from, float* to) { to[0] = from[0]; }
}  // namespace
void* use_copy() { return reinterpret_cast<void*>(&copy); }

static __global__ void only_here(float* p) { *p = 2; }
void* use_only_here() { return reinterpret_cast<void*>(&only_here); }

extern "C" __global__ void plain(float* p) { *p = 1; }
