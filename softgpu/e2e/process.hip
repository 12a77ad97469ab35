// Forks, and the ways out of a process. `process exit|_exit|abort|throw|busy-exit|fork-before|fork-after|thread`.
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

__global__ void fill(int* data, int value) { data[threadIdx.x] = value; }
__global__ void spin(volatile int* flag) {
  while (*flag == 0) {
  }
}

static void use_gpu(int value) {
  int *device = nullptr, host[64];
  HIP_OK(hipMalloc(&device, sizeof host));
  fill<<<1, 64>>>(device, value);
  HIP_OK(hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost));
  for (const int each : host) EXPECT(each == value);
  HIP_OK(hipFree(device));
}

static int wait_for(pid_t child) {
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(int count, char** arguments) {
  const std::string how = count > 1 ? arguments[1] : "";
  if (how == "fork-before") {  // the child uses the GPU first
    const pid_t child = fork();
    if (child == 0) {
      use_gpu(3);
      std::exit(0);
    }
    EXPECT(wait_for(child) == 0);
    use_gpu(4);
    std::puts("all good");
    return 0;
  }
  use_gpu(1);
  if (how == "exit") std::exit(0);
  if (how == "_exit") _exit(0);
  if (how == "abort") std::abort();
  if (how == "throw") throw std::runtime_error("out");
  if (how == "busy-exit") {  // a kernel still runs
    int* flag = nullptr;
    HIP_OK(hipMalloc(&flag, sizeof(int)));
    HIP_OK(hipMemset(flag, 0, sizeof(int)));
    spin<<<1, 1>>>(flag);
    usleep(20'000);
    _exit(0);
  }
  if (how == "fork-after") {  // the child leaves the GPU alone, and the parent goes on
    for (int round = 0; round < 10; ++round) {
      const pid_t child = fork();
      if (child == 0) _exit(round);
      EXPECT(wait_for(child) == round);
      use_gpu(round);
    }
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/true", "true", nullptr);
      _exit(9);
    }
    EXPECT(wait_for(child) == 0);
    EXPECT(std::system("true") == 0);
    std::puts("all good");
    return 0;
  }
  if (how == "thread") {
    std::vector<std::thread> threads;
    for (int number = 0; number < 8; ++number) {
      threads.emplace_back([number] {
        for (int round = 0; round < 20; ++round) use_gpu(number * 100 + round);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::puts("all good");
    return 0;
  }
  return 2;
}
