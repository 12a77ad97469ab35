// The host's side of printf and its like in device code. The application's runtime had a thread that answered; this is
// ours. What a kernel prints is collected for the verdict; memory that it asks the host for it does not get.
//
// Facts: ROCm Device Libs, ockl/src/hostcall.cl and ockl/inc/hostcall_impl (buffer, packets, message descriptors), and
// ROCclr's devhostcall.cpp, which the buffer must look like. Everything in the buffer may be written by the kernel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace kerncap::replay {

// What the device sees, at the address that goes into the kernel's hidden argument.
struct HostCallHeader {
  std::uint64_t next = 0, active_lanes = 0;
  std::uint32_t service = 0, control = 0;  // control, bit 0: waits for the host
};
struct HostCallPayload {
  std::uint64_t slots[64][8];
};
struct HostCallBuffer {
  HostCallHeader* headers = nullptr;
  HostCallPayload* payloads = nullptr;
  std::uint64_t doorbell = 0;  // hsa_signal_t
  std::uint64_t free_stack = 0, ready_stack = 0, index_mask = 0;
};

// Bytes that a buffer for so many packets (a power of two, at least as many as waves can run at a time) takes.
std::size_t host_call_bytes(std::size_t packets);
// Lays one out in `memory`, aligned to 64 and zeroed.
HostCallBuffer* make_host_call_buffer(std::span<std::byte> memory, std::size_t packets, std::uint64_t doorbell);

// "%d of %s\n" with the words that device code passes behind it: 8 bytes for each number, text in place, padded to 8.
std::string formatted(std::span<const std::uint64_t> message);

class HostCalls {
 public:
  HostCalls(HostCallBuffer* buffer, std::size_t packets) : buffer_(buffer), packets_(packets) {}
  ~HostCalls() { stop(); }
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  // A thread that answers, while a kernel runs.
  void start();
  void stop();
  // Answers what waits; returns whether there was anything. Called by the thread; exposed for tests.
  bool serve();

  std::string printed;              // the first 64 KiB
  std::uint64_t dropped_bytes = 0;  // beyond them
  std::uint64_t refused = 0;        // calls of other kinds, which got zeros

 private:
  void answer(HostCallHeader& header, HostCallPayload& payload);
  void message(std::uint64_t (&slot)[8]);

  HostCallBuffer* buffer_;
  std::size_t packets_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> open_;  // messages that are not complete yet
  std::uint64_t last_id_ = 0;
  std::thread thread_;
  std::atomic<bool> running_{false};
};

}  // namespace kerncap::replay
