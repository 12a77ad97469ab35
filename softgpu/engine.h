// The threads that are the GPU. They look at doorbells, move queues forward and share running kernels.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "softgpu/queue.h"

namespace kerncap::softgpu {

// Threads start with the first queue and run until the process ends: user-mode queues are rung by plain stores to
// memory, so somebody has to look. An idle engine looks a thousand times a second, later 250 times. Never destroyed.
class Engine {
 public:
  explicit Engine(unsigned threads) : workers_(threads) {}

  // False when no thread could be started.
  bool add(std::shared_ptr<Queue> queue);
  // Afterwards no thread is inside the queue, and none will be. False for an unknown id.
  bool remove(std::uint32_t id);
  std::shared_ptr<Queue> find(std::uint32_t id) const;
  bool empty() const;

  // Look now: somebody is about to wait for the GPU.
  void wake() noexcept;

  // Returns when every thread has left the slice it was in, so that none still uses a translation that was removed from
  // a page table before. At once when the caller is an engine thread.
  void quiesce() noexcept;

 private:
  struct alignas(64) Worker {
    std::atomic<std::uint64_t> epoch{0};  // odd while inside a queue
    std::atomic<bool> started{false};
  };
  using Queues = std::vector<std::shared_ptr<Queue>>;

  // What sleeping threads watch: the first worker for doorbells, the others for kernels to share.
  struct alignas(64) Bell {
    std::atomic<std::uint32_t> rings{0}, sleepers{0};
    void ring() noexcept;
  };

  bool start_threads();
  void run(unsigned number) noexcept;
  void pause(Bell& bell, std::uint32_t heard, std::uint64_t nanoseconds) noexcept;

  std::vector<Worker> workers_;
  mutable std::mutex mutex_;
  Queues queues_;
  std::atomic<std::uint64_t> generation_{1};
  Bell look_, help_;
  bool running_ = false;
};

}  // namespace kerncap::softgpu
