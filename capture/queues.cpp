#include "capture/queues.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "capture/capturer.h"
#include "capture/profiler.h"
#include "capture/session.h"
#include "core/support/error.h"

#include <fmt/format.h>

namespace kerncap::capture {
namespace {

using Packet = hsa_kernel_dispatch_packet_t;  // every AQL packet has its size
static_assert(sizeof(Packet) == 64 && sizeof(hsa_barrier_and_packet_t) == 64);

// Marks a barrier as ours in its reserved word, while it travels from the worker to the callback on another queue.
constexpr std::uint64_t drain_magic = 0x314e494152444b43;  // "CKDRAIN1"

constexpr std::uint16_t barrier_header =
    (HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE) | (1u << HSA_PACKET_HEADER_BARRIER);

unsigned packet_type(const Packet& packet) {
  return (packet.header >> HSA_PACKET_HEADER_TYPE) & ((1u << HSA_PACKET_HEADER_WIDTH_TYPE) - 1);
}

Packet as_packet(const hsa_barrier_and_packet_t& barrier) {
  Packet packet;
  std::memcpy(&packet, &barrier, sizeof packet);
  return packet;
}

const KernelObject* known_kernel(Session& session, Queue& queue, std::uint64_t kernel_object) {
  if (const std::uint64_t now = session.code.generation(); queue.known_generation != now) {
    queue.known = {};
    queue.known_generation = now;
  }
  Queue::Known& slot = queue.known[(kernel_object >> 6) % queue.known.size()];  // descriptors are 64-byte aligned
  if (slot.kernel_object != kernel_object) slot = {kernel_object, session.code.find(kernel_object)};
  return slot.object;
}

// What a packet becomes. Collects into `out` once anything differs from what the application wrote.
class Rewriter {
 public:
  Rewriter(Session& session, Queue& queue, const Packet* packets, std::uint64_t count)
      : session_(session), queue_(queue), packets_(packets), count_(count) {}

  void look() {
    for (std::uint64_t i = 0; i < count_; ++i) one(i);
  }

  void write(hsa_amd_queue_intercept_packet_writer writer) const {
    if (changed_)
      writer(out_.data(), out_.size());  // once only: ROCr 5.2 counts the calls of one callback wrongly
    else
      writer(packets_, count_);
  }

 private:
  void one(std::uint64_t i) {
    const Packet& packet = packets_[i];
    if (session_.capturer != nullptr && gate(i, packet)) return;
    if (packet_type(packet) == HSA_PACKET_TYPE_KERNEL_DISPATCH && dispatch(i, packet)) return;
    if (changed_) out_.push_back(packet);
  }

  // A capture on another queue is under way: what comes from here on does not run before it is over. The gate stands
  // before the first packet that the application submits meanwhile (which may wait for the held kernel, and would never
  // let the worker's mark through), or behind the worker's drain mark, whichever comes first. True when the packet was
  // that mark and has been written.
  bool gate(std::uint64_t i, const Packet& packet) {
    const std::uint64_t epoch = session_.capturer->current_epoch();
    const bool held = epoch != 0 && queue_.gated_epoch.load(std::memory_order_relaxed) < epoch;
    hsa_barrier_and_packet_t mark;
    std::memcpy(&mark, &packet, sizeof mark);
    const bool drain = packet_type(packet) == HSA_PACKET_TYPE_BARRIER_AND && mark.reserved2 == drain_magic;
    if (!drain && !held) return false;
    change_from(i);
    mark.reserved2 = 0;
    const hsa_signal_t drained = drain || !held ? mark.completion_signal : new_signal(queue_.agent);
    const Capturer::Gate gate =
        held ? session_.capturer->join_gate(epoch, drain ? hsa_signal_t{} : drained) : Capturer::Gate{};
    if (gate.epoch == 0) {  // gated already, or just over
      if (drain)
        out_.push_back(as_packet(mark));
      else
        runtime().core.hsa_signal_destroy_fn(drained);
      return drain;
    }
    out_.push_back(as_packet(barrier({}, drained)));
    out_.push_back(as_packet(barrier(gate.release, gate.passed)));
    queue_.hold(epoch, drained);
    queue_.gated_epoch.store(epoch, std::memory_order_release);
    return drain;
  }

  bool dispatch(std::uint64_t i, const Packet& packet) {
    const std::uint64_t index = session_.dispatches.fetch_add(1, std::memory_order_relaxed);
    const KernelObject* kernel = known_kernel(session_, queue_, packet.kernel_object);
    if (kernel == nullptr) return false;
    kernel->record->dispatches.fetch_add(1, std::memory_order_relaxed);
    kernel->launches->fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t kernel_index =
        kernel->wanted ? kernel->record->wanted.fetch_add(1, std::memory_order_relaxed) : 0;
    if (session_.profiler != nullptr) {
      change_from(i);
      session_.profiler->rewrite(queue_, *kernel, packet, index, out_);
      return true;
    }
    if (!kernel->wanted || !session_.matching.load(std::memory_order_relaxed)) return false;
    if (!session_.selection.accepts(packet)) return false;
    const std::uint64_t number = kernel->record->selected.fetch_add(1, std::memory_order_relaxed);
    if (!session_.config.dispatches.contains(number)) return false;
    Request request;
    request.index = index;
    request.kernel_index = kernel_index;
    request.number = number;
    change_from(i);
    out_.reserve(out_.size() + count_ + 8);  // what was taken must be written: nothing may fail between
    if (!session_.capturer->take(queue_, *kernel, packet, request)) return false;
    Capturer::rewrite(request, out_);
    return true;
  }

  void change_from(std::uint64_t i) {
    if (changed_) return;
    changed_ = true;
    out_.assign(packets_, packets_ + i);
  }

 private:
  Session& session_;
  Queue& queue_;
  const Packet* packets_;
  const std::uint64_t count_;
  bool changed_ = false;
  std::vector<Packet> out_;
};

void on_packets(const void* packets, std::uint64_t count, std::uint64_t, void* data,
                hsa_amd_queue_intercept_packet_writer writer) {
  Queue& queue = *static_cast<Queue*>(data);
  Session* const s = session();
  if (s == nullptr) return writer(packets, count);
  queue.used.store(true, std::memory_order_relaxed);
  Rewriter rewriter(*s, queue, static_cast<const Packet*>(packets), count);
  try {
    rewriter.look();
  } catch (...) {
    // Out of memory or worse: what the application wrote goes on as it is.
    s->lose_track();
    return writer(packets, count);
  }
  rewriter.write(writer);
}

void on_queue_error(hsa_status_t status, hsa_queue_t*, void* data) {
  const Queue& queue = *static_cast<Queue*>(data);
  if (Session* const s = session(); s != nullptr && s->capturer != nullptr) {
    const char* text = nullptr;
    if (runtime().core.hsa_status_string_fn(status, &text) != HSA_STATUS_SUCCESS || text == nullptr) text = "unknown";
    s->capturer->device_failed(fmt::format("the queue reported an error: {}", text));
  }
  // With the queue that the application knows, not the one that the runtime wraps.
  if (queue.error_callback != nullptr) queue.error_callback(status, queue.queue, queue.error_data);
}

hsa_status_t queue_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                          void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                          std::uint32_t private_segment_size, std::uint32_t group_segment_size, hsa_queue_t** out) {
  Session* const s = session();
  const auto plain = [&] {
    return runtime().core.hsa_queue_create_fn(agent, size, type, callback, data, private_segment_size,
                                              group_segment_size, out);
  };
  if (s == nullptr) return plain();
  s->hold.wait(std::chrono::milliseconds(s->config.kernel_timeout_ms));
  Queue* const queue = new (std::nothrow) Queue;
  if (queue == nullptr) return plain();
  queue->agent = agent;
  queue->type = type;
  queue->error_callback = callback;
  queue->error_data = data;
  const auto give_up = [&](hsa_status_t status) {
    s->note(fmt::format("a queue could not be intercepted (status {:#x}); kernels on it are not seen", int(status)));
  };
  hsa_status_t status = runtime().amd.hsa_amd_queue_intercept_create_fn(agent, size, type, on_queue_error, queue,
                                                                        private_segment_size, group_segment_size, out);
  if (status != HSA_STATUS_SUCCESS) {
    delete queue;
    const hsa_status_t second = plain();
    if (second == HSA_STATUS_SUCCESS) give_up(status);  // otherwise the application asked for the impossible
    return second;
  }
  queue->queue = *out;
  status = runtime().amd.hsa_amd_queue_intercept_register_fn(*out, on_packets, queue);
  if (status != HSA_STATUS_SUCCESS) {
    give_up(status);
    return HSA_STATUS_SUCCESS;  // the queue works all the same; `queue` stays, its error callback is in use
  }
  if (s->profiler != nullptr) runtime().amd.hsa_amd_profiling_set_profiler_enabled_fn(*out, 1);
  try {
    if (s->capturer != nullptr) s->capturer->watch_device();
    const std::lock_guard lock(s->queues_mutex);
    s->queues.push_back(queue);
  } catch (const std::bad_alloc&) {
    queue->alive = false;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t queue_destroy(hsa_queue_t* destroyed) {
  if (Session* const s = session()) {
    s->hold.wait(std::chrono::milliseconds(s->config.kernel_timeout_ms));
    const std::lock_guard lock(s->queues_mutex);
    for (Queue* queue : s->queues)
      if (queue->queue == destroyed) queue->alive = false;
    std::erase_if(s->queues, [](const Queue* queue) { return !queue->alive; });
  }
  return runtime().core.hsa_queue_destroy_fn(destroyed);
}

}  // namespace

void Queue::hold(std::uint64_t epoch, hsa_signal_t drained) {
  const std::lock_guard lock(held_mutex);
  held.push_back({epoch, drained});
}

Queue::Held Queue::held_from(std::uint64_t epoch) {
  const std::lock_guard lock(held_mutex);
  const auto found = std::find_if(held.begin(), held.end(), [&](const Held& h) { return h.epoch >= epoch; });
  return found == held.end() ? Held{} : *found;
}

void Queue::forget_holds(std::uint64_t last_epoch) {
  const std::lock_guard lock(held_mutex);
  std::erase_if(held, [&](const Held& h) { return h.epoch <= last_epoch; });
}

const char* queue_type_name(hsa_queue_type32_t type) {
  switch (type) {
    case HSA_QUEUE_TYPE_MULTI:
      return "multi";
    case HSA_QUEUE_TYPE_SINGLE:
      return "single";
    case HSA_QUEUE_TYPE_COOPERATIVE:
      return "cooperative";
    default:
      return "unknown";
  }
}

hsa_barrier_and_packet_t barrier(hsa_signal_t dependency, hsa_signal_t completion) {
  hsa_barrier_and_packet_t packet{};
  packet.header = barrier_header;
  packet.dep_signal[0] = dependency;
  packet.completion_signal = completion;
  return packet;
}

hsa_signal_t new_signal(hsa_agent_t gpu) {
  hsa_signal_t signal{};
  const hsa_status_t status = runtime().core.hsa_signal_create_fn(1, 1, &gpu, &signal);
  if (status != HSA_STATUS_SUCCESS)
    support::fail(support::ExitCode::environment, "cannot create a signal to hold a kernel with (status {:#x})",
                  static_cast<unsigned>(status));
  return signal;
}

hsa_barrier_and_packet_t drain_mark(hsa_signal_t completion) {
  hsa_barrier_and_packet_t packet = barrier({}, completion);
  packet.reserved2 = drain_magic;
  return packet;
}

bool tables_are_ours(const HsaApiTable& table) {
  return table.core_ != nullptr && table.core_->hsa_queue_create_fn == queue_create;
}

void replace_queue_functions(HsaApiTable& table) {
  if (auto* place = entry(*table.core_, &CoreApiTable::hsa_queue_create_fn)) *place = queue_create;
  if (auto* place = entry(*table.core_, &CoreApiTable::hsa_queue_destroy_fn)) *place = queue_destroy;
}

}  // namespace kerncap::capture
