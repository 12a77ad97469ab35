#include <hip/hip_runtime.h>
__global__ void scale(float* data) { data[threadIdx.x] *= 2.0F; }
void run(float* data) { scale<<<1, 64>>>(data); }
