#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "capture/tests/stand_in_parts.h"

namespace kerncap::capture::testing {
namespace {

using Packet = hsa_kernel_dispatch_packet_t;

// ---- signals ------------------------------------------------------------------------------------------------------

struct HardwareQueue;
struct Signal {
  std::atomic<hsa_signal_value_t> value{0};
  HardwareQueue* doorbell_of = nullptr;
};
Signal& of(hsa_signal_t signal) { return *reinterpret_cast<Signal*>(signal.handle); }

hsa_status_t signal_create(hsa_signal_value_t value, std::uint32_t, const hsa_agent_t*, hsa_signal_t* out) {
  KERNCAP_COUNT();
  *out = make_signal(value);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t signal_destroy(hsa_signal_t signal) {
  KERNCAP_COUNT();
  delete &of(signal);
  return HSA_STATUS_SUCCESS;
}
hsa_signal_value_t signal_load(hsa_signal_t signal) { return of(signal).value.load(); }
hsa_signal_value_t signal_wait(hsa_signal_t signal, hsa_signal_condition_t, hsa_signal_value_t value,
                               std::uint64_t ticks, hsa_wait_state_t) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min<std::uint64_t>(ticks, 1000000000));
  while (of(signal).value.load() >= value && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return of(signal).value.load();
}

void signal_add(hsa_signal_t signal, hsa_signal_value_t value) { of(signal).value.fetch_add(value); }

// ---- queues -------------------------------------------------------------------------------------------------------

std::mutex kernels_mutex;
std::map<std::uint64_t, std::function<void(const void*)>> kernels;

struct HardwareQueue {
  hsa_queue_t queue{};
  std::vector<Packet> ring = std::vector<Packet>(64);
  std::atomic<std::uint64_t> write{0}, read{0};
  hsa_amd_queue_intercept_handler handler = nullptr;
  void* data = nullptr;
  void (*error_callback)(hsa_status_t, hsa_queue_t*, void*) = nullptr;
  void* error_data = nullptr;
  std::atomic<bool> destroyed{false};
  std::recursive_mutex ring_mutex;  // the runtime's queue lock
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Packet> submitted;

  HardwareQueue() {
    for (Packet& p : ring) p.header = HSA_PACKET_TYPE_INVALID;
    queue.base_address = ring.data();
    queue.size = static_cast<std::uint32_t>(ring.size());
    auto* doorbell = new Signal;
    doorbell->doorbell_of = this;
    queue.doorbell_signal.handle = reinterpret_cast<std::uint64_t>(doorbell);
    std::thread([this] { run(); }).detach();
  }

  void hardware(const void* packets, std::uint64_t count) {
    const std::lock_guard lock(mutex);
    const auto* p = static_cast<const Packet*>(packets);
    submitted.insert(submitted.end(), p, p + count);
    changed.notify_one();
  }

  void intercept(const Packet* packets, std::uint64_t count);

  void ring_doorbell() {
    const std::lock_guard lock(ring_mutex);
    while (read < write) {
      Packet& slot = ring[read % ring.size()];
      const std::uint16_t header = __atomic_load_n(&slot.header, __ATOMIC_ACQUIRE);
      if ((header & 0xff) == HSA_PACKET_TYPE_INVALID) break;
      const Packet copy = slot;
      slot.header = HSA_PACKET_TYPE_INVALID;
      ++read;
      intercept(&copy, 1);
    }
  }

  // In order, one packet after the other: the strictest queue that the specification allows.
  void run() {
    while (true) {
      Packet packet;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !submitted.empty(); });
        packet = submitted.front();
        submitted.pop_front();
      }
      if ((packet.header & 0xff) == HSA_PACKET_TYPE_BARRIER_AND) {
        hsa_barrier_and_packet_t barrier;
        std::memcpy(&barrier, &packet, sizeof barrier);
        for (const hsa_signal_t dependency : barrier.dep_signal)
          while (dependency.handle != 0 && of(dependency).value.load() > 0)
            std::this_thread::sleep_for(std::chrono::microseconds(20));
      } else {
        std::function<void(const void*)> kernel;
        {
          const std::lock_guard lock(kernels_mutex);
          kernel = kernels.at(packet.kernel_object);
        }
        kernel(packet.kernarg_address);
      }
      if (packet.completion_signal.handle != 0) of(packet.completion_signal).value.fetch_sub(1);
    }
  }
};

thread_local HardwareQueue* writing_queue = nullptr;
void write_packets(const void* packets, std::uint64_t count) { writing_queue->hardware(packets, count); }

void HardwareQueue::intercept(const Packet* packets, std::uint64_t count) {
  const std::lock_guard lock(ring_mutex);
  writing_queue = this;
  if (handler != nullptr)
    handler(packets, count, 0, data, write_packets);
  else
    hardware(packets, count);
  writing_queue = nullptr;
}

HardwareQueue& of(const hsa_queue_t* queue) {
  return *const_cast<HardwareQueue*>(reinterpret_cast<const HardwareQueue*>(queue));  // its first member
}

hsa_status_t queue_create(hsa_agent_t, std::uint32_t, hsa_queue_type32_t type,
                          void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data, std::uint32_t, std::uint32_t,
                          hsa_queue_t** out) {
  KERNCAP_COUNT();
  auto* queue = new HardwareQueue;
  queue->queue.type = type;
  queue->error_callback = callback;
  queue->error_data = data;
  *out = &queue->queue;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t queue_intercept_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                                    void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data, std::uint32_t p,
                                    std::uint32_t g, hsa_queue_t** out) {
  KERNCAP_COUNT();
  return queue_create(agent, size, type, callback, data, p, g, out);
}
hsa_status_t queue_intercept_register(hsa_queue_t* queue, hsa_amd_queue_intercept_handler handler, void* data) {
  KERNCAP_COUNT();
  of(queue).handler = handler;
  of(queue).data = data;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t queue_destroy(hsa_queue_t* queue) {
  KERNCAP_COUNT();
  of(queue).destroyed = true;
  return HSA_STATUS_SUCCESS;
}
HardwareQueue& living(const hsa_queue_t* queue) {
  if (of(queue).destroyed) counted("use_after_destroy");
  return of(queue);
}
std::uint64_t queue_load_write(const hsa_queue_t* queue) { return living(queue).write.load(); }
std::uint64_t queue_load_read(const hsa_queue_t* queue) { return living(queue).read.load(); }
std::uint64_t queue_add_write(const hsa_queue_t* queue, std::uint64_t n) { return living(queue).write.fetch_add(n); }

void signal_store(hsa_signal_t signal, hsa_signal_value_t value) {
  if (of(signal).doorbell_of != nullptr) return of(signal).doorbell_of->ring_doorbell();
  of(signal).value.store(value);
}

}  // namespace

void fill_queues(CoreApiTable& core, AmdExtTable& amd) {
  core.hsa_signal_create_fn = signal_create;
  core.hsa_signal_destroy_fn = signal_destroy;
  core.hsa_signal_add_relaxed_fn = signal_add;
  core.hsa_signal_load_scacquire_fn = signal_load;
  core.hsa_signal_wait_scacquire_fn = signal_wait;
  core.hsa_signal_store_relaxed_fn = signal_store;
  core.hsa_signal_store_screlease_fn = signal_store;
  core.hsa_queue_create_fn = queue_create;
  core.hsa_queue_destroy_fn = queue_destroy;
  core.hsa_queue_load_write_index_scacquire_fn = queue_load_write;
  core.hsa_queue_load_read_index_scacquire_fn = queue_load_read;
  core.hsa_queue_add_write_index_scacq_screl_fn = queue_add_write;
  amd.hsa_amd_queue_intercept_create_fn = queue_intercept_create;
  amd.hsa_amd_queue_intercept_register_fn = queue_intercept_register;
}

void set_kernel(std::uint64_t kernel_object, std::function<void(const void*)> run) {
  const std::lock_guard lock(kernels_mutex);
  kernels[kernel_object] = std::move(run);
}

void complete(hsa_signal_t signal) { of(signal).value.fetch_sub(1); }

void queue_error(hsa_queue_t* queue, hsa_status_t status) {
  if (of(queue).error_callback != nullptr) of(queue).error_callback(status, queue, of(queue).error_data);
}

void submit_packets(hsa_queue_t* queue, const void* packets, std::uint64_t count) {
  of(queue).intercept(static_cast<const Packet*>(packets), count);
}

hsa_signal_t make_signal(hsa_signal_value_t value) {
  auto* signal = new Signal;
  signal->value = value;
  return {reinterpret_cast<std::uint64_t>(signal)};
}

bool reaches_zero(hsa_signal_t signal, unsigned milliseconds) {
  for (unsigned i = 0; i < milliseconds * 10; ++i) {
    if (of(signal).value.load() <= 0) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return of(signal).value.load() <= 0;
}

}  // namespace kerncap::capture::testing
