#include "replay/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace kerncap::replay {

LineReader::Got LineReader::next(std::string& line, int cancel_fd) {
  for (;;) {
    if (const auto end = buffer_.find('\n', looked_at_); end != std::string::npos) {
      line.assign(buffer_, 0, end);
      buffer_.erase(0, end + 1);
      looked_at_ = 0;
      const bool skipped = std::exchange(skipping_, false) || line.size() > longest_;
      return skipped ? Got::too_long : Got::line;
    }
    looked_at_ = buffer_.size();
    if (buffer_.size() > longest_) {
      skipping_ = true;
      buffer_.clear();
      looked_at_ = 0;
    }
    if (ended_) {
      if (buffer_.empty() && !skipping_) return Got::end;
      buffer_ += '\n';  // a last line without its end
      continue;
    }
    std::array<pollfd, 2> polled{{{fd_, POLLIN, 0}, {cancel_fd, POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) continue;
    if (polled[1].revents != 0) return Got::cancelled;
    std::array<char, 65536> piece;
    const ssize_t got = ::read(fd_, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) {
      ended_ = true;
    } else {
      buffer_.append(piece.data(), static_cast<std::size_t>(got));
    }
  }
}

}  // namespace kerncap::replay
