#include "capture/copier.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/support/error.h"

namespace kerncap::capture {
namespace {

using support::ExitCode;
using support::fail;

constexpr auto longest_copy = std::chrono::seconds(120);  // of one piece; a link that is slower than this is dead

std::string status_text(hsa_status_t status) {
  const char* text = nullptr;
  if (runtime().core.hsa_status_string_fn == nullptr ||
      runtime().core.hsa_status_string_fn(status, &text) != HSA_STATUS_SUCCESS || text == nullptr)
    return fmt::format("status {:#x}", static_cast<unsigned>(status));
  return text;
}

}  // namespace

struct Copier::Shared {
  std::mutex mutex;
  std::condition_variable released;
  std::vector<bool> busy;
};

Copier::Copier(const Agents& agents, std::size_t buffers, std::size_t buffer_size)
    : agents_(agents), buffer_size_(buffer_size), shared_(std::make_shared<Shared>()) {
  const PoolInfo* pool = agents.staging_pool();
  if (pool == nullptr) fail(ExitCode::environment, "the HSA runtime offers no host memory to copy device memory to");
  std::vector<hsa_agent_t> gpus = agents.gpu_handles();
  for (std::size_t i = 0; i < buffers; ++i) {
    Buffer buffer;
    void* bytes = nullptr;
    hsa_status_t status =
        runtime().amd.hsa_amd_memory_pool_allocate_fn(hsa_amd_memory_pool_t{pool->handle}, buffer_size, 0, &bytes);
    if (status == HSA_STATUS_SUCCESS && !gpus.empty())
      status = runtime().amd.hsa_amd_agents_allow_access_fn(static_cast<std::uint32_t>(gpus.size()), gpus.data(),
                                                            nullptr, bytes);
    if (status == HSA_STATUS_SUCCESS) status = runtime().core.hsa_signal_create_fn(0, 0, nullptr, &buffer.signal);
    if (status != HSA_STATUS_SUCCESS) {
      if (bytes != nullptr) runtime().amd.hsa_amd_memory_pool_free_fn(bytes);
      if (!buffers_.empty()) break;  // fewer will do
      fail(ExitCode::environment, "cannot get {} bytes of pinned host memory: {}", buffer_size, status_text(status));
    }
    buffer.bytes = static_cast<std::byte*>(bytes);
    buffers_.push_back(buffer);
  }
  shared_->busy.assign(buffers_.size(), false);
  own_memory_ = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
}

Copier::~Copier() {
  if (own_memory_ >= 0) ::close(own_memory_);
  // After an error copies may still be on their way into the buffers.
  const auto end = std::chrono::steady_clock::now() + longest_copy;
  for (const Piece& piece : in_flight_)
    while (piece.started && !stuck_ &&
           runtime().core.hsa_signal_wait_scacquire_fn(buffers_[piece.buffer].signal, HSA_SIGNAL_CONDITION_LT, 1,
                                                       agents_.ticks_per_second() / 50, HSA_WAIT_STATE_BLOCKED) >= 1)
      stuck_ = std::chrono::steady_clock::now() > end;
  if (stuck_) return;
  for (const Buffer& buffer : buffers_) {
    runtime().core.hsa_signal_destroy_fn(buffer.signal);
    runtime().amd.hsa_amd_memory_pool_free_fn(buffer.bytes);
  }
}

std::size_t Copier::free_buffer() {
  while (true) {
    {
      std::unique_lock lock(shared_->mutex);
      const auto found = std::find(shared_->busy.begin(), shared_->busy.end(), false);
      if (found != shared_->busy.end()) {
        *found = true;
        return static_cast<std::size_t>(found - shared_->busy.begin());
      }
      if (in_flight_.empty()) {
        shared_->released.wait(lock);
        continue;
      }
    }
    complete_oldest();
  }
}

void Copier::read(const Source& source, const Sink& sink) {
  for (std::uint64_t offset = 0; offset < source.size; offset += buffer_size_) {
    Piece piece;
    piece.buffer = free_buffer();
    piece.source = source;
    piece.offset = offset;
    piece.size = std::min<std::uint64_t>(buffer_size_, source.size - offset);
    piece.sink = sink;
    start(std::move(piece));
  }
}

void Copier::start(Piece piece) {
  const Buffer& buffer = buffers_[piece.buffer];
  if (!piece.source.host) {
    runtime().core.hsa_signal_store_relaxed_fn(buffer.signal, 1);
    const void* from = reinterpret_cast<const void*>(piece.source.address + piece.offset);
    const hsa_status_t status = runtime().amd.hsa_amd_memory_async_copy_fn(
        buffer.bytes, agents_.staging_pool()->agent, from, piece.source.agent, piece.size, 0, nullptr, buffer.signal);
    piece.started = status == HSA_STATUS_SUCCESS;
    if (!piece.started) {
      unreadable_.push_back({piece.source.address + piece.offset, piece.size,
                             fmt::format("the copy from the device failed: {}", status_text(status))});
      const std::lock_guard lock(shared_->mutex);
      shared_->busy[piece.buffer] = false;
      return;
    }
  }
  in_flight_.push_back(std::move(piece));
  // Host pieces are copied when their turn comes; keep the number in flight below the buffers' so that some work.
  if (in_flight_.size() > buffers_.size() / 2) complete_oldest();
}

bool Copier::copy_in_host_memory(const Piece& piece) {
  std::byte* to = buffers_[piece.buffer].bytes;
  const std::uint64_t from = piece.source.host_address + piece.offset;
  if (!piece.source.volatile_mapping) {
    std::memcpy(to, reinterpret_cast<const void*>(from), piece.size);
    return true;
  }
  // Through the kernel: a page that is no longer there is an error instead of a crash of the application.
  for (std::uint64_t done = 0; done < piece.size;) {
    const ssize_t got = ::pread(own_memory_, to + done, piece.size - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::uint64_t>(got);
  }
  return true;
}

void Copier::complete_oldest() {
  Piece piece = std::move(in_flight_.front());
  in_flight_.pop_front();
  std::string reason;
  if (piece.source.host) {
    if (!copy_in_host_memory(piece)) reason = "the pages are not mapped any more";
  } else {
    const hsa_signal_t signal = buffers_[piece.buffer].signal;
    const auto end = std::chrono::steady_clock::now() + longest_copy;
    hsa_signal_value_t value = 1;
    while ((value = runtime().core.hsa_signal_wait_scacquire_fn(
                signal, HSA_SIGNAL_CONDITION_LT, 1, agents_.ticks_per_second() / 50, HSA_WAIT_STATE_BLOCKED)) >= 1)
      if (std::chrono::steady_clock::now() > end) {
        stuck_ = true;
        fail(ExitCode::environment, "the copy of {} bytes at {:#x} did not end within {} s", piece.size,
             piece.source.address + piece.offset, longest_copy.count());
      }
    if (value < 0) reason = "the copy engine reported an error";  // hsa_amd_memory_async_copy: negative on failure
  }
  if (reason.empty()) return deliver(piece);
  unreadable_.push_back({piece.source.address + piece.offset, piece.size, reason});
  const std::lock_guard lock(shared_->mutex);
  shared_->busy[piece.buffer] = false;
}

void Copier::deliver(Piece& piece) {
  auto release = [shared = shared_, buffer = piece.buffer] {
    {
      const std::lock_guard lock(shared->mutex);
      shared->busy[buffer] = false;
    }
    shared->released.notify_one();
  };
  piece.sink(piece.offset, std::span(buffers_[piece.buffer].bytes, piece.size), std::move(release));
}

std::vector<Unreadable> Copier::finish() {
  while (!in_flight_.empty()) complete_oldest();
  return std::exchange(unreadable_, {});
}

}  // namespace kerncap::capture
