// Which dispatches of the wanted kernel count at all: by shape, by ROCTX range, by time. What passes is numbered from 0
// for DispatchList. Says afterwards why others did not pass.
//
// Thread-safety: accepts() is called in packet callbacks of several queues, fill() at any time.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

#include "capture/config.h"
#include "capture/runtime_table.h"
#include "capture/status.h"

namespace kerncap::capture {

class Selection {
 public:
  explicit Selection(const Config& config);

  bool accepts(const hsa_kernel_dispatch_packet_t& packet);
  void fill(Status& status) const;

 private:
  const Config& config_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> by_shape_{0}, by_range_{0},
      by_time_{0};  // how many did not pass, each for its first reason
  mutable std::mutex mutex_;
  std::vector<KernelStatus::Shape> shapes_;  // of those refused by shape
};

}  // namespace kerncap::capture
