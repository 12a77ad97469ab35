// Progress of long work on standard error: a bar redrawn in place on a terminal, one line per phase elsewhere, nothing
// with --quiet. Thread-safe: advance() may be called by any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace kerncap::support {

enum class ProgressMode { automatic, off };
void set_progress_mode(ProgressMode mode);

class Progress {
 public:
  // total 0: unknown length. unit: "bytes" is shown as KiB/MiB/GiB, anything else as it is ("files").
  Progress(std::string label, std::uint64_t total, std::string unit);
  ~Progress();  // finishes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void advance(std::uint64_t amount);
  void set_total(std::uint64_t total);

 private:
  void draw(bool last);
  std::string label_, unit_;
  std::atomic<std::uint64_t> total_, done_{0};
  std::chrono::steady_clock::time_point start_, drawn_;
  std::mutex mutex_;
  bool terminal_ = false, quiet_ = false;
};

std::string human_bytes(std::uint64_t bytes);  // "1.5 GiB"

}  // namespace kerncap::support
