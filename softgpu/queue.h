// A user-mode queue, as the engine sees it: something that can be moved forward a little by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "softgpu/device.h"
#include "softgpu/events.h"
#include "softgpu/kfd_abi.h"

namespace kerncap::softgpu {

enum class Progress {
  idle,     // nothing to do until a doorbell rings
  waiting,  // something is there, but it waits for a signal or for another thread
  some,     // something was done; more may be there
  kernel,   // a kernel is running and has work left that other threads could share
};

struct QueueDescription {
  std::uint32_t id = 0;
  std::uint64_t ring_address = 0, ring_size = 0;      // GPU address, bytes
  std::uint64_t read_pointer = 0, write_pointer = 0;  // GPU addresses of 64-bit words
  int doorbell_slot = -1;
  std::uint64_t save_area = 0;  // host address of abi::SaveAreaHeader, or 0
};

class Queue {
 public:
  Queue(Device& device, Events& events, const QueueDescription& description)
      : device_(device), events_(events), description_(description) {}
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // May be called by several engine threads at once; never blocks on anything that the GPU's own work could release.
  virtual Progress advance(std::uint64_t instructions) noexcept = 0;

  std::uint32_t id() const { return description_.id; }
  int doorbell_slot() const { return description_.doorbell_slot; }
  Device& device() const { return device_; }
  bool suspended() const { return suspended_.load(std::memory_order_relaxed); }
  void set_suspended(bool suspended) { suspended_.store(suspended, std::memory_order_relaxed); }
  void move_ring(std::uint64_t address, std::uint64_t size);

 protected:
  // Has the doorbell been rung since the last call?
  bool doorbell_rang() noexcept;
  // The queue stops for good, and the runtime is told through its save area.
  void raise(abi::QueueException exception) noexcept;
  // The same for a page fault: the process is told through its memory events.
  void raise_memory_fault(std::uint64_t address, bool write, bool present) noexcept;

  // The three steps of completing a signal at a GPU address; 0 means no signal. A wrong address is a memory fault.
  void complete_signal(std::uint64_t signal, std::uint64_t start, std::uint64_t end) noexcept;

  Device& device_;
  Events& events_;
  QueueDescription description_;
  std::mutex mutex_;
  std::atomic<bool> suspended_{false}, stopped_{false};

 private:
  std::uint64_t last_doorbell_ = ~std::uint64_t{0};
};

}  // namespace kerncap::softgpu
