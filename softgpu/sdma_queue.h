// The copy engine: packets of the system DMA engines, version 4 and later (64-bit byte indices that never wrap).
// Packet layouts: AMD's public "SDMA packet" description as used by ROCr (core/inc/sdma_registers.h) and Linux
// drivers/gpu/drm/amd/amdgpu/vega10_sdma_pkt_open.h, navi10_sdma_pkt_open.h.
#pragma once

#include "softgpu/queue.h"

namespace kerncap::softgpu {

class SdmaQueue : public Queue {
 public:
  using Queue::Queue;
  Progress advance(std::uint64_t instructions) noexcept override;

 private:
  enum class Step { next, wait, stopped };
  struct Packet {
    std::uint32_t words[20];
    std::uint64_t address(unsigned word) const { return words[word] | std::uint64_t{words[word + 1]} << 32; }
  };
  using Handler = Step (SdmaQueue::*)(const Packet&);
  struct Operation {
    unsigned operation;
    int sub_operation;  // -1: any
    unsigned words;     // size; 0: the handler's business (see size_of)
    Handler handler;    // null: nothing to do
  };
  static const Operation operations[];

  Step fault(std::uint64_t address, bool write) noexcept;
  Step copy(std::uint64_t to, std::uint64_t from, std::uint64_t size) noexcept;
  Step copy_linear(const Packet& packet);
  Step copy_rectangle(const Packet& packet);
  Step write_linear(const Packet& packet);
  Step fence(const Packet& packet);
  Step trap(const Packet& packet);
  Step poll(const Packet& packet);
  Step atomic(const Packet& packet);
  Step fill(const Packet& packet);
  Step timestamp(const Packet& packet);

  bool active_ = false;
  std::uint64_t packet_address_ = 0;  // of the packet in hand, for data that follow it
};

}  // namespace kerncap::softgpu
