#include "core/support/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace kerncap::support {
namespace {

std::atomic<ProgressMode> progress_mode{ProgressMode::automatic};
constexpr auto redraw_interval = std::chrono::milliseconds(100);

std::string amount(std::uint64_t value, const std::string& unit) {
  return unit == "bytes" ? human_bytes(value) : fmt::format("{} {}", value, unit);
}

}  // namespace

void set_progress_mode(ProgressMode mode) { progress_mode = mode; }

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

Progress::Progress(std::string label, std::uint64_t total, std::string unit)
    : label_(std::move(label)), unit_(std::move(unit)), total_(total), start_(std::chrono::steady_clock::now()) {
  quiet_ = progress_mode == ProgressMode::off;
  const char* terminal = std::getenv("TERM");
  terminal_ = ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
  if (!quiet_ && !terminal_) fmt::print(stderr, "{} ...\n", label_);
}

Progress::~Progress() {
  if (!quiet_ && terminal_) draw(true);
}

void Progress::advance(std::uint64_t step) {
  done_ += step;
  if (!quiet_ && terminal_) draw(false);
}

void Progress::set_total(std::uint64_t total) { total_ = total; }

void Progress::draw(bool last) {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (!last && now - drawn_ < redraw_interval) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const std::uint64_t done = done_, total = total_;
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string line = fmt::format("\r{}: {}", label_, amount(done, unit_));
  if (total > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    constexpr int width = 24;
    const int filled = static_cast<int>(share * width);
    line += fmt::format(" of {} [{:#<{}}{:.<{}}] {:3.0f} %", amount(total, unit_), "", filled, "", width - filled,
                        share * 100);
    if (!last && rate > 0 && done < total)
      line += fmt::format(" {:.0f} s left", static_cast<double>(total - done) / rate);
  }
  if (seconds > 0.2 && rate > 0) line += fmt::format(" ({}/s)", amount(static_cast<std::uint64_t>(rate), unit_));
  line += last ? "\x1b[K\n" : "\x1b[K";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace kerncap::support
