#include "capture/profiler.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "capture/companion.h"
#include "capture/session.h"

namespace kerncap::capture {
namespace {

constexpr std::size_t most_signals = 65536;  // 8 MiB of them; what is in flight beyond is counted and not timed
constexpr std::size_t most_shapes = 16, most_times = 4096;

}  // namespace

void Profiler::rewrite(Queue& queue, const KernelObject& kernel, const hsa_kernel_dispatch_packet_t& packet,
                       std::uint64_t index, std::vector<hsa_kernel_dispatch_packet_t>& out) {
  const CoreApiTable& core = runtime().core;
  hsa_kernel_dispatch_packet_t ours = packet;
  {
    const std::lock_guard lock(mutex_);
    Kernel& known_kernel = kernels_[kernel.record->number];
    known_kernel.kernel_object = kernel.kernel_object;
    KernelStatus& k = known_kernel.status;
    const std::uint64_t kernel_index = k.dispatches++;
    KernelStatus::Shape shape{{packet.grid_size_x, packet.grid_size_y, packet.grid_size_z},
                              {packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z},
                              0};
    auto known = std::find_if(k.shapes.begin(), k.shapes.end(), [&](const auto& s) {
      return std::equal(s.grid, s.grid + 3, shape.grid) && std::equal(s.workgroup, s.workgroup + 3, shape.workgroup);
    });
    if (known == k.shapes.end() && k.shapes.size() < most_shapes) known = k.shapes.insert(known, shape);
    if (known != k.shapes.end()) ++known->dispatches;

    hsa_signal_t signal{};
    if (!free_signals_.empty()) {
      signal = free_signals_.back();
      free_signals_.pop_back();
    } else if (signals_ < most_signals &&
               core.hsa_signal_create_fn(1, 1, &queue.agent, &signal) == HSA_STATUS_SUCCESS) {
      ++signals_;
    }
    if (signal.handle == 0) {  // counted, not timed
      out.push_back(packet);
      return;
    }
    if (!started_) {
      sigset_t all, old;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &old);
      std::thread([this] { run(); }).detach();
      ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
      started_ = true;
    }
    in_flight_.push_back({signal, queue.agent, kernel.record->number, kernel_index, index});
    ours.completion_signal = signal;
  }
  work_.notify_one();
  out.push_back(ours);
  if (packet.completion_signal.handle == 0) return;
  // The application's signal follows when the kernel is done. A barrier bit instead of a dependency on our signal,
  // which may be in use again by the time that the barrier is looked at.
  hsa_barrier_and_packet_t follow = barrier({}, packet.completion_signal);
  constexpr std::uint16_t scopes =
      (3u << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE) | (3u << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
  follow.header |= packet.header & scopes;
  std::memcpy(&out.emplace_back(), &follow, sizeof follow);
}

void Profiler::run() noexcept {
  auto published = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return !in_flight_.empty(); });
    const InFlight item = in_flight_.front();
    busy_ = true;
    lock.unlock();
    collect(item);
    if (const auto now = std::chrono::steady_clock::now(); now - published > std::chrono::seconds(2)) {
      published = now;
      session_.publish();  // so that a process that is killed leaves its numbers
    }
    lock.lock();
    busy_ = false;
    if (in_flight_.empty()) idle_.notify_all();
  }
}

// Waits for the oldest dispatch. One that never ends keeps this thread waiting and nobody else.
void Profiler::collect(const InFlight& item) {
  const CoreApiTable& core = runtime().core;
  const std::uint64_t ticks = session_.agents().ticks_per_second();
  // A signal whose only consumer is the GPU has no interrupt event, of which a process has few: it is looked at.
  auto pause = std::chrono::microseconds(10);
  while (core.hsa_signal_load_scacquire_fn(item.signal) >= 1) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
  }
  hsa_amd_profiling_dispatch_time_t time{};
  const bool timed =
      runtime().amd.hsa_amd_profiling_get_dispatch_time_fn(item.agent, item.signal, &time) == HSA_STATUS_SUCCESS &&
      time.end >= time.start;
  const auto ns =
      static_cast<std::uint64_t>(static_cast<double>(time.end - time.start) * 1e9 / static_cast<double>(ticks));
  const std::lock_guard lock(mutex_);
  in_flight_.pop_front();
  core.hsa_signal_store_relaxed_fn(item.signal, 1);
  free_signals_.push_back(item.signal);
  if (!timed) return;
  KernelStatus& k = kernels_[item.record].status;
  k.minimum_ns = k.timed == 0 ? ns : std::min(k.minimum_ns, ns);
  if (k.timed == 0 || ns > k.maximum_ns) {
    k.maximum_ns = ns;
    k.slowest = item.kernel_index;
  }
  ++k.timed;
  k.total_ns += ns;
  if (k.dispatch_times.size() < most_times) k.dispatch_times.push_back({item.kernel_index, item.index, ns});
}

void Profiler::fill(Status& status) {
  const auto records = session_.code.records();
  const std::lock_guard lock(mutex_);
  for (const auto& [number, kernel] : kernels_) {
    KernelStatus k = kernel.status;
    k.symbol = records[number]->symbol;
    k.demangled = records[number]->demangled;
    k.matches = records[number]->matches;
    status.kernels.push_back(std::move(k));
  }
  std::sort(status.kernels.begin(), status.kernels.end(),
            [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
}

void Profiler::finish() {
  {
    std::unique_lock lock(mutex_);
    if (started_) idle_.wait_for(lock, std::chrono::seconds(30), [&] { return in_flight_.empty() && !busy_; });
  }
  // Registers, LDS and scratch stand in the code objects' metadata.
  std::map<std::string, CodeDescription> described;
  const auto records = session_.code.records();
  for (const LoadedCode& load : session_.code.loads()) {
    const std::lock_guard lock(mutex_);
    for (auto& [number, kernel] : kernels_) {
      if (kernel.kernel_object - load.base >= load.size || !kernel.status.code_object.empty()) continue;
      try {
        kernel.status.code_object = session_.code.digest(load);
        auto found = described.find(kernel.status.code_object);
        if (found == described.end())
          found = described
                      .emplace(kernel.status.code_object,
                               companion().describe(session_.code.bytes(load), kernel.status.code_object))
                      .first;
        for (const codeobject::Kernel& k : found->second.kernels) {
          if (k.symbol != records[number]->symbol) continue;
          kernel.status.sgprs = k.sgprs;
          kernel.status.vgprs = k.vgprs;
          kernel.status.agprs = k.agprs;
          kernel.status.group_segment_size = k.group_segment_size;
          kernel.status.private_segment_size = k.private_segment_size;
        }
      } catch (const std::exception& error) {
        session_.note(error.what());
      }
    }
  }
}

}  // namespace kerncap::capture
