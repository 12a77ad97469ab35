// What goes wrong around a capture: the application runs on, and nothing half-written has the name of a snapshot.
#include <sys/mount.h>

#include "capture/e2e/captured_memory.h"

namespace kerncap::capture {
namespace {

class Faults : public CapturedMemory {};

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

TEST_F(Faults, AFullDiskHarmsNobody) {
  const std::filesystem::path small = runner_.folder.path() / "small";
  std::filesystem::create_directory(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=48k") != 0) GTEST_SKIP() << "only root may mount a small disk";
  runner_.config.pattern = "transform";
  runner_.config.compression_level = 0;
  runner_.config.output = small / "out.kcap";
  run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", "device"});
  const bool empty = std::filesystem::is_empty(small);
  ::umount(small.c_str());
  EXPECT_EQ(run_.process.exit_status, 0) << run_.process.standard_error;
  ASSERT_NE(run_.only(), nullptr);
  EXPECT_EQ(run_.only()->state, StatusState::failed);
  EXPECT_THAT(run_.only()->reason, ::testing::HasSubstr("No space left"));
  EXPECT_TRUE(empty);
}

}  // namespace
}  // namespace kerncap::capture
