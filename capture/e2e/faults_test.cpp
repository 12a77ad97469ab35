// What goes wrong around a capture: the application runs on, and nothing half-written has the name of a snapshot.
#include <sys/mount.h>

#include <chrono>
#include <cstdlib>

#include "capture/e2e/captured_memory.h"

namespace kerncap::capture {
namespace {

class Faults : public CapturedMemory {
 protected:
  void clear_statuses() {
    std::filesystem::remove_all(runner_.config.status_folder);
    std::filesystem::create_directory(runner_.config.status_folder);
  }
};

TEST_F(Faults, AnExistingSnapshotIsNotTouchedWithoutReplace) {
  std::filesystem::create_directory(runner_.config.output);
  runner_.config.pattern = "transform";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0);
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::failed);
  EXPECT_THAT(run_.only()->reason, ::testing::HasSubstr("exists already"));
  EXPECT_TRUE(std::filesystem::is_empty(runner_.config.output));
}

// At any point: the disk is full after so many bytes, from before the first file up to the last.
TEST_F(Faults, ADiskThatIsFullAtAnyPointHarmsNobody) {
  const std::filesystem::path small = runner_.folder.path() / "small";
  std::filesystem::create_directory(small);
  runner_.config.pattern = "transform";
  runner_.config.compression_level = 0;
  runner_.config.output = small / "out.kcap";
  unsigned failed = 0, whole = 0;
  for (const unsigned kilobytes :
       {4, 8, 12, 16, 24, 32, 48, 64, 96, 160, 224, 288, 320, 352, 384, 416, 512, 1024, 2048}) {
    const std::string size = "size=" + std::to_string(kilobytes) + "k";
    if (::mount("tmpfs", small.c_str(), "tmpfs", 0, size.c_str()) != 0)
      GTEST_SKIP() << "only root may mount a small disk";
    clear_statuses();
    run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
    EXPECT_EQ(run_.process.exit_status, 0) << size << run_.process.standard_error;
    ASSERT_NE(run_.only(), nullptr);
    const bool captured = run_.only()->state == StatusState::captured;
    if (captured) {
      ++whole;
      EXPECT_THAT(Reader(runner_.config.output).verify({}), ::testing::IsEmpty()) << size;
    } else {
      ++failed;
      EXPECT_EQ(run_.only()->state, StatusState::failed) << size;
      EXPECT_THAT(run_.only()->reason, ::testing::HasSubstr("No space left")) << size;
      EXPECT_TRUE(std::filesystem::is_empty(small)) << size;
    }
    ::umount(small.c_str());
  }
  EXPECT_GT(failed, 5u);
  EXPECT_GT(whole, 0u);
}

// The status file, too, may meet the full disk: the application does not care.
TEST_F(Faults, AStatusThatCannotBeWrittenHarmsNobody) {
  runner_.config.status_folder = "/proc/no/such/folder";
  runner_.config.pattern = "transform";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  EXPECT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  EXPECT_TRUE(run_.statuses.empty());
}

// The application is killed at any moment, hundreds of times: what has the snapshot's name is a whole snapshot.
TEST_F(Faults, AnApplicationThatIsKilledAtAnyMomentLeavesNoHalfSnapshot) {
  runner_.config.pattern = "transform";
  const auto start = std::chrono::steady_clock::now();
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  const auto plain = std::chrono::steady_clock::now() - start;
  ASSERT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  const char* wanted = std::getenv("KERNCAP_TEST_KILLS");
  const unsigned kills = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 40;
  unsigned whole = 0, none = 0;
  for (unsigned k = 0; k < kills; ++k) {
    std::filesystem::remove_all(runner_.config.output);
    clear_statuses();
    // The first half of the time goes by before there is a kernel.
    runner_.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(plain / 2 + plain * k * 6 / 10 / kills);
    run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
    if (std::filesystem::exists(runner_.config.output)) {
      ++whole;
      const Reader reader(runner_.config.output);
      EXPECT_THAT(reader.verify({}), ::testing::IsEmpty()) << k;
      EXPECT_EQ(reader.manifest().dispatches.size(), 1u);
    } else {
      ++none;
    }
    // What is left beside it is hidden, and no snapshot.
    for (const auto& entry : std::filesystem::directory_iterator(runner_.folder.path())) {
      const std::string name = entry.path().filename();
      if (name == "out.kcap" || name == "status" || name == "config.json") continue;
      EXPECT_TRUE(name.starts_with(".")) << name;
      EXPECT_FALSE(std::filesystem::exists(entry.path() / "manifest.json") && !name.starts_with(".")) << name;
      std::filesystem::remove_all(entry.path());
    }
  }
  std::printf("%u times killed: %u whole snapshots, %u times none\n", kills, whole, none);
  EXPECT_GT(none, 0u);
}

// ---- processes -----------------------------------------------------------------------------------------------------

class Processes : public Faults {};

TEST_F(Processes, AForkAfterTheRuntimeStartedLeavesTheCaptureToTheParent) {
  CAPTURE_OR_RETURN("forked_after", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
}

TEST_F(Processes, AnExecAfterTheRuntimeStartedIsAProcessOfItsOwn) {
  runner_.config.pattern = "transform";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "exec_after"});
  ASSERT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  // The same process number twice: the first program launched nothing, the second was captured.
  ASSERT_EQ(run_.statuses.size(), 2u);
  EXPECT_EQ(run_.statuses[0].process, run_.statuses[1].process);
  std::vector<StatusState> states{run_.statuses[0].state, run_.statuses[1].state};
  EXPECT_THAT(states, ::testing::UnorderedElementsAre(StatusState::armed, StatusState::captured));
  reader_.emplace(runner_.config.output);
  expect_in_place(run_.value("address"), run_.value("words"));
}

TEST_F(Processes, AThreadThatEndsRightAfterItsLaunchIsCaptured) {
  CAPTURE_OR_RETURN("thread_ends", "transform");
  expect_in_place(run_.value("address"), run_.value("words"));
}

// Two processes of one command launch the same kernel: one is captured, the other is passive, both end well.
TEST_F(Processes, OneOfTwoIsCaptured) {
  runner_.config.pattern = "transform";
  run_ =
      runner_.run({"/bin/sh", "-c", "\"$1\" device > /dev/null & \"$1\" device > /dev/null; r=$?; wait $! && exit $r",
                   "sh", KERNCAP_TEST_APPS "/memory_kinds"});
  EXPECT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  ASSERT_EQ(run_.statuses.size(), 2u);
  std::vector<StatusState> states{run_.statuses[0].state, run_.statuses[1].state};
  EXPECT_THAT(states, ::testing::UnorderedElementsAre(StatusState::passive, StatusState::captured));
  EXPECT_THAT(Reader(runner_.config.output).verify({}), ::testing::IsEmpty());
}

TEST_F(Processes, ASecondCaptureReplacesTheFirstWhenAskedTo) {
  runner_.config.replace = true;
  CAPTURE_OR_RETURN("device", "transform");
  clear_statuses();
  runner_.config.dispatches = DispatchList::parse("2");
  CAPTURE_OR_RETURN("atomic", "transform_atomic");
  EXPECT_EQ(dispatch().kernel_index, 2u);
}

}  // namespace
}  // namespace kerncap::capture
