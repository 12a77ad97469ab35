// Queues of the application, made as intercept queues, and what becomes of the packets on them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "capture/code_registry.h"
#include "capture/runtime_table.h"

namespace kerncap::capture {

struct Queue {
  hsa_queue_t* queue = nullptr;  // as the application knows it
  hsa_agent_t agent{};
  hsa_queue_type32_t type = 0;
  void (*error_callback)(hsa_status_t, hsa_queue_t*, void*) = nullptr;  // the application's
  void* error_data = nullptr;
  std::atomic<bool> alive{true};
  std::atomic<bool> used{false};              // has seen a packet
  std::atomic<unsigned> pending{0};           // captures whose packets lie gated on this queue
  std::atomic<std::uint64_t> gated_epoch{0};  // the last capture whose gate holds this queue's further packets
  std::atomic<std::uint64_t> gate_wanted{0};  // the capture that wants the next packet to be gated without a drain mark

  // kernel_object -> KernelObject, because the registry has a lock. Used under the runtime's queue lock only.
  struct Known {
    std::uint64_t kernel_object = 0;
    const KernelObject* object = nullptr;
  };
  std::array<Known, 64> known{};
  std::uint64_t known_generation = 0;
};

const char* queue_type_name(hsa_queue_type32_t type);

// The packets that a capture puts around a kernel.
hsa_barrier_and_packet_t barrier(hsa_signal_t dependency, hsa_signal_t completion);
hsa_barrier_and_packet_t drain_mark(
    hsa_signal_t completion);  // by a worker, on another queue; the callback adds the gate

bool tables_are_ours(const HsaApiTable& table);  // replaced before and not reset since
void replace_queue_functions(HsaApiTable& table);

}  // namespace kerncap::capture
