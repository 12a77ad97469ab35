// A test that captures one program and looks into the snapshot.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "capture/e2e/captured_run.h"
#include "capture/ranges.h"
#include "core/snapshot/reader.h"

namespace kerncap::capture {

using snapshot::Dispatch;
using snapshot::Reader;
using snapshot::Region;
using snapshot::RegionKind;
using snapshot::State;
using testing::CapturedRun;

inline std::uint32_t pattern(std::uint32_t i, std::uint32_t seed = 5) { return i * 2654435761u + seed; }
inline std::uint32_t changed(std::uint32_t v) { return v * 3 + 1; }

class CapturedMemory : public ::testing::Test {
 protected:
  // Runs the program, expects its plain behaviour, and opens the snapshot.
  void capture(const std::string& kind, const std::string& kernel, int exit_status = 0) {
    runner_.config.pattern = kernel;
    run_ = runner_.run({KERNCAP_TEST_APPS "/memory_kinds", kind});
    if (run_.process.exit_status == 77)
      GTEST_SKIP() << "this machine has no such memory: " << run_.process.standard_error;
    ASSERT_EQ(run_.process.exit_status, exit_status) << run_.process.standard_error;
    ASSERT_NE(run_.only(), nullptr);
    ASSERT_EQ(run_.only()->state, StatusState::captured) << run_.only()->reason;
    reader_.emplace(runner_.config.output);
    EXPECT_THAT(reader_->verify({}), ::testing::IsEmpty());
    EXPECT_THAT(dispatch().not_captured, ::testing::IsEmpty());
  }

  const Dispatch& dispatch(std::size_t number = 0) const { return reader_->manifest().dispatches.at(number); }

  // Each dispatch has regions of its own: the application may allocate in between.
  std::optional<std::size_t> region_of(std::uint64_t address, std::size_t number = 0) const {
    const std::vector<Region>& regions = dispatch(number).regions;
    for (std::size_t r = 0; r < regions.size(); ++r)
      if (address - regions[r].address < regions[r].size) return r;
    return std::nullopt;
  }

  std::vector<std::uint32_t> words(std::uint64_t address, std::size_t count, State state,
                                   std::size_t number = 0) const {
    std::vector<std::uint32_t> out(count);
    const auto region = region_of(address, number);
    EXPECT_TRUE(region) << "no region covers " << std::hex << address;
    if (region)
      reader_->read(number, *region, state, address - dispatch(number).regions[*region].address,
                    std::as_writable_bytes(std::span(out)));
    return out;
  }

  // The kernel's words hold the pattern before, and what the kernel makes of it after.
  void expect_in_place(std::uint64_t address, std::size_t count) const {
    const auto before = words(address, count, State::before), after = words(address, count, State::after);
    std::size_t wrong_before = 0, wrong_after = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      wrong_before += before[i] != pattern(i);
      wrong_after += after[i] != changed(pattern(i));
    }
    EXPECT_EQ(wrong_before, 0u);
    EXPECT_EQ(wrong_after, 0u);
  }

  const Region& region(std::uint64_t address) const { return dispatch().regions.at(region_of(address).value()); }

  testing::Runner runner_;
  CapturedRun run_;
  std::optional<Reader> reader_;
};

#define CAPTURE_OR_RETURN(...)                    \
  do {                                            \
    capture(__VA_ARGS__);                         \
    if (HasFatalFailure() || IsSkipped()) return; \
  } while (0)

}  // namespace kerncap::capture
