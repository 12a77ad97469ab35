#include "softgpu/shared_usage.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kerncap::softgpu {
namespace {

std::string machine_of_this_test() { return "test-" + std::to_string(getpid()); }

TEST(SharedUsage, SeesWhatOthersOfTheMachineUse) {
  SharedUsage first(machine_of_this_test()), second(machine_of_this_test());
  first.own(0) = 1000;
  first.own(3) = 50;
  second.own(0) = 7;
  EXPECT_EQ(second.others(0), 1000u);
  EXPECT_EQ(first.others(0), 7u);
  EXPECT_EQ(second.others(3), 50u);
  EXPECT_EQ(second.others(1), 0u);
}

TEST(SharedUsage, OtherMachinesAndPrivateOnesAreNotSeen) {
  SharedUsage here(machine_of_this_test()), elsewhere(machine_of_this_test() + "-other"), alone("");
  here.own(0) = 1;
  elsewhere.own(0) = 10;
  alone.own(0) = 100;
  EXPECT_EQ(here.others(0), 0u);
  EXPECT_EQ(elsewhere.others(0), 0u);
  EXPECT_EQ(alone.others(0), 0u);
}

TEST(SharedUsage, AKilledProcessLeavesNothing) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    SharedUsage usage("test-" + std::to_string(getppid()));
    usage.own(0) = 4096;
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  SharedUsage usage(machine_of_this_test());
  EXPECT_EQ(usage.others(0), 4096u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(usage.others(0), 0u);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace kerncap::softgpu
