#include "replay/interruption.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

namespace kerncap::replay {
namespace {

constexpr std::chrono::milliseconds a_moment{300};

sigset_t wanted_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  return signals;
}

}  // namespace

Interruption::Interruption(std::function<void()> clean_up) : fd_(::eventfd(0, EFD_CLOEXEC)) {
  const sigset_t signals = wanted_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([this, clean_up = std::move(clean_up), signals] {
    int signal = 0;
    while (::sigwait(&signals, &signal) != 0) {
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(fd_, &one, sizeof one);
    std::this_thread::sleep_for(a_moment);
    clean_up();
    ::_exit(exit_code.load());
  }).detach();
}

bool Interruption::happened() const {
  pollfd polled{fd_, POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace kerncap::replay
