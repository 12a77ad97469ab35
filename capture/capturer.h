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

// A matched dispatch, held on its queue: drained -> gate -> kernel -> done -> release.
struct Request {
  Queue* queue = nullptr;
  const KernelObject* kernel = nullptr;
  hsa_kernel_dispatch_packet_t packet{};  // as the application wrote it
  std::uint64_t index = 0, kernel_index = 0, epoch = 0;
  hsa_signal_t drained{}, gate{}, done{}, release{};
};

class Capturer {
 public:
  explicit Capturer(Session& session);
  ~Capturer();

  // In a packet callback: decides and never blocks. When the dispatch is wanted, the request's signals exist, the
  // worker knows of it, and the caller must write the packets of rewrite().
  bool take(Queue& queue, const KernelObject& kernel, const hsa_kernel_dispatch_packet_t& packet, std::uint64_t index,
            std::uint64_t kernel_index, Request& request);
  static void rewrite(const Request& request, std::vector<hsa_kernel_dispatch_packet_t>& packets);

  // The gate of the capture under way for packets of other queues; epoch 0 when nothing is under way.
  struct Gate {
    std::uint64_t epoch = 0;
    hsa_signal_t release{};
  };
  Gate current_gate() const;
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
  std::string device_failure_;
};

}  // namespace kerncap::capture
