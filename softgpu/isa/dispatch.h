// Running a dispatch: workgroups become resident, their waves take turns, several threads may help.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <random>

#include "softgpu/execution.h"
#include "softgpu/isa/code_cache.h"
#include "softgpu/isa/kernel_info.h"

namespace kerncap::softgpu::isa {

// Waves and engines are large; they are kept for the next dispatch.
class Pool {
 public:
  std::unique_ptr<Engine> take_engine();
  void give(std::unique_ptr<Engine> engine);
  std::unique_ptr<Wave> take_wave();
  void give(std::unique_ptr<Wave> wave);
  ~Pool();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::unique_ptr<Wave>> waves_;
};

// A barrier or semaphore of global wave sync.
struct GlobalSync {
  i32 counter = 0;
  u32 waiting = 0;
  bool flag = false;
};

// What outlives a dispatch.
struct DeviceState {
  static constexpr unsigned sync_resources = 64;
  static constexpr std::size_t gds_bytes = 65536;
  std::mutex mutex;
  std::array<GlobalSync, sync_resources> sync{};
  std::vector<std::byte> gds;  // global data share, made with its first use
};

// How long the resident workgroups have done nothing but wait: for other workgroups, queues or the host, or for ever.
struct Waiting {
  u64 polling_slices = 0, blocked_slices = 0;  // in a row, without one that computes or ends
  u64 since = 0;                               // CLOCK_MONOTONIC when the row began, nanoseconds
  bool told = false;
};

struct DispatchState {
  DispatchRequest request;
  DeviceState* device = nullptr;
  KernelInfo kernel;
  CodeCache* code = nullptr;
  const Target* target = nullptr;
  Pool* pool = nullptr;
  std::array<u32, 3> groups{};
  u64 total_groups = 0, private_bytes = 0, lds_bytes = 0;
  u32 waves_per_group = 0;

  std::mutex mutex;
  std::atomic<DispatchStatus> status{DispatchStatus::running};
  DispatchError error;
  DispatchCounters counters;
  u64 next_group = 0, finished_groups = 0;
  std::deque<std::unique_ptr<Workgroup>> ready;  // started, with no thread at the moment
  u64 running = 0, resident = 0, wanted_resident = 1, unfinished_slices = 0;
  Waiting waiting;
  std::mt19937_64 random;

  void report(DispatchError what);
};

// Sets up a workgroup's waves as the hardware does: AMDGPUUsage, "Initial Kernel Execution State".
std::unique_ptr<Workgroup> make_workgroup(DispatchState& state, u64 number);

class RunningDispatch final : public Dispatch {
 public:
  // `active` counts the dispatches that exist.
  RunningDispatch(const DispatchRequest& request, const Target& target, Pool& pool, DeviceState& device,
                  std::atomic<unsigned>& active);
  ~RunningDispatch() override;
  // Before the first advance(): the code cache, and a refusal of the packet if there is one.
  void set_code(CodeCache* code) { state_.code = code; }
  const KernelInfo& kernel() const { return state_.kernel; }
  bool refused() const { return state_.status.load() != DispatchStatus::running; }

  DispatchStatus advance(std::uint64_t instructions) noexcept override;
  DispatchError error() const override;
  DispatchCounters counters() const override;

 private:
  std::unique_ptr<Workgroup> take(bool& none_left);
  void give_back(std::unique_ptr<Workgroup> group);
  u64 run_slice(Workgroup& group, Engine& engine, u64 budget);
  void judge_waiting(const Workgroup& group);  // under the state's mutex, for a group that is ready again

  std::atomic<unsigned>& active_;
  mutable DispatchState state_;
};

}  // namespace kerncap::softgpu::isa
