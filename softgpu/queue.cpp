#include "softgpu/queue.h"

#include <hsa/amd_hsa_signal.h>

#include <cstddef>
#include <cstdio>

#include "softgpu/gpu_access.h"
#include "softgpu/report.h"

namespace kerncap::softgpu {

void Queue::move_ring(std::uint64_t address, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  description_.ring_address = address;
  description_.ring_size = size;
}

bool Queue::doorbell_rang() noexcept {
  const auto& page = device_.doorbells;
  if (page == nullptr || description_.doorbell_slot < 0) return false;
  const auto* slots = reinterpret_cast<const std::atomic<std::uint64_t>*>(page->alias());
  const std::uint64_t value = slots[description_.doorbell_slot].load(std::memory_order_acquire);
  if (value == last_doorbell_) return false;
  last_doorbell_ = value;
  return true;
}

void Queue::raise(abi::QueueException exception) noexcept {
  stopped_ = true;
  if (description_.save_area == 0) return;
  const auto* header = reinterpret_cast<const abi::SaveAreaHeader*>(description_.save_area);
  const std::uint64_t payload = header->error_payload;
  const std::uint32_t event = header->error_event;
  if (payload != 0) {
    reinterpret_cast<std::atomic<std::uint64_t>*>(payload)->fetch_or(std::uint64_t{1}
                                                                     << (static_cast<unsigned>(exception) - 1));
  }
  if (event != 0) events_.set(event);
}

void Queue::raise_memory_fault(std::uint64_t address, bool write, bool present) noexcept {
  stopped_ = true;
  kfd_hsa_memory_exception_data data{};
  data.failure.NotPresent = present ? 0 : 1;
  data.failure.ReadOnly = present && write ? 1 : 0;
  data.failure.NoExecute = present && !write ? 1 : 0;
  data.va = address & ~(AddressSpace::page_size - 1);  // the hardware reports pages
  data.gpu_id = device_.gpu_id;
  events_.memory_fault(data);
}

void Queue::complete_signal(std::uint64_t signal, std::uint64_t start, std::uint64_t end) noexcept {
  if (signal == 0) return;
  const AddressSpace& memory = device_.memory;
  constexpr unsigned read_write = permission_read | permission_write;
  auto* host = reinterpret_cast<amd_signal_t*>(memory.translate_range(signal, sizeof(amd_signal_t), read_write));
  if (host == nullptr || signal % 8 != 0) {
    char text[128];
    std::snprintf(text, sizeof text, "queue %u completes a signal at 0x%llx, which the GPU cannot write",
                  description_.id, static_cast<unsigned long long>(signal));
    report(text);
    raise_memory_fault(signal, true, false);
    return;
  }
  // Before the decrement: whoever waits for it may free the signal at once.
  const std::uint64_t mailbox = host->event_mailbox_ptr;
  const std::uint32_t event = host->event_id;
  host->start_ts = start;
  host->end_ts = end;
  reinterpret_cast<std::atomic<std::int64_t>*>(reinterpret_cast<std::byte*>(host) + offsetof(amd_signal_t, value))
      ->fetch_sub(1, std::memory_order_acq_rel);
  if (mailbox == 0) return;
  if (auto* slot = word_at<std::uint64_t>(memory, mailbox, permission_write))
    slot->store(event, std::memory_order_release);
  events_.set(event);
}

}  // namespace kerncap::softgpu
