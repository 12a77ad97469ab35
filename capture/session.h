// One process's capture: what it was asked to do, what it knows, and what it tells.
//
// Locks, in the order in which they may be taken together: a queue's (the runtime's, around packet callbacks), then one
// of ours. No lock of ours is held while the runtime is called, except the registry's while it names kernels.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/agents.h"
#include "capture/code_registry.h"
#include "capture/config.h"
#include "capture/hold.h"
#include "capture/memory_map.h"
#include "capture/selection.h"
#include "capture/status.h"

namespace kerncap::capture {

class Capturer;
class Profiler;
struct Queue;

class Session {
 public:
  explicit Session(Config config);

  const Config config;
  const pid_t process;
  std::atomic<bool> matching{false};  // looking for the kernel: not yet done, failed or passive

  CodeRegistry code;
  Selection selection;
  Hold hold;
  std::atomic<std::uint64_t> dispatches{0};  // of the whole process

  // Memory.
  std::mutex memory_mutex;
  MemoryMap memory;
  std::unordered_map<std::uint64_t, std::uint64_t> vmem_pools;  // allocation handle -> pool

  // Queues; entries are never freed, because a callback may still be running.
  std::mutex queues_mutex;
  std::vector<Queue*> queues;

  std::unique_ptr<Capturer> capturer;  // Mode::capture
  std::unique_ptr<Profiler> profiler;  // Mode::profile

  const Agents& agents();  // asked for once, when first needed; not from OnLoad

  // Throws Error{answer_is_no} when more memory than max_bytes is there for certain: before anything is held. What
  // cannot be known here (managed memory that was unmapped) is looked at when the kernel is held.
  void refuse_what_is_too_large();

  // Two processes of one command see the same kernel: the first to ask gets it.
  bool claim();

  // The status file. change() runs with the status locked; publish() never throws and never blocks for long.
  template <typename Change>
  void update_status(Change&& change) {
    {
      const std::lock_guard lock(status_mutex_);
      change(status_);
    }
    publish();
  }
  void fail(const std::string& reason) noexcept;  // no capture from now on; the application runs on
  void lose_track() noexcept;  // a range or kernel could not be remembered: nothing may be captured any more
  void note(const std::string& text) noexcept;
  void publish() noexcept;

  void runtime_restarted();  // hsa_init after hsa_shut_down: what the old runtime gave is gone

  void finish() noexcept;  // at exit: whatever is under way is brought to an end, then the last status

 private:
  std::mutex agents_mutex_;
  std::optional<Agents> agents_;
  mutable std::mutex status_mutex_;
  Status status_;
  std::mutex publish_mutex_;
  std::filesystem::path status_path_;
  bool claimed_ = false;
  std::atomic<bool> lost_track_{false}, finished_{false};
};

// The process's session; null when it has none, or after a fork in the child.
Session* session() noexcept;
void set_session(Session* session) noexcept;  // never destroyed

}  // namespace kerncap::capture
