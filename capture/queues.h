// Queues of the application, made as intercept queues, and what becomes of the packets on them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

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
  std::atomic<bool> used{false};  // has seen a packet

  // The last capture whose gate holds this queue's further packets. Written under the runtime's queue lock.
  std::atomic<std::uint64_t> gated_epoch{0};

  // Where captures hold this queue, in the order of its packets: what is before such a place is done when `drained` is.
  struct Held {
    std::uint64_t epoch = 0;
    hsa_signal_t drained{};
  };
  std::mutex held_mutex;
  std::vector<Held> held;
  void hold(std::uint64_t epoch, hsa_signal_t drained);  // throws bad_alloc
  // The first place at which a capture from `epoch` on holds the queue; epoch 0 when there is none.
  Held held_from(std::uint64_t epoch);
  void forget_holds(std::uint64_t last_epoch);  // those captures are over

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
// The worker's, on another queue; the callback adds the gate.
hsa_barrier_and_packet_t drain_mark(hsa_signal_t completion);

bool tables_are_ours(const HsaApiTable& table);  // replaced before and not reset since

// The GPU as the only consumer: no interrupt event, of which a process has few (4096 with the KFD driver) and which
// belong to the application. Such signals are looked at, not waited on. Throws Error{environment}.
hsa_signal_t new_signal(hsa_agent_t gpu);

void replace_queue_functions(HsaApiTable& table);

}  // namespace kerncap::capture
