// The packet processor of AQL queues: HSA Runtime Specification 1.2, section 2.9 "Architected Queuing Language
// packets", and AMD's vendor packets (hsa_amd_vendor_packet_header_t in <hsa/hsa_ext_amd.h>).
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "softgpu/queue.h"

namespace kerncap::softgpu {

struct AqlOptions {
  bool counters = false;                // one JSON line on standard error per dispatch
  std::uint64_t patience = 0;           // passed to every dispatch
  std::function<void()> before_kernel;  // brings the page tables up to date
};

class AqlQueue : public Queue, private DispatchHost {
 public:
  AqlQueue(Device& device, Events& events, const QueueDescription& description, const AqlOptions& options)
      : Queue(device, events, description), options_(options) {}

  // Packets are looked at in order. A kernel whose packet has no barrier bit may start beside those before it;
  // everything else waits for them to end. A barrier that is not satisfied leaves the thread free at once.
  Progress advance(std::uint64_t instructions) noexcept override;

 private:
  struct Running {
    std::unique_ptr<Dispatch> dispatch;
    DispatchRequest request;
    std::uint64_t start = 0;
    bool ended = false;             // its signal has fired; its slot is freed in order
    std::atomic<bool> busy{false};  // with a seed, one thread at a time: else its order could not be reproduced
  };
  enum class Step { next, wait, running, stopped };

  Progress process_packets() noexcept;
  Step process(std::uint64_t address, std::byte* packet, std::uint64_t index) noexcept;
  Step process_vendor(std::byte* packet) noexcept;
  bool may_overlap(const std::byte* packet) const noexcept;
  Step start(std::uint64_t address, const std::byte* packet, std::uint64_t index) noexcept;
  void finish(Running& running, DispatchStatus status) noexcept;
  void retire(std::byte* packet, std::uint64_t index, std::uint64_t start, std::uint64_t end) noexcept;
  bool free_slot(std::uint64_t address, std::uint64_t index) noexcept;
  Step refuse(abi::QueueException exception, const std::string& why) noexcept;
  bool signal_value(std::uint64_t signal, std::int64_t* value) noexcept;
  void print_counters(const Running& running, std::uint64_t end) noexcept;

  std::uint64_t timestamp() noexcept override { return gpu_ticks(); }
  void interrupt(std::uint32_t event_id) noexcept override { events_.set(event_id); }
  void notice(const std::string& text) noexcept override;

  AqlOptions options_;
  bool active_ = false;                           // rung, and not yet drained
  std::deque<std::shared_ptr<Running>> running_;  // of consecutive packets, from the read index on; under mutex_
  std::size_t turn_ = 0;                          // which of them is next
};

}  // namespace kerncap::softgpu
