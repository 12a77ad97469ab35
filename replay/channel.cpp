#include "replay/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace kerncap::replay {

Channel::~Channel() {
  if (fd_ >= 0) ::close(fd_);
}

bool Channel::send(const support::Json& message) {
  const std::string line = message.dump(-1, ' ', false, support::Json::error_handler_t::replace) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

Channel::End Channel::receive(support::Json& message, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      message = support::Json::parse(buffer_.substr(0, end), nullptr, false);
      buffer_.erase(0, end + 1);
      return message.is_object() ? End::message : End::closed;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return End::timed_out;
    pollfd waiting{fd_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 1'000'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) continue;
    std::array<char, 65536> piece;
    const ssize_t n = ::recv(fd_, piece.data(), piece.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return End::closed;
    buffer_.append(piece.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace kerncap::replay
