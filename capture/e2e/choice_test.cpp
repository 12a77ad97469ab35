// Which kernel, dispatch and process is captured or profiled, and what is said when none was.

#include "capture/e2e/captured_memory.h"

namespace kerncap::capture {
namespace {

class Choice : public CapturedMemory {};

TEST_F(Choice, AKernelThatIsNotSeenLeavesTheOthersNames) {
  runner_.config.pattern = "no_such_kernel";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0);
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::armed);
  EXPECT_FALSE(std::filesystem::exists(runner_.config.output));
  std::uint64_t dispatches = 0;
  for (const KernelStatus& k : run_.only()->kernels)
    if (k.demangled == "transform(unsigned int*, unsigned int)") dispatches = k.dispatches;
  EXPECT_EQ(dispatches, 1u);
}

TEST_F(Choice, SeveralLaunchedMatchesAreReported) {
  runner_.config.pattern = "transform*";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "streams"});
  EXPECT_EQ(run_.process.exit_status, 0);
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_TRUE(run_.only()->ambiguous);
  std::vector<std::string> launched;
  for (const KernelStatus& k : run_.only()->kernels)
    if (k.matches && k.dispatches > 0) launched.push_back(k.demangled);
  EXPECT_THAT(launched, ::testing::UnorderedElementsAre("transform(unsigned int*, unsigned int)",
                                                        "transform_atomic(unsigned int*, unsigned int)"));
}

TEST_F(Choice, MatchesThatAreOnlyLoadedDoNotMakeAPatternAmbiguous) {
  runner_.config.pattern = "transform*";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0);
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::captured);
  EXPECT_FALSE(run_.only()->ambiguous);
}

TEST_F(Choice, TooMuchMemoryIsRefusedAndTheApplicationRunsOn) {
  runner_.config.pattern = "transform";
  runner_.config.max_bytes = 1000;
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::failed);
  EXPECT_THAT(run_.only()->reason, ::testing::HasSubstr("--max-bytes"));
  EXPECT_FALSE(std::filesystem::exists(runner_.config.output));
}

TEST_F(Choice, AnotherCodeObjectOfTheSameKernelIsNotTaken) {
  runner_.config.pattern = "transform";
  runner_.config.code_object = "0000";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::armed);
}

TEST_F(Choice, ADispatchThatNeverComesLeavesWhatCame) {
  runner_.config.dispatches = DispatchList::parse("1,7");
  CAPTURE_OR_RETURN("atomic", "transform_atomic");
  EXPECT_EQ(run_.only()->captured, std::vector<std::uint64_t>{1});
  EXPECT_THAT(run_.only()->notes, ::testing::Contains(::testing::HasSubstr("ended before")));
}

TEST_F(Choice, AProcessThatWasNotChosenIsLeftAlone) {
  runner_.config.pattern = "transform";
  runner_.config.process = "*somebody_else";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0);
  EXPECT_TRUE(run_.statuses.empty());
}

TEST(Profile, CountsAndTimesEveryKernel) {
  testing::Runner runner;
  runner.config.mode = Mode::profile;
  const CapturedRun run = runner.run({KERNCAP_TEST_APPS "/memory_kinds", "streams"});
  EXPECT_EQ(run.process.exit_status, 0) << run.process.standard_error;
  ASSERT_NE(run.only(), nullptr);
  EXPECT_EQ(run.only()->state, StatusState::profiled);
  bool found = false;
  for (const KernelStatus& k : run.only()->kernels) {
    if (k.demangled != "transform_atomic(unsigned int*, unsigned int)") continue;
    found = true;
    EXPECT_EQ(k.dispatches, 40u);
    EXPECT_EQ(k.timed, 40u);
    EXPECT_GT(k.total_ns, 0u);
    EXPECT_GE(k.maximum_ns, k.minimum_ns);
    ASSERT_EQ(k.shapes.size(), 1u);
    EXPECT_EQ(k.shapes[0].grid[0], 1024u);
    EXPECT_EQ(k.shapes[0].dispatches, 40u);
    EXPECT_GT(k.vgprs, 0u);
    EXPECT_EQ(k.code_object.size(), 64u);
    EXPECT_EQ(k.dispatch_times.size(), 40u);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace kerncap::capture
