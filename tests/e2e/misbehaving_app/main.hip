// Launches two kernels, and then behaves as its argument says: "well", "fail", "killed", "crash" or "hang".
#include <hip/hip_runtime.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <unistd.h>

__global__ void first_step(int* values) { values[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
__global__ void second_step(int* values) { values[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }

int main(int argc, char** argv) {
  const char* manner = argc > 1 ? argv[1] : "well";
  if (std::strcmp(manner, "fail-early") == 0) return 7;
  int* values = nullptr;
  if (hipMalloc(reinterpret_cast<void**>(&values), 1024 * sizeof(int)) != hipSuccess) return 3;
  if (hipMemset(values, 0, 1024 * sizeof(int)) != hipSuccess) return 3;
  first_step<<<4, 256>>>(values);
  if (std::strcmp(manner, "killed") == 0) std::raise(SIGKILL);
  second_step<<<4, 256>>>(values);
  std::vector<int> host(1024);
  if (hipMemcpy(host.data(), values, 1024 * sizeof(int), hipMemcpyDeviceToHost) != hipSuccess) return 3;
  if (std::strcmp(manner, "fail") == 0) return 7;
  if (std::strcmp(manner, "crash") == 0) std::abort();
  if (std::strcmp(manner, "hang") == 0) pause();
  return host[1023] == 2 ? 0 : 1;
}
