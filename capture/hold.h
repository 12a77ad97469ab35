// While a kernel's memory is being read, host threads that would change it (copies, fills, frees) wait here.
//
// Packet callbacks and our own threads never call wait(). Every wait has an end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace kerncap::capture {

class Hold {
 public:
  void begin() {
    const std::lock_guard lock(mutex_);
    ++holders_;
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      if (holders_ > 0) --holders_;
    }
    changed_.notify_all();
  }
  void wait(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    if (holders_ == 0) return;
    changed_.wait_for(lock, longest, [&] { return holders_ == 0; });
  }
  bool active() const {
    const std::lock_guard lock(mutex_);
    return holders_ > 0;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  unsigned holders_ = 0;
};

}  // namespace kerncap::capture
