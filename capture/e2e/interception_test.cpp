// Every way in which an application submits kernels: it must not notice, and the snapshot must be right.

#include "capture/e2e/captured_memory.h"

namespace kerncap::capture {
namespace {

class Interception : public CapturedMemory {};

TEST_F(Interception, AFloodOfLaunchesDuringACaptureIsWaitedFor) {
  runner_.config.pattern = "increment";
  runner_.config.dispatches = DispatchList::parse("1");
  run_ = runner_.run({KERNCAP_TEST_APPS "/launch_flood", "40000", "512"});
  EXPECT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  EXPECT_EQ(run_.value("result"), 40000u);
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
}

TEST_F(Interception, AKernelOfTheSecondDeviceTakesBothDevicesMemory) {
  runner_.config.pattern = "both";
  runner_.environment["KERNCAP_TEST_DEVICES"] = "2";
  run_ = runner_.run({KERNCAP_TEST_APPS "/devices"});
  if (run_.process.exit_status == 77) GTEST_SKIP() << "needs two devices";
  EXPECT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  ASSERT_NE(run_.only(), nullptr);
  ASSERT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
  reader_.emplace(runner_.config.output);
  ASSERT_EQ(reader_->manifest().agents.size(), 2u);
  EXPECT_EQ(dispatch().agent, 1);
  EXPECT_EQ(region(run_.value("first")).agent, 0);
  EXPECT_EQ(region(run_.value("second")).agent, 1);
  EXPECT_EQ(words(run_.value("second"), 256, State::after)[9], 2 * 9u + 1);
  EXPECT_EQ(words(run_.value("second"), 256, State::before)[9], 9u);
  EXPECT_EQ(words(run_.value("first"), 256, State::before)[9], 9u);
}

TEST_F(Interception, AGraphsKernelIsCaptured) {
  CAPTURE_OR_RETURN("graph", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
}

TEST_F(Interception, ACooperativeKernelIsCapturedOnItsQueue) {
  const CapturedRun plain = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "cooperative"}, false);
  if (plain.process.exit_status != 0) GTEST_SKIP() << "no cooperative launches here: " << plain.process.standard_error;
  CAPTURE_OR_RETURN("cooperative", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
}

TEST_F(Interception, KernelsOfSeveralHostThreadsAreCapturedOneByOne) {
  runner_.config.dispatches = DispatchList::parse("0-3");
  CAPTURE_OR_RETURN("threads", "transform_atomic");
  ASSERT_EQ(reader_->manifest().dispatches.size(), 4u);
  for (std::size_t d = 0; d < 4; ++d) {
    std::uint32_t sum_before = 0, sum_after = 0;
    for (const std::uint64_t address : run_.said["address"]) {
      sum_before += words(address, 16, State::before, d)[3];
      sum_after += words(address, 16, State::after, d)[3];
    }
    EXPECT_EQ(sum_after - sum_before, 64u) << d;  // its own work and nobody else's
  }
}

}  // namespace
}  // namespace kerncap::capture
