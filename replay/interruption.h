// Ctrl-C and its like for programs that run until then: a descriptor to wait for, and a limit to how long the end
// takes.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

namespace kerncap::replay {

// One a process, made before it has other threads. SIGINT, SIGTERM and SIGHUP are blocked from then on, in children
// too.
class Interruption {
 public:
  // `clean_up` is called when a signal came and the process did not end by itself within a moment, for instance because
  // a kernel hangs; then the process exits with exit_code.
  explicit Interruption(std::function<void()> clean_up);

  int fd() const { return fd_; }  // readable from the signal on
  bool happened() const;
  std::atomic<int> exit_code{0};

 private:
  int fd_ = -1;
};

}  // namespace kerncap::replay
