#include "capture/capturer.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "capture/session.h"
#include "capture/snapshot_taker.h"
#include "core/support/error.h"

namespace kerncap::capture {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using support::Error;
using support::ExitCode;
using support::fail;

constexpr std::uint16_t header_field(unsigned value, unsigned shift) {
  return static_cast<std::uint16_t>(value << shift);
}

void open_gate(hsa_signal_t signal) {
  if (signal.handle != 0) runtime().core.hsa_signal_store_screlease_fn(signal, 0);
}

// Looks until the signal is 0 or below; `give_up` is asked now and then.
template <typename GiveUp>
bool wait_for(hsa_signal_t signal, milliseconds longest, GiveUp&& give_up) {
  const auto end = steady_clock::now() + longest;
  auto pause = std::chrono::microseconds(10);
  while (runtime().core.hsa_signal_load_scacquire_fn(signal) >= 1) {
    if (steady_clock::now() > end || give_up()) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(500));
  }
  return true;
}

// The application's signal handlers must not run on our thread.
template <typename Function>
void start_thread(Function&& function) {
  sigset_t all, old;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    std::thread(std::forward<Function>(function)).detach();  // finish() waits for its work, not for the thread
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace

Capturer::Capturer(Session& session) : session_(session) {}
Capturer::~Capturer() = default;

bool Capturer::take(Queue& queue, const KernelObject& kernel, const hsa_kernel_dispatch_packet_t& packet,
                    Request& request) {
  const auto signals = {&request.drained, &request.gate, &request.done, &request.release, &request.passed};
  try {
    {
      const std::lock_guard lock(mutex_);
      if (chosen_ == nullptr) {
        if (!session_.claim()) return false;
        chosen_ = kernel.record;
      }
      // Another kernel that matches too: whoever reads the status sees both, and decides that the pattern is ambiguous.
      if (!session_.matching.load() || kernel.record != chosen_) return false;
    }
    session_.refuse_what_is_too_large();
    request.queue = &queue;
    request.kernel = &kernel;
    request.packet = packet;
    for (hsa_signal_t* signal : signals) *signal = new_signal(queue.agent);
    // From here on nothing of the host may touch memory: a copy that waits for this kernel would also block the engine
    // that our copies need.
    session_.hold.begin();
    const std::lock_guard lock(mutex_);
    request.epoch = ++epoch_;
    queue_.push_back(request);
    // By the packets that the caller writes now: what is behind them waits for this capture's gate, and what was before
    // is done when `drained` is.
    queue.hold(request.epoch, request.drained);
    queue.gated_epoch.store(request.epoch, std::memory_order_release);
    if (!busy_ && queue_.size() == 1) set_gate(request);
    if (!started_) {
      start_thread([this] { run(); });
      started_ = true;
    }
    work_.notify_one();
    return true;
  } catch (const std::exception& error) {
    session_.fail(error.what());
    const std::lock_guard lock(mutex_);
    if (!queue_.empty() && queue_.back().epoch == request.epoch && request.epoch != 0) {  // no thread could be started
      queue_.pop_back();
      set_next_gate();
      session_.hold.end();
    } else {
      for (const hsa_signal_t* signal : signals)
        if (signal->handle != 0) runtime().core.hsa_signal_destroy_fn(*signal);
    }
    return false;
  }
}

void Capturer::rewrite(const Request& request, std::vector<hsa_kernel_dispatch_packet_t>& packets) {
  const auto add = [&](const hsa_barrier_and_packet_t& barrier_packet) {
    std::memcpy(&packets.emplace_back(), &barrier_packet, sizeof barrier_packet);
  };
  add(barrier({}, request.drained));
  add(barrier(request.gate, {}));
  hsa_kernel_dispatch_packet_t kernel = request.packet;
  kernel.completion_signal = request.done;
  // After everything before it, and visible to everybody when it is done; its acquire scope is the application's.
  kernel.header |= header_field(1, HSA_PACKET_HEADER_BARRIER);
  kernel.header |= header_field(HSA_FENCE_SCOPE_SYSTEM, HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
  packets.push_back(kernel);
  hsa_barrier_and_packet_t last = barrier(request.release, request.packet.completion_signal);
  constexpr std::uint16_t fences = header_field(3, HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE) |
                                   header_field(3, HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
  last.header |= request.packet.header & fences;
  add(last);
  add(barrier({}, request.passed));
}

void Capturer::set_gate(const Request& request) {
  gate_ = {request.epoch, request.release, request.passed};
  active_epoch_.store(request.epoch, std::memory_order_release);
}

void Capturer::set_next_gate() {
  if (!queue_.empty()) return set_gate(queue_.front());
  gate_ = {};
  active_epoch_.store(0, std::memory_order_release);
}

Capturer::Gate Capturer::join_gate(std::uint64_t epoch, hsa_signal_t drained) {
  const std::lock_guard lock(mutex_);
  if (epoch == 0 || gate_.epoch != epoch) return {};
  if (drained.handle != 0) joined_.push_back(drained);
  runtime().core.hsa_signal_add_relaxed_fn(gate_.passed, 1);
  return gate_;
}

std::string Capturer::device_failure() const {
  const std::lock_guard lock(mutex_);
  return device_failure_;
}

void Capturer::run() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return !queue_.empty(); });
    Request request = queue_.front();
    queue_.pop_front();
    busy_ = true;
    set_gate(request);
    lock.unlock();
    process(request);
    lock.lock();
    busy_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

void Capturer::process(Request& request) noexcept {
  const auto start = steady_clock::now();
  bool released = false;
  std::vector<hsa_signal_t> joined;
  const auto let_go = [&] {
    if (std::exchange(released, true)) return;
    {
      const std::lock_guard lock(mutex_);
      joined = std::exchange(joined_, {});  // whoever joins from here on joins the next
      set_next_gate();
    }
    open_gate(request.gate);
    open_gate(request.release);
    session_.hold.end();
  };
  try {
    if (session_.matching.load()) {
      session_.update_status([](Status& s) { s.state = StatusState::capturing; });
      if (taker_ == nullptr) taker_ = std::make_unique<SnapshotTaker>(session_);
      snapshot::Dispatch dispatch;
      capture(request, dispatch);
      const bool last = !dispatch.has_after || session_.config.dispatches.finished_after(request.number);
      // The application goes on only when the last dispatch is safe: it may be about to abort, without a word to us.
      if (!last) let_go();
      const auto held = steady_clock::now() - start;
      taker_->add(std::move(dispatch));
      session_.update_status([&](Status& s) {
        s.held_ns += static_cast<std::uint64_t>(std::chrono::nanoseconds(held).count());
        s.captured.push_back(request.kernel_index);
        s.state = StatusState::armed;
      });
      if (last) commit();
    }
  } catch (const std::exception& error) {
    let_go();
    taker_.reset();
    session_.fail(error.what());
  }
  let_go();
  retire(request, std::move(joined));
  free_retired();
}

void Capturer::retire(const Request& request, std::vector<hsa_signal_t> joined) {
  {
    const std::lock_guard lock(session_.queues_mutex);
    for (Queue* queue : session_.queues) queue->forget_holds(request.epoch);
  }
  const std::lock_guard lock(mutex_);
  Retired& r = retired_.emplace_back();
  r.passed = request.passed;
  r.complete = std::move(joined);
  r.complete.push_back(request.drained);
  r.complete.push_back(request.done);
  r.others = {request.gate, request.release, request.passed};
}

void Capturer::free_retired() noexcept {
  const CoreApiTable& core = runtime().core;
  const auto over = [&](const Retired& r) {
    if (core.hsa_signal_load_scacquire_fn(r.passed) > 0) return false;
    return std::all_of(r.complete.begin(), r.complete.end(),
                       [&](hsa_signal_t signal) { return core.hsa_signal_load_scacquire_fn(signal) < 1; });
  };
  const std::lock_guard lock(mutex_);
  std::erase_if(retired_, [&](const Retired& r) {
    if (!over(r)) return false;
    for (const hsa_signal_t signal : r.complete) core.hsa_signal_destroy_fn(signal);
    for (const hsa_signal_t signal : r.others) core.hsa_signal_destroy_fn(signal);
    return true;
  });
}

void Capturer::capture(Request& request, snapshot::Dispatch& dispatch) {
  const std::uint64_t ticks = session_.agents().ticks_per_second();
  const milliseconds longest(session_.config.kernel_timeout_ms);
  const auto broken = [&] { return !device_failure().empty(); };
  if (!wait_for(request.drained, longest, broken))
    fail(ExitCode::application_failed, "the work before the kernel did not end: {}",
         broken() ? device_failure() : fmt::format("still running after {} ms", longest.count()));
  drain_other_queues(request);
  taker_->begin(request, dispatch);
  taker_->read_before(dispatch);

  runtime().amd.hsa_amd_profiling_set_profiler_enabled_fn(request.queue->queue, 1);
  open_gate(request.gate);
  if (!wait_for(request.done, longest, broken)) {
    dispatch.has_after = false;
    dispatch.incomplete_reason =
        broken() ? device_failure() : fmt::format("the kernel was still running after {} ms", longest.count());
    return;
  }
  hsa_amd_profiling_dispatch_time_t time{};
  if (runtime().amd.hsa_amd_profiling_get_dispatch_time_fn(request.queue->agent, request.done, &time) ==
          HSA_STATUS_SUCCESS &&
      time.end >= time.start)
    dispatch.device_time =
        static_cast<std::uint64_t>(static_cast<double>(time.end - time.start) * 1e9 / static_cast<double>(ticks));
  if (broken()) {
    dispatch.has_after = false;
    dispatch.incomplete_reason = device_failure();
    return;
  }
  taker_->read_after(dispatch);
  dispatch.has_after = true;
}

void Capturer::drain_other_queues(const Request& request) {
  struct Waiting {
    Queue* queue;
    hsa_signal_t mark;  // 0: no mark could be put there
  };
  std::vector<Waiting> waiting;
  const CoreApiTable& core = runtime().core;
  std::vector<Queue*> queues;
  {
    const std::lock_guard lock(session_.queues_mutex);
    queues = session_.queues;
  }
  for (Queue* queue : queues) {
    if (queue == request.queue || !queue->alive) continue;
    // A single-producer queue has no place for a packet of ours, nor has a full one: the application's next packet
    // there brings the gate.
    const std::uint64_t size = queue->queue->size;
    const std::uint64_t used = core.hsa_queue_load_write_index_scacquire_fn(queue->queue) -
                               core.hsa_queue_load_read_index_scacquire_fn(queue->queue);
    if (queue->held_from(request.epoch).epoch != 0 || queue->type == HSA_QUEUE_TYPE_SINGLE || used + 4 > size) {
      waiting.push_back({queue, {}});
      continue;
    }
    const hsa_barrier_and_packet_t mark = drain_mark(new_signal(queue->agent));
    {
      const std::lock_guard lock(mutex_);
      joined_.push_back(mark.completion_signal);
    }
    const std::uint64_t index = core.hsa_queue_add_write_index_scacq_screl_fn(queue->queue, 1);
    auto* slot = static_cast<hsa_barrier_and_packet_t*>(queue->queue->base_address) + index % size;
    // The header last: it hands the packet over.
    hsa_barrier_and_packet_t body = mark;
    body.header = HSA_PACKET_TYPE_INVALID;
    *slot = body;
    __atomic_store_n(&slot->header, mark.header, __ATOMIC_RELEASE);
    core.hsa_signal_store_screlease_fn(queue->queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
    waiting.push_back({queue, mark.completion_signal});
  }
  const auto end = steady_clock::now() + milliseconds(session_.config.drain_timeout_ms);
  unsigned undrained = 0;
  for (const Waiting& w : waiting) {
    if (!w.queue->used.load() && w.mark.handle == 0) continue;  // has never done anything
    const auto left = std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(end - steady_clock::now()));
    // The hold may have come with a packet of the application, which overtook the mark.
    const auto drained = [&] {
      const Queue::Held held = w.queue->held_from(request.epoch);
      const hsa_signal_t signal = held.epoch != 0 ? held.drained : w.mark;
      return signal.handle != 0 && core.hsa_signal_load_scacquire_fn(signal) < 1;
    };
    const auto limit = steady_clock::now() + left;
    bool idle = drained();
    for (; !idle && steady_clock::now() < limit; idle = drained())
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (!idle) ++undrained;
  }
  if (undrained != 0)
    session_.note(
        fmt::format("{} other queues were not idle within {} ms when dispatch {} was captured: they wait for something "
                    "or run a long "
                    "kernel; memory that they write is as it was at that moment",
                    undrained, session_.config.drain_timeout_ms, request.kernel_index));
}

void Capturer::commit() {
  const snapshot::WriterStatistics statistics = taker_->commit();
  taker_.reset();
  session_.matching.store(false);
  session_.update_status([&](Status& s) {
    s.state = StatusState::captured;
    s.snapshot = session_.config.output.string();
    s.stored_bytes = statistics.stored_bytes;
    s.bytes_done = s.bytes_total;
  });
}

void Capturer::watch_device() {
  if (watching_.exchange(true) || runtime().amd.hsa_amd_register_system_event_handler_fn == nullptr) return;
  const auto handler = [](const hsa_amd_event_t* event, void*) -> hsa_status_t {
    if (Session* const s = session();
        s != nullptr && s->capturer != nullptr && event->event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT)
      s->capturer->device_failed(fmt::format("the device reported a memory fault at {:#x}",
                                             static_cast<std::uint64_t>(event->memory_fault.virtual_address)));
    return HSA_STATUS_ERROR;  // not handled: the runtime does what it would have done
  };
  runtime().amd.hsa_amd_register_system_event_handler_fn(handler, nullptr);
}

void Capturer::device_failed(const std::string& reason) {
  std::unique_lock lock(mutex_);
  if (device_failure_.empty()) device_failure_ = reason;
  if (started_) idle_.wait_for(lock, std::chrono::seconds(120), [&] { return !busy_ && queue_.empty(); });
}

void Capturer::finish() {
  std::unique_lock lock(mutex_);
  if (!started_) return;
  const bool idle =
      idle_.wait_for(lock, milliseconds(session_.config.kernel_timeout_ms), [&] { return !busy_ && queue_.empty(); });
  lock.unlock();
  // The application ended before the last dispatch that was asked for: what there is, is whole.
  if (idle && taker_ != nullptr && !taker_->empty()) {
    try {
      session_.note("the application ended before every dispatch that was asked for had been submitted");
      commit();
    } catch (const std::exception& error) {
      taker_.reset();
      session_.fail(error.what());
    }
  }
  const auto freed = [&] {
    free_retired();
    const std::lock_guard again(mutex_);
    return retired_.empty();
  };
  for (const auto end = steady_clock::now() + milliseconds(200); idle && !freed() && steady_clock::now() < end;)
    std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace kerncap::capture
