// Which dispatches are taken, over the stand-in runtime.
#include <thread>

#include "capture/ranges.h"
#include "capture/tests/stand_in_application.h"

namespace kerncap::capture {
namespace {

TEST_F(StandIn, EveryDispatchInAListIsCapturedEvenWhenSubmittedAtOnce) {
  config_.dispatches = DispatchList::parse("0-2");
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const hsa_signal_t done = testing::make_signal(3);
              const auto p = application.packet(0, done);
              runtime.submit(application.queue_, {p, p});
              runtime.submit(application.second_, {p});
              if (!testing::reaches_zero(done, 20000)) return 1;
              OnUnload();
              if (!application.result_is(3)) return 2;
              return Reader(config_.output).manifest().dispatches.size() == 3 ? 0 : 3;
            }),
            0);
  EXPECT_EQ(status().captured, (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST_F(StandIn, MoreMemoryThanAllowedIsRefusedBeforeAnythingIsHeld) {
  config_.max_bytes = 100000;
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              if (const int result = load_and_run(runtime, application)) return result;
              return runtime.calls().contains("signal_create") ? 3 : 0;  // no gate was ever made
            }),
            0);
  EXPECT_EQ(status().state, StatusState::failed);
  EXPECT_THAT(status().reason, ::testing::HasSubstr("--max-bytes"));
}

TEST_F(StandIn, OnlyTheShapeThatWasAskedForIsCountedAndTaken) {
  config_.grid = ShapePattern::parse("128x*");
  config_.block = ShapePattern::parse("64");
  config_.dispatches = DispatchList::parse("1");
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const hsa_signal_t done = testing::make_signal(6);
              for (const std::uint32_t grid : {64u, 128u, 256u, 64u, 128u, 128u}) {
                auto packet = application.packet(0, done);
                packet.grid_size_x = grid;
                runtime.submit(application.queue_, {packet});
              }
              if (!testing::reaches_zero(done, 20000)) return 1;
              OnUnload();
              const Reader reader(config_.output);
              const Dispatch& d = reader.manifest().dispatches.at(0);
              return d.grid[0] == 128 && d.kernel_index == 4 && application.result_is(6) ? 0 : 2;
            }),
            0);
  EXPECT_EQ(status().captured, std::vector<std::uint64_t>{4});
  EXPECT_EQ(status().refused.by_shape, 3u);
  ASSERT_EQ(status().refused.shapes.size(), 2u);
  EXPECT_EQ(status().refused.shapes[0].grid[0], 64u);
  EXPECT_EQ(status().refused.shapes[0].dispatches, 2u);
}

TEST_F(StandIn, OnlyTheTimeThatWasAskedForCounts) {
  config_.after_ms = 300;
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const hsa_signal_t early = testing::make_signal(1), late = testing::make_signal(1);
              runtime.submit(application.queue_, {application.packet(0, early)});
              ::usleep(500000);
              runtime.submit(application.queue_, {application.packet(0, late)});
              if (!testing::reaches_zero(late, 20000)) return 1;
              OnUnload();
              return Reader(config_.output).manifest().dispatches.at(0).kernel_index == 1 ? 0 : 2;
            }),
            0);
  EXPECT_EQ(status().refused.by_time, 1u);
  forget();
  config_.after_ms = 0;
  config_.before_ms = 1;
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              ::usleep(20000);
              application.start();
              if (!application.launch()) return 1;
              OnUnload();
              return std::filesystem::exists(config_.output) ? 2 : 0;
            }),
            0);
  EXPECT_EQ(status().refused.by_time, 1u);
}

// A thread that marks ranges is judged by its own; one that never did, by anybody's; a started range counts everywhere.
TEST_F(StandIn, OnlyTheRangeThatWasAskedForCounts) {
  config_.range = "step *";
  config_.dispatches = DispatchList::parse("0-100");
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const auto launch = [&] {
                const hsa_signal_t done = testing::make_signal(1);
                runtime.submit(application.queue_, {application.packet(0, done)});
                return testing::reaches_zero(done, 20000);
              };
              const auto elsewhere = [&](bool marks) {
                std::thread([&] {
                  if (marks) {
                    ranges().push("other");
                    ranges().pop();
                  }
                  launch();
                }).join();
              };
              launch();  // 0: outside
              ranges().push("step 1");
              launch();  // 1: inside
              ranges().push("inner");
              launch();          // 2: inside, nested
              elsewhere(false);  // 3: inside, a helper's
              elsewhere(true);   // 4: outside, that thread's own ranges say so
              ranges().pop();
              ranges().pop();
              launch();  // 5: outside
              ranges().start(77, "step 2");
              elsewhere(true);  // 6: inside
              ranges().stop(77);
              launch();  // 7: outside
              std::thread([] { ranges().push("step 3"); }).join();
              elsewhere(false);  // 8: outside, whoever had it open has ended
              OnUnload();
              return application.result_is(9) ? 0 : 2;
            }),
            0);
  EXPECT_EQ(status().captured, (std::vector<std::uint64_t>{1, 2, 3, 6}));
  EXPECT_EQ(status().refused.by_range, 5u);
  EXPECT_THAT(status().refused.ranges, ::testing::ElementsAre("step 1", "inner", "other", "step 2", "step 3"));
}

}  // namespace
}  // namespace kerncap::capture
