// One kernel for each thing that a software GPU could get wrong in its plumbing.
#include <cmath>
#include <vector>

#include "check.h"

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void reduce(const int* in, int* out, int n) {
  __shared__ int part[256];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < static_cast<unsigned>(step)) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

__constant__ float factors[4];
__device__ int counter = 7;

__global__ void scale(float* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  data[i] *= factors[i % 4];
  atomicAdd(&counter, 1);
}

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void recurse(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

__global__ void shuffle(int* out) {
  int value = threadIdx.x;
  for (int step = warpSize / 2; step > 0; step /= 2) value += __shfl_xor(value, step);
  out[threadIdx.x] = value;
}

__global__ void through_pointers(float** rows, int width) { rows[blockIdx.x][threadIdx.x] = blockIdx.x * width + threadIdx.x; }

__global__ void whole_shape(unsigned* out) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
  out[(z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x] = x | y << 8 | z << 16;
}

static void vector_add() {
  const int n = 100'003;
  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) a[i] = i * 0.5f, b[i] = i * 0.25f;
  float *da = nullptr, *db = nullptr, *dc = nullptr;
  for (float** pointer : {&da, &db, &dc}) HIP_OK(hipMalloc(pointer, n * sizeof(float)));
  HIP_OK(hipMemcpy(da, a.data(), n * sizeof(float), hipMemcpyHostToDevice));
  HIP_OK(hipMemcpy(db, b.data(), n * sizeof(float), hipMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  HIP_OK(hipGetLastError());
  HIP_OK(hipMemcpy(c.data(), dc, n * sizeof(float), hipMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) EXPECT(c[i] == a[i] + b[i]);
  for (float* pointer : {da, db, dc}) HIP_OK(hipFree(pointer));
}

static void reduction() {
  const int n = 50'000;
  std::vector<int> in(n);
  long expected = 0;
  for (int i = 0; i < n; ++i) expected += in[i] = i % 97 - 40;
  int *din = nullptr, *dout = nullptr, out = 0;
  HIP_OK(hipMalloc(&din, n * sizeof(int)));
  HIP_OK(hipMalloc(&dout, sizeof(int)));
  HIP_OK(hipMemcpy(din, in.data(), n * sizeof(int), hipMemcpyHostToDevice));
  HIP_OK(hipMemset(dout, 0, sizeof(int)));
  reduce<<<20, 256>>>(din, dout, n);
  HIP_OK(hipMemcpy(&out, dout, sizeof out, hipMemcpyDeviceToHost));
  EXPECT(out == expected);
  HIP_OK(hipFree(din));
  HIP_OK(hipFree(dout));
}

static void symbols() {
  const float values[4] = {1, 2, 3, 4};
  HIP_OK(hipMemcpyToSymbol(HIP_SYMBOL(factors), values, sizeof values));
  const int n = 1000;
  std::vector<float> data(n, 1.5f);
  float* device = nullptr;
  HIP_OK(hipMalloc(&device, n * sizeof(float)));
  HIP_OK(hipMemcpy(device, data.data(), n * sizeof(float), hipMemcpyHostToDevice));
  scale<<<(n + 63) / 64, 64>>>(device, n);
  HIP_OK(hipMemcpy(data.data(), device, n * sizeof(float), hipMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) EXPECT(data[i] == 1.5f * (i % 4 + 1));
  int counted = 0;
  HIP_OK(hipMemcpyFromSymbol(&counted, HIP_SYMBOL(counter), sizeof counted));
  EXPECT(counted == 7 + n);
  HIP_OK(hipFree(device));
}

static void registers_and_scratch() {
  int* device = nullptr;
  std::vector<int> out(128);
  HIP_OK(hipMalloc(&device, out.size() * sizeof(int)));
  recurse<<<1, 64>>>(device);
  HIP_OK(hipMemcpy(out.data(), device, 64 * sizeof(int), hipMemcpyDeviceToHost));
  const int expected[12] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (int i = 0; i < 64; ++i) EXPECT(out[i] == expected[i % 12]);
  shuffle<<<1, 64>>>(device);
  HIP_OK(hipMemcpy(out.data(), device, 64 * sizeof(int), hipMemcpyDeviceToHost));
  hipDeviceProp_t properties;
  HIP_OK(hipGetDeviceProperties(&properties, 0));
  for (int i = 0; i < 64; ++i) {
    const int base = i / properties.warpSize * properties.warpSize;
    EXPECT(out[i] == properties.warpSize * base + properties.warpSize * (properties.warpSize - 1) / 2);
  }
  HIP_OK(hipFree(device));
}

static void pointers_and_shapes() {
  const int rows = 5, width = 64;
  float *storage = nullptr, **table = nullptr, *host_table[rows];
  HIP_OK(hipMalloc(&storage, rows * width * sizeof(float)));
  HIP_OK(hipMalloc(&table, sizeof host_table));
  for (int row = 0; row < rows; ++row) host_table[row] = storage + row * width;
  HIP_OK(hipMemcpy(table, host_table, sizeof host_table, hipMemcpyHostToDevice));
  through_pointers<<<rows, width>>>(table, width);
  std::vector<float> out(rows * width);
  HIP_OK(hipMemcpy(out.data(), storage, out.size() * sizeof(float), hipMemcpyDeviceToHost));
  for (int i = 0; i < rows * width; ++i) EXPECT(out[i] == i);
  HIP_OK(hipFree(storage));
  HIP_OK(hipFree(table));

  unsigned* shape = nullptr;
  HIP_OK(hipMalloc(&shape, 12 * 6 * 4 * sizeof(unsigned)));
  whole_shape<<<dim3(3, 2, 2), dim3(4, 3, 2)>>>(shape);
  std::vector<unsigned> cells(12 * 6 * 4);
  HIP_OK(hipMemcpy(cells.data(), shape, cells.size() * sizeof(unsigned), hipMemcpyDeviceToHost));
  for (unsigned z = 0; z < 4; ++z) {
    for (unsigned y = 0; y < 6; ++y) {
      for (unsigned x = 0; x < 12; ++x) EXPECT(cells[(z * 6 + y) * 12 + x] == (x | y << 8 | z << 16));
    }
  }
  HIP_OK(hipFree(shape));
}

static void host_memory() {
  const int n = 4096;
  std::vector<float> ordinary(n, 2.0f);
  HIP_OK(hipHostRegister(ordinary.data(), n * sizeof(float), hipHostRegisterDefault));
  float *seen = nullptr, *managed = nullptr;
  HIP_OK(hipHostGetDevicePointer(reinterpret_cast<void**>(&seen), ordinary.data(), 0));
  HIP_OK(hipMallocManaged(reinterpret_cast<void**>(&managed), n * sizeof(float)));
  for (int i = 0; i < n; ++i) managed[i] = i;
  add<<<n / 256, 256>>>(seen, managed, managed, n);
  add<<<n / 256, 256>>>(seen, managed, seen, n);
  HIP_OK(hipDeviceSynchronize());
  for (int i = 0; i < n; ++i) {
    EXPECT(managed[i] == i + 2.0f);
    EXPECT(ordinary[i] == i + 4.0f);
  }
  HIP_OK(hipHostUnregister(ordinary.data()));
  HIP_OK(hipFree(managed));
}

int main() {
  vector_add();
  reduction();
  symbols();
  registers_and_scratch();
  pointers_and_shapes();
  host_memory();
  std::puts("all good");
}
