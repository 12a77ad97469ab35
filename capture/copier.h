// Device memory to the writer through a few pinned buffers: several copies are in flight while the writer's threads
// work on the buffers that have arrived.
//
// Memory: `buffers` x `buffer_size`, 8 x 4 MiB by default, however large a region is. Thread-safety: one thread copies.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "capture/agents.h"

namespace kerncap::capture {

struct Source {
  std::uint64_t address = 0, size = 0;  // as the device sees it
  bool host = false;                    // the host reads it at host_address
  bool volatile_mapping = false;        // the application may have unmapped it without telling the runtime
  std::uint64_t host_address = 0;
  hsa_agent_t agent{};  // the owner, when it is no host memory
};

struct Unreadable {
  std::uint64_t address = 0, size = 0;
  std::string reason;
};

class Copier {
 public:
  // The owner calls `release` when it no longer needs the bytes; it may do so on another thread.
  using Sink =
      std::function<void(std::uint64_t offset, std::span<const std::byte> bytes, std::function<void()> release)>;

  explicit Copier(const Agents& agents, std::size_t buffers = 8, std::size_t buffer_size = 4 << 20);
  ~Copier();  // every buffer must have been released
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  // Reads the source in pieces of the buffers' size, in order. What could not be read is reported by finish() and never
  // reaches the sink. Sources may follow each other without finish().
  void read(const Source& source, const Sink& sink);
  std::vector<Unreadable> finish();

 private:
  struct Shared;
  struct Buffer {
    std::byte* bytes = nullptr;
    hsa_signal_t signal{};
  };
  struct Piece {
    std::size_t buffer = 0;
    Source source;
    std::uint64_t offset = 0, size = 0;
    Sink sink;
    bool started = false;  // a device copy is on its way
  };

  std::size_t free_buffer();
  void start(Piece piece);
  void complete_oldest();
  void deliver(Piece& piece);
  bool copy_in_host_memory(const Piece& piece);

  const Agents& agents_;
  const std::size_t buffer_size_;
  std::vector<Buffer> buffers_;
  std::shared_ptr<Shared> shared_;  // outlives us with a late release
  std::deque<Piece> in_flight_;
  std::vector<Unreadable> unreadable_;
  int own_memory_ = -1;  // /proc/self/mem
  bool stuck_ = false;   // a copy never ended: its buffer must not be freed
};

}  // namespace kerncap::capture
