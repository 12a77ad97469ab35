// What is found in memory, and what of it is gone, over the stand-in runtime.
#include <atomic>
#include <thread>

#include "capture/tests/stand_in_application.h"

namespace kerncap::capture {
namespace {

TEST_F(StandIn, EveryKindOfMemoryIsCapturedWithItsKind) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              if (const int result = load_and_run(runtime, application)) return result;
              if (application.buffers.size() != 12) return 20;
              if (const int result = check_snapshot(config_.output, application)) return result;
              const Reader reader(config_.output);
              const Dispatch& d = reader.manifest().dispatches.at(0);
              for (const Buffer& buffer : application.buffers) {
                bool right = false;
                for (const auto& r : d.regions)
                  right |= reinterpret_cast<std::uint64_t>(buffer.data) - r.address < r.size && r.kind == buffer.kind;
                if (!right) {
                  std::fprintf(stderr, "%s has another kind\n", buffer.name.c_str());
                  return 21;
                }
              }
              // Its flags are those of the pool that the handle was made from.
              for (const auto& r : d.regions)
                if (r.kind == RegionKind::vmem && r.pool_flags != 2) return 25;
              // The unmapped half of a mapping is gone, the other half is there.
              const auto hole = reinterpret_cast<std::uint64_t>(application.reservation_ + (8 << 20));
              bool in_hole = false, behind = false;
              for (const auto& r : d.regions) {
                in_hole |= hole - r.address < r.size;
                behind |= hole + (1 << 20) - r.address < r.size;
              }
              if (in_hole || !behind) return 22;
              if (d.device_time != 2500u || d.kernel_index != 0 || d.index != 1) return 23;
              for (const auto& p : d.code_pointers)
                if (p.address == application.code_pointer && p.symbol == "other.kd") return 0;
              return 24;
            }),
            0);
  EXPECT_EQ(status().state, StatusState::captured) << status().reason;
}

TEST_F(StandIn, FreedDetachedAndUnlockedMemoryIsGone) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              std::vector<std::uint64_t> gone;
              std::vector<Buffer> kept;
              for (const Buffer& b : application.buffers) {
                gone.push_back(reinterpret_cast<std::uint64_t>(b.data));
                if (b.name == "device_coarse" || b.name == "host_fine")
                  runtime.amd().hsa_amd_memory_pool_free_fn(b.data);
                else if (b.name == "region")
                  runtime.core().hsa_memory_free_fn(b.data);
                else if (b.name.starts_with("locked"))
                  runtime.amd().hsa_amd_memory_unlock_fn(b.data);
                else if (b.name == "ipc")
                  runtime.amd().hsa_amd_ipc_memory_detach_fn(b.data);
                else if (b.name == "interop")
                  runtime.amd().hsa_amd_interop_unmap_buffer_fn(b.data);
                else if (b.name == "vmem")
                  runtime.tail()->vmem_unmap(b.data, 1 << 20);
                else if (b.name == "svm")
                  ::munmap(b.data, words * 4);
                else
                  gone.pop_back();
              }
              const hsa_signal_t done = testing::make_signal(1);
              auto packet = application.packet(0, done);
              Arguments nothing{nullptr, 0};
              void* p = nullptr;
              runtime.amd().hsa_amd_memory_pool_allocate_fn({testing::host_fine}, 4096, 0, &p);
              std::memcpy(p, &nothing, sizeof nothing);
              packet.kernarg_address = p;
              runtime.submit(application.queue_, {packet});
              if (!testing::reaches_zero(done, 20000)) return 1;
              OnUnload();
              const Reader reader(config_.output);
              for (const auto& r : reader.manifest().dispatches.at(0).regions)
                for (const std::uint64_t address : gone)
                  if (address - r.address < r.size) return 2;
              return gone.size() == 9 ? 0 : 3;
            }),
            0);
}

// The host writes over a buffer right after the launch, in every way that goes through the runtime: the snapshot still
// has what the kernel saw, and the application gets what it asked for.
TEST_F(StandIn, HostCopiesWaitUntilTheKernelIsCaptured) {
  const std::vector<std::byte> junk(words * 4, std::byte{0x55});
  const std::pair<const char*, std::function<void(StandInRuntime&, void*)>> ways[] = {
      {"hsa_memory_copy", [&](auto& r, void* to) { r.core().hsa_memory_copy_fn(to, junk.data(), junk.size()); }},
      {"hsa_amd_memory_fill", [&](auto& r, void* to) { r.amd().hsa_amd_memory_fill_fn(to, 0x55555555, words); }},
      {"hsa_amd_memory_async_copy",
       [&](auto& r, void* to) {
         r.amd().hsa_amd_memory_async_copy_fn(to, testing::gpu, junk.data(), testing::cpu, junk.size(), 0, nullptr,
                                              testing::make_signal(1));
       }},
      {"hsa_amd_memory_async_copy_on_engine",
       [&](auto& r, void* to) {
         r.middle()->memory_async_copy_on_engine(to, testing::gpu, junk.data(), testing::cpu, junk.size(), 0, nullptr,
                                                 testing::make_signal(1), 1, false);
       }},
      {"hsa_amd_memory_async_copy_rect", [&](auto& r, void* to) {
         const hsa_pitched_ptr_t target{to, junk.size(), 0},
             source{const_cast<std::byte*>(junk.data()), junk.size(), 0};
         const hsa_dim3_t zero{}, range{static_cast<std::uint32_t>(junk.size()), 1, 1};
         r.amd().hsa_amd_memory_async_copy_rect_fn(&target, &zero, &source, &zero, &range, testing::gpu,
                                                   hsaHostToDevice, 0, nullptr, testing::make_signal(1));
       }}};
  for (const auto& [name, overwrite] : ways) {
    forget();
    EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
                Application application(runtime);
                OnLoad(&runtime.table(), 3, 0, nullptr);
                application.start();
                const hsa_signal_t done = testing::make_signal(1);
                runtime.submit(application.queue_, {application.packet(0, done)});
                overwrite(runtime, application.buffers[0].data);
                if (!testing::reaches_zero(done, 20000)) return 1;
                OnUnload();
                if (application.buffers[0].data[100] != 0x55555555) return 2;
                return check_snapshot(config_.output, application);
              }),
              0)
        << name;
  }
}

// Nobody can stop a host thread's stores. What never stands still is declared; the application gets what it would.
TEST_F(StandIn, HostMemoryThatIsWrittenWhileTheKernelIsHeldIsDeclared) {
  constexpr int stood_still = 50;
  // On a machine under load the writer may get no turn while the memory is read: then it stood still.
  int result = stood_still;
  for (int attempt = 0; attempt < 10 && result == stood_still; ++attempt) {
    forget();
    result = in_child([&](StandInRuntime& runtime) {
      Application application(runtime);
      OnLoad(&runtime.table(), 3, 0, nullptr);
      application.start();
      void* p = nullptr;
      runtime.amd().hsa_amd_memory_pool_allocate_fn({testing::host_coarse}, 128 << 20, 0, &p);
      auto* word = reinterpret_cast<std::atomic<std::uint32_t>*>(static_cast<char*>(p) + (300 << 10));
      std::atomic<bool> stop{false};
      std::thread writer([&] {
        while (!stop) ++*word;
      });
      const bool good = application.launch();
      stop = true;
      writer.join();
      OnUnload();
      if (!good || !application.result_is(1)) return 1;
      const Reader reader(config_.output);
      if (!reader.verify({}).empty()) return 10;
      const auto missing = reader.manifest().dispatches.at(0).not_captured;
      const auto address = reinterpret_cast<std::uint64_t>(p) + (300 << 10);
      if (missing.empty()) return stood_still;
      // Its own 64 KiB and nothing else.
      if (missing.size() != 1 || address - missing[0].address >= missing[0].size || missing[0].size != 65536) return 11;
      return missing[0].reason.find("host thread kept writing") != std::string::npos ? 0 : 12;
    });
  }
  EXPECT_EQ(result, 0);
}

TEST_F(StandIn, CodeThatWasUnloadedIsGone) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              OnLoad(&runtime.table(), 3, 0, nullptr);
              const auto old = runtime.load(std::vector<std::byte>(300, std::byte{9}), {{"change.kd", change}});
              runtime.unload();
              Application application(runtime);
              application.start();
              if (!application.launch()) return 1;
              OnUnload();
              const Reader reader(config_.output);
              const Dispatch& d = reader.manifest().dispatches.at(0);
              for (const auto& r : d.regions)
                if (old[0] - r.address < r.size) return 3;
              return d.loads.size() == 1 ? check_snapshot(config_.output, application) : 4;
            }),
            0);
}

TEST_F(StandIn, CodeWhoseMemoryTheApplicationTookBackIsCapturedAsItWas) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              runtime.take_code_back();
              if (!application.launch()) return 1;
              OnUnload();
              const Reader reader(config_.output);
              const auto bytes = reader.code_object(reader.manifest().dispatches.at(0).code_object);
              return bytes == std::vector<std::byte>(300, std::byte{7}) ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace kerncap::capture
