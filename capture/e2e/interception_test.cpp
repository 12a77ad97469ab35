// Every way in which an application submits kernels: it must not notice, and the snapshot must be right.

#include "capture/e2e/captured_memory.h"

namespace kerncap::capture {
namespace {

class Interception : public CapturedMemory {
 protected:
  // Twice, once without us: the application may not tell the difference. The snapshot must be whole.
  void compare(const std::vector<std::string>& argv) {
    const CapturedRun plain = runner_.run(argv, false);
    if (plain.process.exit_status == 77) GTEST_SKIP() << plain.process.standard_error;
    run_ = runner_.run(argv);
    EXPECT_EQ(run_.process.exit_status, plain.process.exit_status);
    EXPECT_EQ(run_.process.standard_output, plain.process.standard_output);
    EXPECT_EQ(run_.process.standard_error, plain.process.standard_error);
    ASSERT_NE(run_.only(), nullptr) << run_.process.standard_error;
    ASSERT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
    reader_.emplace(runner_.config.output);
    EXPECT_THAT(reader_->verify({}), ::testing::IsEmpty());
    EXPECT_TRUE(dispatch().has_after);
  }
};

// Order matters to what the program prints, and it ends with an exit status of its own.
class Submission : public Interception, public ::testing::WithParamInterface<std::string> {};

TEST_P(Submission, ChangesNothingForTheApplication) {
  runner_.config.pattern = "mix";
  runner_.config.dispatches = DispatchList::parse("1-2");
  runner_.environment["KERNCAP_TEST_DEVICES"] = "2";
  compare({KERNCAP_TEST_APPS "/submissions", GetParam()});
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_EQ(run_.process.exit_status, 3) << run_.process.standard_error;
  const std::uint64_t captured = GetParam().ends_with("multi_device") ? 1 : 2;  // it launches two, the others more
  EXPECT_EQ(reader_->manifest().dispatches.size(), captured);
}

TEST_P(Submission, IsProfiledWithoutAChange) {
  runner_.config.mode = Mode::profile;
  runner_.environment["KERNCAP_TEST_DEVICES"] = "2";
  const CapturedRun plain = runner_.run({KERNCAP_TEST_APPS "/submissions", GetParam()}, false);
  if (plain.process.exit_status == 77) GTEST_SKIP() << plain.process.standard_error;
  run_ = runner_.run({KERNCAP_TEST_APPS "/submissions", GetParam()});
  EXPECT_EQ(run_.process.exit_status, plain.process.exit_status) << run_.process.standard_error;
  EXPECT_EQ(run_.process.standard_output, plain.process.standard_output);
  ASSERT_NE(run_.only(), nullptr);
  for (const KernelStatus& k : run_.only()->kernels) {
    EXPECT_EQ(k.timed, k.dispatches) << k.symbol;
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, Submission,
                         ::testing::Values("priority", "cu_mask", "null_streams", "barriers", "graph", "graph_again",
                                           "two_devices", "multi_device", "cooperative_multi_device"),
                         [](const auto& each) { return each.param; });

// An application that writes its own packets: nine for one ring of the doorbell, barriers among them.
TEST_F(Interception, NinePacketsForOneDoorbellKeepTheirOrder) {
  runner_.config.pattern = "step";
  runner_.config.dispatches = DispatchList::parse("3");
  for (const char* kind : {"multi", "shut_down"}) {
    std::filesystem::remove_all(runner_.config.output);
    std::filesystem::remove_all(runner_.config.status_folder);
    std::filesystem::create_directory(runner_.config.status_folder);
    run_ = runner_.run({KERNCAP_TEST_APPS "/packets", KERNCAP_TEST_APPS "/packets.hsaco", kind}, false);
    const auto sum = run_.value("sum");
    run_ = runner_.run({KERNCAP_TEST_APPS "/packets", KERNCAP_TEST_APPS "/packets.hsaco", kind});
    EXPECT_EQ(run_.process.exit_status, 4) << run_.process.standard_error;
    EXPECT_EQ(run_.value("sum"), sum);
    ASSERT_NE(run_.only(), nullptr);
    ASSERT_EQ(run_.only()->state, StatusState::captured) << kind << run_.only()->reason;
    reader_.emplace(runner_.config.output);
    EXPECT_EQ(dispatch().kernel_index, 3u);
    // Three steps before it, and its own: from 1 each.
    const auto before = words(run_.value("address"), 8, State::before);
    const auto after = words(run_.value("address"), 8, State::after);
    for (std::uint32_t i = 0; i < 8; ++i) {
      std::uint32_t expected = 1;
      for (std::uint32_t number = 1; number <= 3; ++number) expected = expected * 31 + number + i;
      EXPECT_EQ(before[i], expected);
      EXPECT_EQ(after[i], expected * 31 + 4 + i);
    }
  }
}

TEST_F(Interception, AQueueOfOneProducerIsHeldAndReleased) {
  runner_.config.pattern = "step";
  const CapturedRun plain =
      runner_.run({KERNCAP_TEST_APPS "/packets", KERNCAP_TEST_APPS "/packets.hsaco", "single"}, false);
  run_ = runner_.run({KERNCAP_TEST_APPS "/packets", KERNCAP_TEST_APPS "/packets.hsaco", "single"});
  EXPECT_EQ(run_.process.exit_status, plain.process.exit_status) << run_.process.standard_error;
  EXPECT_EQ(run_.value("sum"), plain.value("sum"));
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
}

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
  runner_.config.dispatches = DispatchList::parse("0-99:3");
  CAPTURE_OR_RETURN("threads", "transform_atomic");
  EXPECT_THAT(run_.only()->notes, ::testing::IsEmpty());  // the other queues were idle each time
  ASSERT_EQ(reader_->manifest().dispatches.size(), 34u);
  for (std::size_t d = 0; d < 34; ++d) {
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
