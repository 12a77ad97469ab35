// The size of device memory is the card's, whichever process holds it.
//   vram alone         the rest of the memory can be had, more cannot
//   vram two           another process holds three quarters; when it is killed they are free again
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "check.h"

static size_t total() {
  size_t free_bytes = 0, all = 0;
  HIP_OK(hipMemGetInfo(&free_bytes, &all));
  return all;
}

static bool can_have(size_t bytes) {
  void* memory = nullptr;
  const hipError_t error = hipMalloc(&memory, bytes);
  if (error == hipSuccess) HIP_OK(hipFree(memory));
  EXPECT(error == hipSuccess || error == hipErrorOutOfMemory);
  return error == hipSuccess;
}

int main(int count, char** arguments) {
  const std::string how = count > 1 ? arguments[1] : "";
  if (how == "hold") {
    void* memory = nullptr;
    HIP_OK(hipMalloc(&memory, total() / 4 * 3));
    EXPECT(write(STDOUT_FILENO, "x", 1) == 1);
    pause();
    return 0;
  }
  if (how == "alone") {
    void* memory = nullptr;
    HIP_OK(hipMalloc(&memory, total() / 4 * 3));
    EXPECT(!can_have(total() / 2));
    EXPECT(can_have(total() / 8));
    HIP_OK(hipFree(memory));
    EXPECT(can_have(total() / 2));
  } else {
    int ready[2];
    EXPECT(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // where this test fails, too
      dup2(ready[1], STDOUT_FILENO);
      execl("/proc/self/exe", arguments[0], "hold", nullptr);
      _exit(9);
    }
    char byte = 0;
    EXPECT(read(ready[0], &byte, 1) == 1 && byte == 'x');
    EXPECT(!can_have(total() / 2));
    EXPECT(can_have(total() / 8));
    size_t free_bytes = 0, all = 0;
    HIP_OK(hipMemGetInfo(&free_bytes, &all));
#if HIP_VERSION_MAJOR >= 6  // before, HIP subtracts what this process has from the total and asks nobody
    EXPECT(free_bytes <= all / 4);
#endif
    kill(child, SIGKILL);
    EXPECT(waitpid(child, nullptr, 0) == child);
    EXPECT(can_have(total() / 2));
  }
  std::puts("all good");
}
