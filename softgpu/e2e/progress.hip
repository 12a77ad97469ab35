// Kernels that wait for something else to happen. On hardware they end, because everything resident makes progress.
#include <unistd.h>

#include <string>
#include <thread>

#include "check.h"

__device__ int load(int* flag) { return __hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM); }
__device__ void store(int* flag, int value) { __hip_atomic_store(flag, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM); }

__global__ void wait_for(int* flag, int value, int* done) {
  while (load(flag) != value) {
  }
  store(done, 1);
}

__global__ void set(int* flag, int value) { store(flag, value); }

// Every workgroup but the last waits for the one after it, which starts later.
__global__ void chain(int* cells) {
  if (threadIdx.x != 0) return;
  const unsigned self = blockIdx.x;
  int seen = 0;
  if (self + 1 < gridDim.x) {
    while ((seen = load(&cells[self + 1])) == 0) {
    }
  }
  store(&cells[self], seen + 1);
}

// The first wave of a workgroup waits for its last one.
__global__ void waves(int* flag, int* done) {
  const unsigned wave = threadIdx.x / warpSize, last = (blockDim.x - 1) / warpSize;
  if (wave == 0) {
    while (load(flag) == 0) {
    }
    if (threadIdx.x == 0) store(done, 1);
  } else if (wave == last) {
    store(flag, 1);
  }
}

static int* zeros(int count) {
  int* memory = nullptr;
  HIP_OK(hipHostMalloc(&memory, count * sizeof(int)));
  for (int i = 0; i < count; ++i) memory[i] = 0;
  return memory;
}

// Many workgroups that spin: more than a scheduler of long slices gets through.
static void many() {
  int* cells = zeros(200);
  chain<<<200, 64>>>(cells);
  HIP_OK(hipDeviceSynchronize());
  for (int i = 0; i < 200; ++i) EXPECT(cells[i] == 200 - i);
}

int main(int count, char** arguments) {
  const std::string how = count > 1 ? arguments[1] : "";
  if (how == "many") {
    many();
    std::puts("all good");
    return 0;
  }
  if (how == "stuck") {  // nobody will ever set it
    wait_for<<<4, 64>>>(zeros(1), 1, zeros(1));
    HIP_OK(hipDeviceSynchronize());
    return 0;
  }
  int *flag = zeros(64), *done = zeros(64);
  hipStream_t first = nullptr, second = nullptr;
  HIP_OK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
  HIP_OK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));

  wait_for<<<1, 1, 0, first>>>(flag, 1, done);  // released by another queue's kernel
  set<<<1, 1, 0, second>>>(flag, 1);
  HIP_OK(hipStreamSynchronize(first));
  EXPECT(done[0] == 1);

  wait_for<<<1, 1, 0, first>>>(flag, 2, done + 1);  // released by the host
  std::thread host([&] {
    usleep(30'000);
    __atomic_store_n(flag, 2, __ATOMIC_RELEASE);
  });
  HIP_OK(hipStreamSynchronize(first));
  host.join();
  EXPECT(done[1] == 1);

  wait_for<<<1, 1, 0, first>>>(flag, 3, done + 2);  // released by a copy engine
  int* device = nullptr;
  int* three = zeros(1);
  *three = 3;
  HIP_OK(hipMalloc(&device, sizeof(int)));
  HIP_OK(hipMemcpyAsync(device, three, sizeof(int), hipMemcpyHostToDevice, second));
  HIP_OK(hipMemcpyAsync(flag, device, sizeof(int), hipMemcpyDeviceToHost, second));
  HIP_OK(hipStreamSynchronize(first));
  EXPECT(done[2] == 1);

  int* cells = zeros(48);
  chain<<<48, 64>>>(cells);
  HIP_OK(hipDeviceSynchronize());
  for (int i = 0; i < 48; ++i) EXPECT(cells[i] == 48 - i);

  *flag = 0;
  waves<<<1, 256>>>(flag, done + 3);
  HIP_OK(hipDeviceSynchronize());
  EXPECT(done[3] == 1);
  std::puts("all good");
}
