// Other queues around a held kernel, over the stand-in runtime.
#include "capture/tests/stand_in_application.h"

namespace kerncap::capture {
namespace {

TEST_F(StandIn, WorkOfAnotherQueueThatWaitsForTheKernelHoldsNothingUp) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const hsa_signal_t done = testing::make_signal(1), after = testing::make_signal(1);
              runtime.submit(application.queue_, {application.packet(0, done)});
              hsa_barrier_and_packet_t wait{};
              wait.header = HSA_PACKET_TYPE_BARRIER_AND | (1 << HSA_PACKET_HEADER_BARRIER);
              wait.dep_signal[0] = done;
              wait.completion_signal = after;
              hsa_kernel_dispatch_packet_t raw;
              std::memcpy(&raw, &wait, sizeof raw);
              runtime.submit(application.second_, {raw});
              if (!testing::reaches_zero(done, 20000) || !testing::reaches_zero(after, 20000)) return 1;
              OnUnload();
              if (!application.result_is(1)) return 2;
              return check_snapshot(config_.output, application);
            }),
            0);
  EXPECT_THAT(status().notes, ::testing::IsEmpty());
}

// Several queues, on each of which several held kernels stand: a queue that waits for a later capture is idle.
TEST_F(StandIn, QueuesOfHeldKernelsDoNotWaitForEachOther) {
  config_.dispatches = DispatchList::parse("0-29");
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              hsa_queue_t* third = nullptr;
              runtime.core().hsa_queue_create_fn(testing::gpu, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0,
                                                 &third);
              const hsa_signal_t done = testing::make_signal(30);
              for (unsigned i = 0; i < 10; ++i)
                for (hsa_queue_t* queue : {application.queue_, application.second_, third})
                  runtime.submit(queue, {application.packet(0, done)});
              if (!testing::reaches_zero(done, 50000)) return 1;
              OnUnload();
              if (!application.result_is(30)) return 2;
              return Reader(config_.output).manifest().dispatches.size() == 30 ? 0 : 3;
            }),
            0);
  EXPECT_THAT(status().notes, ::testing::IsEmpty());  // each was idle
}

TEST_F(StandIn, ManyCapturesLeaveNoSignalBehind) {
  config_.dispatches = DispatchList::parse("0-19");
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const hsa_signal_t done = testing::make_signal(40);
              for (unsigned i = 0; i < 20; ++i) {
                runtime.submit(application.queue_, {application.packet(0, done)});
                runtime.submit(application.second_, {application.packet(1, done)});
              }
              if (!testing::reaches_zero(done, 50000)) return 1;
              OnUnload();
              if (Reader(config_.output).manifest().dispatches.size() != 20) return 3;
              const auto calls = runtime.calls();
              if (calls.at("signal_create") < 100) return 4;
              return calls.at("signal_create") == calls.at("signal_destroy") ? 0 : 5;
            }),
            0);
}

TEST_F(StandIn, AQueueThatNeverDrainsIsNotedAndCapturedAsItIs) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              // It waits for something that comes after the captured kernel only.
              const hsa_signal_t later = testing::make_signal(1), after = testing::make_signal(1);
              hsa_barrier_and_packet_t wait{};
              wait.header = HSA_PACKET_TYPE_BARRIER_AND | (1 << HSA_PACKET_HEADER_BARRIER);
              wait.dep_signal[0] = later;
              wait.completion_signal = after;
              hsa_kernel_dispatch_packet_t raw;
              std::memcpy(&raw, &wait, sizeof raw);
              runtime.submit(application.second_, {raw});
              const hsa_signal_t done = testing::make_signal(1);
              runtime.submit(application.queue_, {application.packet(0, done)});
              if (!testing::reaches_zero(done, 20000)) return 1;
              runtime.core().hsa_signal_store_screlease_fn(later, 0);
              if (!testing::reaches_zero(after, 20000)) return 2;
              OnUnload();
              return application.result_is(1) ? check_snapshot(config_.output, application) : 3;
            }),
            0);
  EXPECT_THAT(status().notes, ::testing::Contains(::testing::HasSubstr("1 other queues were not idle")));
}

TEST_F(StandIn, AQueueThatIsGoneIsNotAskedToDrain) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              hsa_queue_t* third = nullptr;
              runtime.core().hsa_queue_create_fn(testing::gpu, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0,
                                                 &third);
              const hsa_signal_t done = testing::make_signal(1);
              runtime.submit(third, {application.packet(1, done)});
              if (!testing::reaches_zero(done, 20000)) return 1;
              runtime.core().hsa_queue_destroy_fn(third);
              if (!application.launch()) return 2;
              OnUnload();
              if (runtime.calls().contains("use_after_destroy")) return 3;
              return check_snapshot(config_.output, application);
            }),
            0);
}

}  // namespace
}  // namespace kerncap::capture
