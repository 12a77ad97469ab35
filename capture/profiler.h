// Mode::profile: every dispatch is timed by the device, with a completion signal of ours.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "capture/queues.h"
#include "capture/status.h"

namespace kerncap::capture {

class Session;

class Profiler {
 public:
  explicit Profiler(Session& session) : session_(session) {}

  // In a packet callback; never blocks. Writes the packet with our signal, and a barrier for the application's.
  void rewrite(Queue& queue, const KernelObject& kernel, const hsa_kernel_dispatch_packet_t& packet,
               std::uint64_t index, std::vector<hsa_kernel_dispatch_packet_t>& out);

  void fill(Status& status);  // the numbers so far
  void finish();              // at exit: waits for what was submitted, then asks the code objects for registers and LDS

 private:
  struct InFlight {
    hsa_signal_t signal{};
    hsa_agent_t agent{};
    std::uint32_t record = 0;
    std::uint64_t kernel_index = 0, index = 0;
  };
  void run() noexcept;
  void collect(const InFlight& item);

  Session& session_;
  std::mutex mutex_;  // everything below
  std::condition_variable work_, idle_;
  std::deque<InFlight> in_flight_;
  std::vector<hsa_signal_t> free_signals_;
  std::size_t signals_ = 0;
  bool started_ = false, busy_ = false;
  struct Kernel {
    KernelStatus status;
    std::uint64_t kernel_object = 0;
  };
  std::map<std::uint32_t, Kernel> kernels_;  // by KernelRecord::number
};

}  // namespace kerncap::capture
