#include "softgpu/engine.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <span>
#include <thread>

#include "softgpu/report.h"
#include "softgpu/system_calls.h"

namespace kerncap::softgpu {
namespace {

// Long enough to amortise taking a workgroup, short enough (about a millisecond) that queues share a thread and that
// freeing memory beside a running kernel does not take long.
constexpr std::uint64_t slice_instructions = 20'000;

thread_local bool engine_thread = false;

struct PauseStep {
  unsigned until;             // quiet rounds
  std::uint64_t nanoseconds;  // 0: only yield
};
// The first worker looks after doorbells; quiet time grows from yielding to a look every 4 milliseconds after 10
// seconds. A thread that waits for an event wakes it at once.
constexpr PauseStep first_worker[] = {
    {300, 0}, {2'000, 20'000}, {6'000, 100'000}, {16'000, 1'000'000}, {~0u, 4'000'000}};
// The others only help with kernels, and are woken for those.
constexpr PauseStep other_workers[] = {{50, 0}, {~0u, 50'000'000}};

}  // namespace

bool Engine::start_threads() {
  if (running_) return true;
  // Signals are the application's business, so its handlers must not run here.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (unsigned number = 0; number < workers_.size(); ++number) {
    try {
      std::thread([this, number] { run(number); }).detach();
      running_ = true;
      while (!workers_[number].started.load()) sched_yield();
    } catch (const std::exception&) {
      break;  // fewer threads than wished for
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return running_;
}

bool Engine::add(std::shared_ptr<Queue> queue) {
  const std::lock_guard lock(mutex_);
  queues_.push_back(std::move(queue));
  generation_.fetch_add(1);
  if (start_threads()) return true;
  queues_.pop_back();
  return false;
}

bool Engine::remove(std::uint32_t id) {
  std::shared_ptr<Queue> removed;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(queues_, [&](const auto& queue) { return queue->id() == id; });
    if (found == queues_.end()) return false;
    removed = *found;
    removed->set_suspended(true);
    queues_.erase(found);
    generation_.fetch_add(1);
  }
  quiesce();
  return true;
}

std::shared_ptr<Queue> Engine::find(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(queues_, [&](const auto& queue) { return queue->id() == id; });
  return found == queues_.end() ? nullptr : *found;
}

bool Engine::empty() const {
  const std::lock_guard lock(mutex_);
  return queues_.empty();
}

void Engine::Bell::ring() noexcept {
  rings.fetch_add(1);
  if (sleepers.load() != 0) raw::wake_all(reinterpret_cast<std::uint32_t*>(&rings));
}

void Engine::wake() noexcept { look_.ring(); }

void Engine::quiesce() noexcept {
  if (engine_thread) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const Worker& worker : workers_) {
    const std::uint64_t epoch = worker.epoch.load();
    if (epoch % 2 == 0) continue;
    for (unsigned spins = 0; worker.epoch.load() == epoch; ++spins) {
      if (spins < 100) {
        sched_yield();
      } else {
        const std::uint32_t never = 0;
        raw::wait_on(&never, 0, 50'000);
      }
    }
  }
}

// `heard` is the last ring that this thread knows of, so that none is lost between looking and sleeping.
void Engine::pause(Bell& bell, std::uint32_t heard, std::uint64_t nanoseconds) noexcept {
  if (nanoseconds == 0) {
    sched_yield();
    return;
  }
  bell.sleepers.fetch_add(1);
  raw::wait_on(reinterpret_cast<const std::uint32_t*>(&bell.rings), heard, nanoseconds);
  bell.sleepers.fetch_sub(1);
}

void Engine::run(unsigned number) noexcept {
  engine_thread = true;
  pthread_setname_np(pthread_self(), "kerncap-gpu");
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  Worker& worker = workers_[number];
  // The first allocation of a thread reserves address space. Now and not later, while the starter waits: then the
  // addresses that the application gets do not depend on timing.
  { const std::vector<char> first(64); }
  worker.started = true;
  Queues queues;
  std::uint64_t generation = 0;
  Bell& bell = number == 0 ? look_ : help_;
  const auto steps = number == 0 ? std::span<const PauseStep>(first_worker) : std::span<const PauseStep>(other_workers);
  std::uint32_t heard = 0;
  unsigned quiet = 0;
  for (std::size_t turn = number;; ++turn) {
    if (const std::uint64_t now = generation_.load(); now != generation) {
      const std::lock_guard lock(mutex_);
      queues = queues_;
      generation = generation_.load();
    }
    bool busy = false, kernel = false;
    for (std::size_t index = 0; index < queues.size(); ++index) {
      worker.epoch.fetch_add(1);
      const Progress progress = queues[(turn + index) % queues.size()]->advance(slice_instructions);
      worker.epoch.fetch_add(1);
      kernel |= progress == Progress::kernel;
      busy |= progress == Progress::some || progress == Progress::kernel;
    }
    if (kernel && help_.sleepers.load() != 0) help_.ring();
    if (const std::uint32_t now = bell.rings.load(); now != heard) {
      heard = now;
      quiet = 0;
    }
    if (busy) {
      quiet = 0;
    } else {
      pause(bell, heard,
            std::ranges::find_if(steps, [&](const PauseStep& step) { return quiet < step.until; })->nanoseconds);
      if (quiet + 1 < steps.back().until) ++quiet;
    }
  }
}

}  // namespace kerncap::softgpu
