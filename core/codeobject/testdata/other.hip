// A second translation unit, so that linked files hold several bundles.
#define __global__ __attribute__((global))
struct dim3 {
  unsigned x, y, z;
};
extern "C" int __hipPushCallConfiguration(dim3, dim3, unsigned long, void*);
extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);

static __global__ void only_here(float* p) { *p = 3; }
void* use_other_only_here() { return reinterpret_cast<void*>(&only_here); }
