#include "softgpu/sdma_queue.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "softgpu/gpu_access.h"
#include "softgpu/report.h"

namespace kerncap::softgpu {
namespace {

enum Operations : unsigned {
  op_nop = 0,
  op_copy = 1,
  op_write = 2,
  op_fence = 5,
  op_trap = 6,
  op_poll = 8,
  op_srbm_write = 14,
  op_atomic = 10,
  op_fill = 11,
  op_timestamp = 13,
  op_gcr = 17,
};
constexpr std::uint64_t bytes_per_turn = std::uint64_t{32} << 20;
constexpr std::uint64_t nanosecond_words = 3;

constexpr unsigned bits(std::uint32_t word, unsigned low, unsigned count) {
  return (word >> low) & ((1u << count) - 1);
}

}  // namespace

// Sizes in 32-bit words, header included.
const SdmaQueue::Operation SdmaQueue::operations[] = {
    {op_nop, -1, 0, nullptr},
    {op_copy, 0, 7, &SdmaQueue::copy_linear},
    {op_copy, 4, 13, &SdmaQueue::copy_rectangle},
    {op_write, 0, 0, &SdmaQueue::write_linear},
    {op_fence, -1, 4, &SdmaQueue::fence},
    {op_trap, -1, 2, &SdmaQueue::trap},
    {op_poll, -1, 6, &SdmaQueue::poll},
    {op_atomic, -1, 8, &SdmaQueue::atomic},
    {op_fill, -1, 5, &SdmaQueue::fill},
    {op_timestamp, 2, nanosecond_words, &SdmaQueue::timestamp},
    {op_srbm_write, -1, 3, nullptr},  // registers: nothing behind them here
    {op_gcr, -1, 5, nullptr},         // cache maintenance
};

Progress SdmaQueue::advance(std::uint64_t) noexcept {
  if (stopped_ || suspended()) return Progress::idle;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return Progress::waiting;
  if (doorbell_rang()) active_ = true;
  if (!active_) return Progress::idle;

  const AddressSpace& memory = device_.memory;
  auto* read_index = word_at<std::uint64_t>(memory, description_.read_pointer, permission_read | permission_write);
  auto* write_index = word_at<std::uint64_t>(memory, description_.write_pointer, permission_read);
  if (read_index == nullptr || write_index == nullptr) {
    raise_memory_fault(read_index == nullptr ? description_.read_pointer : description_.write_pointer, false, false);
    return Progress::idle;
  }
  std::uint64_t moved = 0;
  for (bool first = true; moved < bytes_per_turn; first = false) {
    const std::uint64_t at = read_index->load(std::memory_order_relaxed);
    const std::uint64_t end = write_index->load(std::memory_order_acquire);
    if (at >= end) {
      active_ = false;
      return first ? Progress::idle : Progress::some;
    }
    // Packets do not wrap around the end of the ring: ROCr and HIP fill the rest with no-ops.
    Packet packet{};
    packet_address_ = description_.ring_address + at % description_.ring_size;
    const std::uint64_t to_ring_end = description_.ring_size - at % description_.ring_size;
    const std::uint64_t present = std::min({sizeof packet.words, end - at, to_ring_end});
    if (read_gpu(memory, packet_address_, packet.words, present) != present) {
      raise_memory_fault(packet_address_, false, false);
      return Progress::idle;
    }
    trace("copy queue %u: packet %08x at %llu of %llu", description_.id, packet.words[0],
          static_cast<unsigned long long>(at), static_cast<unsigned long long>(end));
    const unsigned operation = bits(packet.words[0], 0, 8), sub_operation = bits(packet.words[0], 8, 8);
    const auto* entry = std::ranges::find_if(operations, [&](const Operation& candidate) {
      return candidate.operation == operation &&
             (candidate.sub_operation < 0 || static_cast<unsigned>(candidate.sub_operation) == sub_operation);
    });
    if (entry == std::end(operations)) {
      report("copy queue " + std::to_string(description_.id) + " stops: packet " + std::to_string(operation) + "." +
             std::to_string(sub_operation) + " is not supported");
      stopped_ = true;
      return Progress::idle;
    }
    std::uint64_t words = entry->words;
    if (operation == op_nop) words = 1 + bits(packet.words[0], 16, 14);
    if (operation == op_write) words = 5 + bits(packet.words[3], 0, 20);
    if (words * 4 > end - at) {
      report("copy queue " + std::to_string(description_.id) + " stops: a packet reaches beyond the write pointer");
      stopped_ = true;
      return Progress::idle;
    }
    const Step step = entry->handler == nullptr ? Step::next : (this->*entry->handler)(packet);
    if (step == Step::wait) return first ? Progress::waiting : Progress::some;
    if (step == Step::stopped) return Progress::idle;
    if (operation == op_copy || operation == op_fill) moved += bits(packet.words[operation == op_copy ? 1 : 4], 0, 30);
    read_index->store(at + words * 4, std::memory_order_release);
  }
  return Progress::some;
}

SdmaQueue::Step SdmaQueue::fault(std::uint64_t address, bool write) noexcept {
  char text[160];
  const bool present = device_.memory.translate(address, 0) != nullptr;
  std::snprintf(text, sizeof text, "copy queue %u: %s of 0x%llx, which %s", description_.id, write ? "write" : "read",
                static_cast<unsigned long long>(address),
                present ? "must not be accessed so" : "is not mapped for this GPU");
  report(text);
  raise_memory_fault(address, write, present);
  return Step::stopped;
}

SdmaQueue::Step SdmaQueue::copy(std::uint64_t to, std::uint64_t from, std::uint64_t size) noexcept {
  const AddressSpace& memory = device_.memory;
  while (size != 0) {
    std::byte *source = nullptr, *target = nullptr;
    const std::uint64_t readable = contiguous(memory, from, size, permission_read, &source);
    if (readable == 0) return fault(from, false);
    const std::uint64_t length = std::min(readable, contiguous(memory, to, readable, permission_write, &target));
    if (length == 0) return fault(to, true);
    std::memmove(target, source, length);
    to += length;
    from += length;
    size -= length;
  }
  return Step::next;
}

SdmaQueue::Step SdmaQueue::copy_linear(const Packet& packet) {
  return copy(packet.address(5), packet.address(3), std::uint64_t{bits(packet.words[1], 0, 30)} + 1);
}

// A box of elements between two pitched images. All counts are stored minus one.
SdmaQueue::Step SdmaQueue::copy_rectangle(const Packet& packet) {
  const auto& words = packet.words;
  const unsigned element = bits(words[0], 29, 3);
  struct Side {
    std::uint64_t base, x, y, z, pitch, slice;
  };
  const auto side = [&](unsigned word) {
    return Side{packet.address(word),
                bits(words[word + 2], 0, 14),
                bits(words[word + 2], 16, 14),
                bits(words[word + 3], 0, 11),
                std::uint64_t{bits(words[word + 3], 13, 19)} + 1,
                std::uint64_t{bits(words[word + 4], 0, 28)} + 1};
  };
  const Side source = side(1), target = side(6);
  const std::uint64_t width = std::uint64_t{bits(words[11], 0, 14)} + 1,
                      height = std::uint64_t{bits(words[11], 16, 14)} + 1,
                      depth = std::uint64_t{bits(words[12], 0, 11)} + 1;
  const auto row = [&](const Side& image, std::uint64_t y, std::uint64_t z) {
    return image.base + ((image.x + (image.y + y) * image.pitch + (image.z + z) * image.slice) << element);
  };
  for (std::uint64_t z = 0; z < depth; ++z) {
    for (std::uint64_t y = 0; y < height; ++y) {
      const Step step = copy(row(target, y, z), row(source, y, z), width << element);
      if (step != Step::next) return step;
    }
  }
  return Step::next;
}

SdmaQueue::Step SdmaQueue::write_linear(const Packet& packet) {
  return copy(packet.address(1), packet_address_ + 16, (std::uint64_t{bits(packet.words[3], 0, 20)} + 1) * 4);
}

SdmaQueue::Step SdmaQueue::fence(const Packet& packet) {
  auto* word = word_at<std::uint32_t>(device_.memory, packet.address(1), permission_write);
  if (word == nullptr) return fault(packet.address(1), true);
  word->store(packet.words[3], std::memory_order_release);
  return Step::next;
}

SdmaQueue::Step SdmaQueue::trap(const Packet& packet) {
  events_.set(bits(packet.words[1], 0, 28));
  return Step::next;
}

// Waits until (memory & mask) compares true. Without the memory bit it polls a register, which is how ROCr flushes the
// host data path: nothing to wait for here.
SdmaQueue::Step SdmaQueue::poll(const Packet& packet) {
  if (bits(packet.words[0], 31, 1) == 0) return Step::next;
  auto* word = word_at<std::uint32_t>(device_.memory, packet.address(1), permission_read);
  if (word == nullptr) return fault(packet.address(1), false);
  const std::uint32_t value = word->load(std::memory_order_acquire) & packet.words[4], reference = packet.words[3];
  const bool results[8] = {
      true,
      value<reference, value <= reference, value == reference, value != reference, value >= reference, value> reference,
      true};
  return results[bits(packet.words[0], 28, 3)] ? Step::next : Step::wait;
}

namespace {

// TC_OP_ATOMIC_*_RTN_32 of the GFX9 texture cache; the 64-bit forms are 0x20 higher.
template <typename Word>
bool apply_atomic(unsigned operation, std::atomic<Word>& memory, Word value, Word compare) {
  switch (operation) {
    case 0x07:
      memory.exchange(value);
      return true;
    case 0x08:
      memory.compare_exchange_strong(compare, value);
      return true;
    case 0x0f:
      memory.fetch_add(value);
      return true;
    case 0x10:
      memory.fetch_sub(value);
      return true;
    case 0x15:
      memory.fetch_and(value);
      return true;
    case 0x16:
      memory.fetch_or(value);
      return true;
    case 0x17:
      memory.fetch_xor(value);
      return true;
    default:
      return false;
  }
}

}  // namespace

SdmaQueue::Step SdmaQueue::atomic(const Packet& packet) {
  const unsigned operation = bits(packet.words[0], 25, 7);
  constexpr unsigned read_write = permission_read | permission_write;
  bool known = false;
  if (operation >= 0x20) {
    auto* word = word_at<std::uint64_t>(device_.memory, packet.address(1), read_write);
    if (word == nullptr) return fault(packet.address(1), true);
    known = apply_atomic<std::uint64_t>(operation - 0x20, *word, packet.address(3), packet.address(5));
  } else {
    auto* word = word_at<std::uint32_t>(device_.memory, packet.address(1), read_write);
    if (word == nullptr) return fault(packet.address(1), true);
    known = apply_atomic<std::uint32_t>(operation, *word, packet.words[3], packet.words[5]);
  }
  if (known) return Step::next;
  report("copy queue " + std::to_string(description_.id) + " stops: atomic operation " + std::to_string(operation) +
         " is not supported");
  stopped_ = true;
  return Step::stopped;
}

SdmaQueue::Step SdmaQueue::fill(const Packet& packet) {
  const std::uint64_t width = std::uint64_t{1} << bits(packet.words[0], 30, 2);
  std::uint64_t to = packet.address(1), size = (bits(packet.words[4], 0, 30) & ~(width - 1)) + width;
  std::byte pattern[4096];
  for (std::size_t at = 0; at < sizeof pattern; at += 4) std::memcpy(pattern + at, &packet.words[3], 4);
  if (width < 4) {
    for (std::size_t at = 0; at < sizeof pattern; at += width) std::memcpy(pattern + at, &packet.words[3], width);
  }
  while (size != 0) {
    const std::uint64_t length = std::min<std::uint64_t>(size, sizeof pattern);
    const std::uint64_t done = write_gpu(device_.memory, to, pattern, length);
    if (done != length) return fault(to + done, true);
    to += length;
    size -= length;
  }
  return Step::next;
}

SdmaQueue::Step SdmaQueue::timestamp(const Packet& packet) {
  auto* word = word_at<std::uint64_t>(device_.memory, packet.address(1), permission_write);
  if (word == nullptr) return fault(packet.address(1), true);
  word->store(gpu_ticks(), std::memory_order_release);
  return Step::next;
}

}  // namespace kerncap::softgpu
