// Device printf goes through ROCm's host call service: mailbox, interrupt, and a host thread that answers.
#include "check.h"

__global__ void speak(int number) { printf("thread %d of block %d says %s %d\n", static_cast<int>(threadIdx.x), static_cast<int>(blockIdx.x), "hello", number); }

int main() {
  speak<<<2, 3>>>(42);
  HIP_OK(hipDeviceSynchronize());
  std::puts("all good");
}
