// The ways on which the library gets into an application beside HSA_TOOLS_LIB: rocprofiler-register, rocprofiler-sdk's
// tools, and both at once; and ROCTX ranges, which come by a preloaded library or by rocprofiler-register.
#include "capture/e2e/captured_memory.h"

namespace kerncap::capture {
namespace {

class Loading : public CapturedMemory {
 protected:
  Loading() {
    runner_.config.pattern = "transform";
    runner_.environment[config_variable] = (runner_.folder.path() / "config.json").string();
    runner_.environment["HSA_TOOLS_LIB"] = KERNCAP_TEST_REGISTER;
    runner_.environment["HSA_TOOLS_REPORT_LOAD_FAILURE"] = "1";
    runner_.environment["KERNCAP_TEST_SAY"] = "1";
    for (const char* name : {"HSA_TOOLS_ROCPROFILER_V1_TOOLS", "ROCP_TOOL_LIBRARIES", "ROCPROFILER_REGISTER_LIBRARY"})
      runner_.environment[name] = std::nullopt;
  }

  void run_device() {
    run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"}, false);
    ASSERT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  }

  void expect_whole_snapshot() {
    ASSERT_NE(run_.only(), nullptr) << run_.process.standard_error;
    ASSERT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
    reader_.emplace(runner_.config.output);
    EXPECT_THAT(reader_->verify({}), ::testing::IsEmpty());
    expect_in_place(run_.value("address"), run_.value("words"));
  }
  const std::string library_ = KERNCAP_TEST_LIBRARIES "/libkerncap-capture.so";
};

TEST_F(Loading, ByRocprofilerRegister) {
  runner_.environment["ROCPROFILER_REGISTER_LIBRARY"] = library_;
  run_device();
  EXPECT_THAT(run_.process.standard_error, ::testing::HasSubstr("the tables are registered"));
  expect_whole_snapshot();
}

TEST_F(Loading, ByRocprofilerRegisterAndTheOldWayAtOnce) {
  runner_.environment["ROCPROFILER_REGISTER_LIBRARY"] = library_;
  runner_.environment["HSA_TOOLS_ROCPROFILER_V1_TOOLS"] = "1";
  runner_.environment["KERNCAP_TEST_V1_TOOL"] = library_;
  run_device();
  EXPECT_THAT(run_.process.standard_error, ::testing::HasSubstr("loaded the old way, too"));
  expect_whole_snapshot();
}

TEST_F(Loading, TheOldWayWhereRegisteringFindsNoTool) {
  runner_.environment["KERNCAP_TEST_V1_TOOL"] = library_;
  run_device();
  EXPECT_THAT(run_.process.standard_error, ::testing::HasSubstr("no tool was found"));
  expect_whole_snapshot();
}

TEST_F(Loading, AsAToolOfRocprofilerSdk) {
  runner_.environment["ROCP_TOOL_LIBRARIES"] = library_;
  run_device();
  EXPECT_THAT(run_.process.standard_error, ::testing::HasSubstr("configured a tool"));
  expect_whole_snapshot();
}

TEST_F(Loading, ProfilesByRocprofilerRegister) {
  runner_.environment["ROCPROFILER_REGISTER_LIBRARY"] = library_;
  runner_.config.mode = Mode::profile;
  run_device();
  ASSERT_NE(run_.only(), nullptr);
  std::uint64_t timed = 0;
  for (const KernelStatus& k : run_.only()->kernels)
    if (k.demangled == "transform(unsigned int*, unsigned int)") timed = k.timed;
  EXPECT_EQ(timed, 1u);
}

// ---- ROCTX ---------------------------------------------------------------------------------------------------------

class RangeOfRoctx : public Loading {
 protected:
  RangeOfRoctx() {
    runner_.config.pattern = "increment";
    runner_.config.dispatches = DispatchList::parse("0-");
  }
  void run_ranges() {
    run_ = runner_.run({KERNCAP_TEST_APPS "/ranges"}, false);
    ASSERT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
    // The application's own ROCTX library saw every call, and answered it.
    EXPECT_EQ(run_.value("calls"), 2211u);
    EXPECT_EQ(run_.value("levels"), 11u);
    EXPECT_EQ(run_.value("result"), 5u);
    ASSERT_NE(run_.only(), nullptr) << run_.process.standard_error;
  }
  void preload() {
    runner_.environment["HSA_TOOLS_LIB"] = library_;
    runner_.environment[range_variable] = runner_.config.range;
    runner_.preload = KERNCAP_TEST_LIBRARIES "/libkerncap-ranges.so";
  }
};

TEST_F(RangeOfRoctx, PushedIsFoundByThePreloadedLibrary) {
  runner_.config.range = "step *";
  preload();
  run_ranges();
  EXPECT_EQ(run_.only()->captured, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_THAT(run_.only()->refused.ranges, ::testing::ElementsAre("step 1", "part", "whole"));
  reader_.emplace(runner_.config.output);
  EXPECT_EQ(words(run_.value("address"), 64, State::before)[7], 1u);
}

TEST_F(RangeOfRoctx, StartedIsFoundByThePreloadedLibrary) {
  runner_.config.range = "whole";
  preload();
  run_ranges();
  EXPECT_EQ(run_.only()->captured, std::vector<std::uint64_t>{3});
}

TEST_F(RangeOfRoctx, IsFoundThroughItsRegisteredTable) {
  runner_.config.range = "part";
  runner_.environment["ROCPROFILER_REGISTER_LIBRARY"] = library_;
  runner_.environment["KERNCAP_TEST_ROCTX_REGISTERS"] = "1";
  run_ranges();
  EXPECT_EQ(run_.only()->captured, std::vector<std::uint64_t>{2});
}

TEST_F(RangeOfRoctx, IsFoundOnBothWaysAtOnce) {
  runner_.config.range = "[ws]*";
  preload();
  runner_.environment["HSA_TOOLS_LIB"] = KERNCAP_TEST_REGISTER;
  runner_.environment["ROCPROFILER_REGISTER_LIBRARY"] = library_;
  runner_.environment["KERNCAP_TEST_ROCTX_REGISTERS"] = "1";
  run_ranges();
  EXPECT_EQ(run_.only()->captured, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_F(RangeOfRoctx, ThatWasNeverOpenedIsSaid) {
  runner_.config.range = "no such range";
  preload();
  run_ranges();
  EXPECT_EQ(run_.only()->state, StatusState::armed);
  EXPECT_EQ(run_.only()->refused.by_range, 5u);
  EXPECT_FALSE(std::filesystem::exists(runner_.config.output));
}

}  // namespace
}  // namespace kerncap::capture
