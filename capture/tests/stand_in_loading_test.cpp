// Getting the tables of every runtime, in every process, over the stand-in runtime.
#include <array>

#include "capture/tests/stand_in_application.h"

namespace kerncap::capture {
namespace {

TEST_F(StandIn, ARuntimeWithSmallerTablesIsLeftAsItIs) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              runtime.core().version.minor_id = offsetof(CoreApiTable, hsa_executable_freeze_fn);
              const auto create = runtime.core().hsa_queue_create_fn;
              OnLoad(&runtime.table(), 3, 0, nullptr);
              return runtime.core().hsa_queue_create_fn == create ? 0 : 1;
            }),
            0);
}

TEST_F(StandIn, TheRegisteringWayTakesTheTablesAndEndsWithTheLastShutDown) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              void* table = &runtime.table();
              rocprofiler_set_api_table("hsa", 70000, 0, &table, 1);
              OnLoad(&runtime.table(), 3, 0, nullptr);  // on the second way, too: once is enough
              runtime.core().hsa_init_fn();
              application.start();
              if (!application.launch()) return 1;
              runtime.core().hsa_shut_down_fn();
              runtime.core().hsa_shut_down_fn();
              if (!application.result_is(1)) return 2;
              if (runtime.calls().at("shut_down") != 2 || runtime.calls().at("queue_intercept_create") != 2) return 4;
              return check_snapshot(config_.output, application);
            }),
            0);
  EXPECT_EQ(status().state, StatusState::captured) << status().reason;
}

TEST_F(StandIn, TheTablesOfEveryReleaseAreRead) {
  // Those of ROCr 5.0 to 5.4, 5.5, 5.6 and 5.7; 6.0, 6.1, 6.2, 6.3 and 7.
  for (const ApiTableVersion version :
       {ApiTableVersion{1, amd_table_size(48), 0, 0}, ApiTableVersion{1, amd_table_size(51), 0, 0},
        ApiTableVersion{1, amd_table_size(55), 0, 0}, ApiTableVersion{2, amd_table_size(67), 0, 0},
        ApiTableVersion{2, amd_table_size(68), 1, 0}, ApiTableVersion{2, amd_table_size(70), 2, 0},
        ApiTableVersion{2, amd_table_size(71), 4, 0}, ApiTableVersion{2, amd_table_size(74), 7, 0}}) {
    forget();
    EXPECT_EQ(in_child(
                  [&](StandInRuntime& runtime) {
                    Application application(runtime);
                    if (const int result = load_and_run(runtime, application)) return result;
                    if (application.buffers.size() != (version.major_id < 2 ? 11u : 12u)) return 20;
                    return check_snapshot(config_.output, application);
                  },
                  version),
              0)
        << version.major_id << " of " << version.minor_id << " bytes: " << status().reason;
    EXPECT_EQ(status().state, StatusState::captured) << status().reason;
  }
}

TEST_F(StandIn, ATableOfAnUnknownLayoutIsLeftAsItIsAndTheStatusSaysSo) {
  for (const ApiTableVersion version :
       {ApiTableVersion{1, amd_table_size(50), 0, 0}, ApiTableVersion{3, amd_table_size(74), 0, 0},
        ApiTableVersion{2, amd_table_size(66), 0, 0}}) {
    forget();
    EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
                runtime.table().amd_ext_->version = version;
                const auto create = runtime.core().hsa_queue_create_fn;
                OnLoad(&runtime.table(), 3, 0, nullptr);
                rocprofiler_set_api_table("hsa", 70000, 0, std::array<void*, 1>{&runtime.table()}.data(), 1);
                return runtime.core().hsa_queue_create_fn == create ? 0 : 1;
              }),
              0);
    EXPECT_EQ(status().state, StatusState::failed);
    EXPECT_THAT(status().reason, ::testing::HasSubstr("layout"));
  }
}

TEST_F(StandIn, ABrokenConfigurationHarmsNobody) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              ::setenv(config_variable, "/nowhere/config.json", 1);
              const auto create = runtime.core().hsa_queue_create_fn;
              return OnLoad(&runtime.table(), 3, 0, nullptr) && runtime.core().hsa_queue_create_fn == create ? 0 : 1;
            }),
            0);
}

TEST_F(StandIn, AForkedChildOnlyPassesOn) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const pid_t child = ::fork();
              if (child == 0) {
                void* p = nullptr;
                runtime.amd().hsa_amd_memory_pool_allocate_fn({testing::device_coarse}, 4096, 0, &p);
                ::_exit(runtime.amd().hsa_amd_memory_pool_free_fn(p) == HSA_STATUS_SUCCESS ? 0 : 1);
              }
              int status = 0;
              ::waitpid(child, &status, 0);
              if (status != 0) return 3;
              if (!application.launch()) return 1;
              OnUnload();
              return application.result_is(1) ? check_snapshot(config_.output, application) : 2;
            }),
            0);
}

}  // namespace
}  // namespace kerncap::capture
