// Kernels of ordinary kinds for the tests of the instruction set, compiled for each target and optimisation level.
#include <hip/hip_runtime.h>

#ifdef KERNCAP_NEWER_COMPILER
// A compiler newer than the installed device libraries does not find this one in them.
extern "C" __device__ void __atomic_work_item_fence(__cl_mem_fence_flags, __memory_order, __memory_scope) {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}
#endif

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void block_sum(const float* in, float* out, int n) {
  __shared__ float partial[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, partial[0]);
}

extern "C" __global__ void warp_sum(const int* in, int* out) {
  int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int step = warpSize / 2; step > 0; step /= 2) value += __shfl_xor(value, step);
  if (threadIdx.x % warpSize == 0) atomicAdd(out, value);
}

extern "C" __global__ void matrix_product(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    tile_a[y][x] = a[row * n + k + x];
    tile_b[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += tile_a[y][j] * tile_b[j][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

__device__ __attribute__((noinline)) int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void recursion(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

extern "C" __global__ void private_array(const int* in, int* out) {
  int values[32];
  for (int i = 0; i < 32; ++i) values[i] = in[threadIdx.x * 32 + i];
  int sum = 0;
  for (int i = 0; i < 32; ++i) sum = sum * 3 + values[(i * in[i]) & 31];
  out[threadIdx.x] = sum;
}

extern "C" __global__ void double_math(const double* in, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double x = in[i];
  out[8 * i + 0] = x / 3.7;
  out[8 * i + 1] = sqrt(fabs(x));
  out[8 * i + 2] = exp(x * 0.01);
  out[8 * i + 3] = log(fabs(x) + 1.0);
  out[8 * i + 4] = sin(x);
  out[8 * i + 5] = fma(x, x, -1.0);
  out[8 * i + 6] = floor(x) + fmin(x, 1.0);
  out[8 * i + 7] = (double)(long long)x;
}

extern "C" __global__ void float_math(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i];
  out[8 * i + 0] = x / 3.7f;
  out[8 * i + 1] = sqrtf(fabsf(x));
  out[8 * i + 2] = expf(x * 0.01f);
  out[8 * i + 3] = logf(fabsf(x) + 1.0f);
  out[8 * i + 4] = sinf(x);
  out[8 * i + 5] = cosf(x * 1000.0f);
  out[8 * i + 6] = powf(fabsf(x), 1.3f);
  out[8 * i + 7] = tanhf(x * 0.1f);
}

extern "C" __global__ void integer_division(const long long* a, const long long* b, long long* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[6 * i + 0] = a[i] / b[i];
  out[6 * i + 1] = a[i] % b[i];
  out[6 * i + 2] = (unsigned long long)a[i] / (unsigned long long)b[i];
  out[6 * i + 3] = (int)a[i] / ((int)b[i] | 1);
  out[6 * i + 4] = (unsigned)a[i] % ((unsigned)b[i] | 1);
  out[6 * i + 5] = __popcll(a[i]) + __clzll(b[i]) + (a[i] >> (b[i] & 63));
}

extern "C" __global__ void grid_barrier(int* arrived, int* out) {
  // Every workgroup must be resident for this to end.
  if (threadIdx.x == 0) {
    __hip_atomic_fetch_add(arrived, 1, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT);
    while (__hip_atomic_load(arrived, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT) != (int)gridDim.x) {
    }
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = *arrived;
}

// A barrier of the device (global wave sync), set up by a dispatch of its own as HIP's cooperative launch does.
extern "C" __global__ void sync_init(int groups) {
  if (threadIdx.x == 0) __builtin_amdgcn_ds_gws_init(groups - 1, 0);
}
extern "C" __global__ void sync_exchange(int* values, int* out, int rounds) {
  const int next = (blockIdx.x + 1) % gridDim.x;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0) {
      __hip_atomic_store(&values[blockIdx.x], 100 * round + (int)blockIdx.x, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT);
      __builtin_amdgcn_ds_gws_barrier(gridDim.x - 1, 0);
      const int got = __hip_atomic_load(&values[next], __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT);
      if (got != 100 * round + next) atomicAdd(out, 1);
      __builtin_amdgcn_ds_gws_barrier(gridDim.x - 1, 0);
    }
    __syncthreads();
  }
}

extern "C" __global__ void bad_store(int* out) { out[threadIdx.x * 1024] = 1; }

extern "C" __global__ void fma_loop(float* out, int n) {
  float a = threadIdx.x, b = 1.0f, c = 0.5f, d = 2.0f;
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      a = fmaf(a, 0.999f, b);
      b = fmaf(b, 0.998f, c);
      c = fmaf(c, 0.997f, d);
      d = fmaf(d, 0.996f, a);
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

extern "C" __global__ void integer_loop(unsigned* out, int n) {
  unsigned a = threadIdx.x, b = 1, c = 5, d = 7;
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      a = (a ^ b) + c;
      b = (b & d) | a;
      c = c * 1 + (d >> 3);
      d = (d << 1) ^ b;
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}
