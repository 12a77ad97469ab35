// JSON, one value a line, over a socket between the process that judges and the process that runs the kernel.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/support/json.h"

namespace kerncap::replay {

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  int fd() const { return fd_; }

  bool send(const support::Json& message);  // false: the other side is gone

  enum class End { message, closed, timed_out };
  // Waits at most `timeout` for the next message. A line that is no JSON counts as closed: the other side has gone mad.
  End receive(support::Json& message, std::chrono::milliseconds timeout);

 private:
  int fd_;
  std::string buffer_;
};

}  // namespace kerncap::replay
