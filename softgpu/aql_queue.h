// The packet processor of AQL queues: HSA Runtime Specification 1.2, section 2.9 "Architected Queuing Language
// packets", and AMD's vendor packets (hsa_amd_vendor_packet_header_t in <hsa/hsa_ext_amd.h>).
#pragma once

#include <memory>

#include "softgpu/queue.h"

namespace kerncap::softgpu {

struct AqlOptions {
  bool counters = false;  // one JSON line on standard error per dispatch
};

class AqlQueue : public Queue, private DispatchHost {
 public:
  AqlQueue(Device& device, Events& events, const QueueDescription& description, const AqlOptions& options)
      : Queue(device, events, description), options_(options) {}

  // One packet is in flight at a time, in order; a barrier that is not satisfied leaves the thread free at once.
  Progress advance(std::uint64_t instructions) noexcept override;

 private:
  struct Running {
    std::unique_ptr<Dispatch> dispatch;
    DispatchRequest request;
    std::uint64_t start = 0;
    std::atomic<bool> busy{false};  // with a seed, one thread at a time: else its order could not be reproduced
  };
  enum class Step { next, wait, running, stopped };

  Progress process_packets() noexcept;
  Step process(std::uint64_t address, std::byte* packet, std::uint64_t index) noexcept;
  Step process_vendor(std::byte* packet) noexcept;
  Step start(std::uint64_t address, const std::byte* packet, std::uint64_t index) noexcept;
  void finish(Running& running, DispatchStatus status) noexcept;
  void retire(std::byte* packet, std::uint64_t index, std::uint64_t start, std::uint64_t end) noexcept;
  Step refuse(abi::QueueException exception, const std::string& why) noexcept;
  bool signal_value(std::uint64_t signal, std::int64_t* value) noexcept;
  void print_counters(const Running& running, std::uint64_t end) noexcept;

  std::uint64_t timestamp() noexcept override { return gpu_ticks(); }
  void interrupt(std::uint32_t event_id) noexcept override { events_.set(event_id); }

  AqlOptions options_;
  bool active_ = false;               // rung, and not yet drained
  std::shared_ptr<Running> running_;  // under mutex_
};

}  // namespace kerncap::softgpu
