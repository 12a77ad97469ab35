#include "replay/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace kerncap::replay {
namespace {

TEST(ForEachParallel, does_each_piece_once) {
  std::vector<std::atomic<int>> done(1000);
  for_each_parallel(
      done.size(), [&](std::size_t i) { ++done[i]; }, 7);
  for (const auto& one : done) EXPECT_EQ(one, 1);
  for_each_parallel(0, [](std::size_t) { FAIL(); });
}

TEST(ForEachParallel, throws_the_first_failure_and_stops) {
  std::atomic<int> done{0};
  const auto work = [&](std::size_t i) {
    if (i == 3) throw std::runtime_error("three");
    ++done;
  };
  EXPECT_THROW(for_each_parallel(1'000'000, work, 4), std::runtime_error);
  EXPECT_LT(done, 1'000'000);
}

}  // namespace
}  // namespace kerncap::replay
