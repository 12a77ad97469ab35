#include "softgpu/events.h"

#include <chrono>
#include <cstring>

namespace kerncap::softgpu {
namespace {

// Signal events use their slot in the page as id; the others start behind it, as in the kernel
// (KFD_FIRST_NONSIGNAL_EVENT_ID).
constexpr std::uint32_t first_other_event = 0x80000000;
constexpr std::uint32_t wait_for_ever = 0xffffffff;
constexpr std::uint64_t unsignalled_slot = ~std::uint64_t{0};

bool has_slot(std::uint32_t type) { return type == KFD_IOC_EVENT_SIGNAL || type == KFD_IOC_EVENT_DEBUG_EVENT; }

}  // namespace

void Events::set_page(std::shared_ptr<Buffer> page) {
  const std::lock_guard lock(mutex_);
  page_ = std::move(page);
  std::memset(page_->alias(), 0xff, page_->size());
}

bool Events::create(std::uint32_t type, bool auto_reset, std::uint32_t* id, std::uint32_t* slot) {
  const std::lock_guard lock(mutex_);
  std::uint32_t chosen = 0;
  if (has_slot(type)) {
    for (unsigned tries = 0; tries < KFD_SIGNAL_EVENT_LIMIT; ++tries) {
      const std::uint32_t candidate = next_signal_;
      next_signal_ = next_signal_ + 1 == KFD_SIGNAL_EVENT_LIMIT ? 1 : next_signal_ + 1;
      if (events_.contains(candidate)) continue;
      chosen = candidate;
      break;
    }
    if (chosen == 0) return false;
  } else {
    chosen = first_other_event;
    while (events_.contains(chosen)) ++chosen;
  }
  Event& event = events_[chosen];
  event.type = type;
  event.auto_reset = auto_reset;
  *id = chosen;
  *slot = has_slot(type) ? chosen : 0;
  return true;
}

bool Events::destroy(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  if (events_.erase(id) == 0) return false;
  changed_.notify_all();
  return true;
}

// As in the kernel's set_event(): an auto-reset event that somebody waits for wakes him and stays unsignalled.
void Events::signal(std::uint32_t id, Event& event) {
  event.signalled = true;
  ++event.age;
  if (page_ != nullptr && id < page_->size() / 8) {
    reinterpret_cast<std::atomic<std::uint64_t>*>(page_->alias())[id].store(unsignalled_slot,
                                                                            std::memory_order_relaxed);
  }
  changed_.notify_all();
}

bool Events::set(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(id);
  if (found == events_.end()) return false;
  signal(id, found->second);
  return true;
}

bool Events::reset(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(id);
  if (found == events_.end()) return false;
  found->second.signalled = false;
  return true;
}

void Events::memory_fault(const kfd_hsa_memory_exception_data& data) {
  const std::lock_guard lock(mutex_);
  for (auto& [id, event] : events_) {
    if (event.type != KFD_IOC_EVENT_MEMORY) continue;
    event.memory = data;
    signal(id, event);
  }
}

// Is this event signalled for this waiter? A waiter that names the age it has seen also wakes up when it missed a
// signal.
bool Events::take(abi::EventData& wanted, Event& event) {
  bool activated = event.signalled;
  if (event.type == KFD_IOC_EVENT_SIGNAL && wanted.last_event_age != 0 && wanted.last_event_age != event.age)
    activated = true;
  if (!activated) return false;
  if (event.auto_reset) event.signalled = false;
  if (event.type == KFD_IOC_EVENT_MEMORY) {
    wanted.memory = event.memory;
  } else if (event.type == KFD_IOC_EVENT_SIGNAL && wanted.last_event_age != 0) {
    wanted.last_event_age = event.age;
  }
  return true;
}

int Events::wait(std::span<abi::EventData> wanted, bool all, std::uint32_t milliseconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  std::unique_lock lock(mutex_);
  std::uint64_t done = 0;  // bit per event, for waits on all of up to 64; more are checked afresh each time
  for (;;) {
    std::size_t activated = 0;
    for (std::size_t index = 0; index < wanted.size(); ++index) {
      if (all && index < 64 && (done >> index & 1) != 0) {
        ++activated;
        continue;
      }
      const auto found = events_.find(wanted[index].event_id);
      if (found == events_.end()) return -1;
      if (!take(wanted[index], found->second)) continue;
      if (!all) return KFD_IOC_WAIT_RESULT_COMPLETE;
      ++activated;
      if (index < 64) done |= std::uint64_t{1} << index;
    }
    if (all && activated == wanted.size()) return KFD_IOC_WAIT_RESULT_COMPLETE;
    if (milliseconds == 0) return KFD_IOC_WAIT_RESULT_TIMEOUT;
    if (milliseconds == wait_for_ever) {
      changed_.wait(lock);
    } else if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) {
      milliseconds = 0;
    }
  }
}

}  // namespace kerncap::softgpu
