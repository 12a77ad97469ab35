// Mode::capture: from the moment when a packet of the wanted kernel passes, to the snapshot under its name.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capture/code_registry.h"
#include "capture/queues.h"
#include "capture/runtime_table.h"
#include "core/snapshot/manifest.h"

namespace kerncap::capture {

class Session;
class SnapshotTaker;

// A matched dispatch, held on its queue: drained -> gate -> kernel -> done -> release -> passed.
struct Request {
  Queue* queue = nullptr;
  const KernelObject* kernel = nullptr;
  hsa_kernel_dispatch_packet_t packet{};      // as the application wrote it
  std::uint64_t index = 0, kernel_index = 0;  // among all dispatches of the process, among the kernel's
  std::uint64_t number = 0;                   // among those that the session's selection accepts
  std::uint64_t epoch = 0;
  // `passed` counts the barriers that name `release` and have not completed.
  hsa_signal_t drained{}, gate{}, done{}, release{}, passed{};
};

class Capturer {
 public:
  explicit Capturer(Session& session);
  ~Capturer();

  // In a packet callback: decides and never blocks. The caller has filled in the numbers of the request. When the
  // dispatch is taken, the request's signals exist, the worker knows of it, and the caller must write the packets of
  // rewrite().
  bool take(Queue& queue, const KernelObject& kernel, const hsa_kernel_dispatch_packet_t& packet, Request& request);
  static void rewrite(const Request& request, std::vector<hsa_kernel_dispatch_packet_t>& packets);

  // For packets of other queues: the capture under way holds them, too. A caller that joins must write a barrier on
  // `release` that completes `passed`; `drained`, when it is a signal, is the capture's to destroy from then on. Epoch
  // 0: that capture is over, and nothing was joined.
  struct Gate {
    std::uint64_t epoch = 0;
    hsa_signal_t release{}, passed{};
  };
  Gate join_gate(std::uint64_t epoch, hsa_signal_t drained);
  std::uint64_t current_epoch() const { return active_epoch_.load(std::memory_order_acquire); }

  // The runtime reports that the device faulted: the kernel under way will not complete. Returns when what is known of
  // it has been written, or after a while.
  void device_failed(const std::string& reason);

  // Asks the runtime to tell us of memory faults; once, when the first queue exists.
  void watch_device();

  void finish();  // at exit: works off what is queued, then commits what there is

 private:
  void run() noexcept;
  void set_gate(const Request& request);  // with mutex_ held
  void set_next_gate();                   // likewise
  void process(Request& request) noexcept;
  void capture(Request& request, snapshot::Dispatch& dispatch);
  void drain_other_queues(const Request& request);
  void retire(const Request& request, std::vector<hsa_signal_t> joined);
  void free_retired() noexcept;  // the worker's or, when that is idle, finish()'s
  void commit();
  std::string device_failure() const;

  Session& session_;
  std::unique_ptr<SnapshotTaker> taker_;  // the worker's
  std::atomic<std::uint64_t> active_epoch_{0};
  std::atomic<bool> watching_{false};
  mutable std::mutex mutex_;  // everything below
  std::condition_variable work_, idle_;
  std::deque<Request> queue_;
  bool busy_ = false, started_ = false;
  const KernelRecord* chosen_ = nullptr;  // the first kernel of which a dispatch was taken
  std::uint64_t epoch_ = 0;
  Gate gate_;
  std::vector<hsa_signal_t> joined_;  // what the current capture has put into other queues
  // Signals of captures that are over: packets on some queue may still name them until `passed` is 0.
  struct Retired {
    hsa_signal_t passed{};
    std::vector<hsa_signal_t> complete;  // each gets to 0 by a packet
    std::vector<hsa_signal_t> others;
  };
  std::vector<Retired> retired_;
  std::string device_failure_;
};

}  // namespace kerncap::capture
