// What fails, over the stand-in runtime.
#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <sstream>

#include "capture/tests/stand_in_application.h"

namespace kerncap::capture {
namespace {

// A kernel that waits for something that only comes later, which the held application cannot give: the capture ends,
// the application goes on.
TEST_F(StandIn, AKernelThatNeverEndsIsLetGo) {
  config_.kernel_timeout_ms = 500;
  EXPECT_EQ(
      in_child([&](StandInRuntime& runtime) {
        static std::atomic<bool> go{false};
        OnLoad(&runtime.table(), 3, 0, nullptr);
        const auto kernels = runtime.load(std::vector<std::byte>(300, std::byte{7}), {{"change.kd", [](const void*) {
                                                                                         while (!go) ::usleep(1000);
                                                                                       }}});
        hsa_queue_t *queue = nullptr, *second = nullptr;
        for (hsa_queue_t** q : {&queue, &second})
          runtime.core().hsa_queue_create_fn(testing::gpu, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0, q);
        hsa_kernel_dispatch_packet_t p{};
        p.header = HSA_PACKET_TYPE_KERNEL_DISPATCH;
        p.kernel_object = kernels[0];
        void* arguments = nullptr;
        runtime.amd().hsa_amd_memory_pool_allocate_fn({testing::host_fine}, 4096, 0, &arguments);
        p.kernarg_address = arguments;
        p.completion_signal = testing::make_signal(1);
        runtime.submit(queue, {p});
        // Host work that waits for the kernel is not held for ever.
        if (runtime.core().hsa_memory_copy_fn(arguments, arguments, 16) != HSA_STATUS_SUCCESS) return 1;
        ::usleep(999999);  // the worker's 500 ms began later than the copy's
        if (testing::reaches_zero(p.completion_signal, 10)) return 2;
        go = true;
        if (!testing::reaches_zero(p.completion_signal, 20000)) return 3;
        OnUnload();
        const Reader reader(config_.output);
        const Dispatch& d = reader.manifest().dispatches.at(0);
        return !d.has_after && d.incomplete_reason.find("still running after 500 ms") != std::string::npos ? 0 : 4;
      }),
      0);
}

TEST_F(StandIn, AnErrorOfTheQueueKeepsTheStateBefore) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              static std::atomic<int> errors{0};
              static std::atomic<bool> go{false};
              OnLoad(&runtime.table(), 3, 0, nullptr);
              const auto kernels =
                  runtime.load(std::vector<std::byte>(300, std::byte{7}), {{"change.kd", [](const void*) {
                                                                              while (!go) ::usleep(1000);
                                                                            }}});
              hsa_queue_t* queue = nullptr;
              runtime.core().hsa_queue_create_fn(
                  testing::gpu, 64, HSA_QUEUE_TYPE_MULTI, [](hsa_status_t, hsa_queue_t*, void*) { ++errors; }, nullptr,
                  0, 0, &queue);
              hsa_kernel_dispatch_packet_t p{};
              p.header = HSA_PACKET_TYPE_KERNEL_DISPATCH;
              p.kernel_object = kernels[0];
              void* arguments = nullptr;
              runtime.amd().hsa_amd_memory_pool_allocate_fn({testing::host_fine}, 4096, 0, &arguments);
              std::memset(arguments, 0x5a, 4096);
              p.kernarg_address = arguments;
              runtime.submit(queue, {p});
              ::usleep(300000);
              runtime.report_error(queue, HSA_STATUS_ERROR_EXCEPTION);  // returns when the snapshot is whole
              if (errors != 1) return 1;
              const Reader reader(config_.output);
              const Dispatch& d = reader.manifest().dispatches.at(0);
              if (d.has_after || d.incomplete_reason.find("the queue reported an error") == std::string::npos) return 2;
              go = true;
              OnUnload();
              return reader.verify({}).empty() ? 0 : 3;
            }),
            0);
}

// RLIMIT_FSIZE sends SIGXFSZ, which ends a process by default: never because of our files. With the smaller limit not
// even the status can be written.
TEST_F(StandIn, ALimitOnTheSizeOfFilesHarmsNobody) {
  for (const rlim_t limit : {rlim_t{64} << 10, rlim_t{100}}) {
    forget();
    EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
                Application application(runtime);
                OnLoad(&runtime.table(), 3, 0, nullptr);
                application.start();
                const rlimit small{limit, limit};
                ::setrlimit(RLIMIT_FSIZE, &small);
                if (!application.launch()) return 1;
                OnUnload();
                return application.result_is(1) && !std::filesystem::exists(config_.output) ? 0 : 2;
              }),
              0)
        << limit;
    if (limit < 1000) continue;
    EXPECT_EQ(status().state, StatusState::failed);
    EXPECT_THAT(status().reason, ::testing::HasSubstr("File too large"));
  }
}

// One call after the other fails. The application's result must stay right, nothing may hang, and what is called a
// snapshot must be the truth.
TEST_F(StandIn, NoFailingCallOfTheRuntimeHarmsTheApplicationOrMakesAFalseSnapshot) {
  std::map<std::string, unsigned> calls;
  const auto calls_file = folder_.path() / "calls";
  ASSERT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              const int result = load_and_run(runtime, application);
              std::string text;
              for (const auto& [name, count] : runtime.calls()) text += fmt::format("{} {}\n", name, count);
              support::write_file_atomically(calls_file, text);
              return result;
            }),
            0);
  std::istringstream text(support::read_text_file(calls_file));
  for (std::string name; text >> name;) text >> calls[name];
  ASSERT_GT(calls.size(), 20u);
  unsigned tried = 0, captured = 0;
  for (const auto& [function, count] : calls) {
    for (unsigned n = 0; n < count; n += count < 12 ? 1 : count / 8) {
      forget();
      ++tried;
      EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
                  runtime.fail(function, n);
                  Application application(runtime);
                  if (const int result = load_and_run(runtime, application)) return result;
                  return std::filesystem::exists(config_.output) ? check_snapshot(config_.output, application) : 0;
                }),
                0)
          << function << " call " << n << ": " << status().reason;
      const Status s = status();
      captured += s.state == StatusState::captured;
      EXPECT_EQ(s.state == StatusState::captured, std::filesystem::exists(config_.output)) << function << " call " << n;
      // "armed": the kernel or its queue was never seen.
      if (s.state == StatusState::failed) {
        EXPECT_FALSE(s.reason.empty()) << function << " call " << n;
      }
    }
  }
  EXPECT_GT(tried, 60u);
  EXPECT_GT(captured, 10u);
  std::printf("%u failing calls tried, %u of them still gave a whole snapshot\n", tried, captured);
}

TEST_F(StandIn, NoFailingCallOfTheRuntimeHarmsAProfiledApplication) {
  config_.mode = Mode::profile;
  for (const char* function :
       {"queue_intercept_create", "queue_intercept_register", "signal_create", "profiling_enable", "profiling_time",
        "system_get_info", "iterate_agents", "iterate_agent_symbols", "symbol_get_info", "loader_iterate",
        "loader_info", "extension_table", "reader_create", "executable_freeze", "pool_allocate"}) {
    forget();
    EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
                runtime.fail(function, 0);
                Application application(runtime);
                return load_and_run(runtime, application);
              }),
              0)
        << function;
    EXPECT_EQ(status().state, StatusState::profiled) << function;
  }
}

}  // namespace
}  // namespace kerncap::capture
