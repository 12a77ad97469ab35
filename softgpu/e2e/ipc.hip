// A child process maps its parent's device memory and changes it.
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void increment(int* data) { data[threadIdx.x] += 1; }

int main() {
  int channel[2];
  EXPECT(pipe(channel) == 0);
  hipIpcMemHandle_t handle;
  const pid_t child = fork();
  if (child == 0) {
    EXPECT(read(channel[0], &handle, sizeof handle) == sizeof handle);
    int* data = nullptr;
    HIP_OK(hipIpcOpenMemHandle(reinterpret_cast<void**>(&data), handle, hipIpcMemLazyEnablePeerAccess));
    increment<<<1, 64>>>(data);
    HIP_OK(hipDeviceSynchronize());
    HIP_OK(hipIpcCloseMemHandle(data));
    std::exit(0);
  }
  int *data = nullptr, host[64];
  HIP_OK(hipMalloc(&data, 1 << 20));
  for (int i = 0; i < 64; ++i) host[i] = i;
  HIP_OK(hipMemcpy(data, host, sizeof host, hipMemcpyHostToDevice));
  HIP_OK(hipIpcGetMemHandle(&handle, data));
  EXPECT(write(channel[1], &handle, sizeof handle) == sizeof handle);
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  HIP_OK(hipMemcpy(host, data, sizeof host, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) EXPECT(host[i] == i + 1);
  std::puts("all good");
}
