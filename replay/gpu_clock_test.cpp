#include "replay/gpu_clock.h"

#include <gtest/gtest.h>

#include "core/support/file.h"

namespace kerncap::replay {
namespace {

TEST(GpuClock, IsReadWhereTheDriverTellsIt) {
  const support::TemporaryFolder device;
  const auto monitor = device.path() / "hwmon" / "hwmon3";
  std::filesystem::create_directories(monitor);
  EXPECT_FALSE(shader_clock_file(device.path())) << "no file yet";
  support::write_file_atomically(monitor / "freq1_input", "1700000000\n");
  support::write_file_atomically(monitor / "freq1_label", "sclk\n");
  const auto file = shader_clock_file(device.path());
  ASSERT_TRUE(file);
  EXPECT_EQ(read_clock(*file), 1.7e9);
}

TEST(GpuClock, AnotherFrequencyOrNonsenseIsNoReading) {
  const support::TemporaryFolder device;
  const auto monitor = device.path() / "hwmon" / "hwmon0";
  std::filesystem::create_directories(monitor);
  support::write_file_atomically(monitor / "freq1_input", "asleep\n");
  support::write_file_atomically(monitor / "freq1_label", "mclk\n");
  EXPECT_FALSE(shader_clock_file(device.path()));
  EXPECT_FALSE(read_clock(monitor / "freq1_input"));
  EXPECT_FALSE(read_clock(monitor / "none"));
}

TEST(GpuClock, NamesADeviceAsSysfsDoes) { EXPECT_EQ(pci_name(0, 0xc100), "0000:c1:00.0"); }

}  // namespace
}  // namespace kerncap::replay
