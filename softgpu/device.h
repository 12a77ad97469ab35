// One emulated GPU: its identity, its memory, its doorbells.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "softgpu/architecture.h"
#include "softgpu/buffer.h"
#include "softgpu/execution.h"
#include "softgpu/memory.h"
#include "softgpu/shared_usage.h"

namespace kerncap::softgpu {

inline constexpr unsigned doorbell_count = 1024;  // of 8 bytes each, on GFX9 and later
inline constexpr std::uint64_t doorbell_bytes = doorbell_count * 8;
inline constexpr std::uint64_t gpu_clock_hertz = 100'000'000;  // the constant clock behind timestamps

std::uint64_t system_nanoseconds() noexcept;  // CLOCK_BOOTTIME, as KFD reports it
inline std::uint64_t gpu_ticks() noexcept { return system_nanoseconds() / (1'000'000'000 / gpu_clock_hertz); }

struct Device {
  unsigned index = 0;
  std::uint32_t gpu_id = 0;
  unsigned render_minor = 0;
  const Architecture* architecture = nullptr;
  std::uint64_t vram = 0;

  AddressSpace memory;
  SharedUsage* usage = nullptr;       // of the whole machine; outlives the device. Null: only this process counts
  std::shared_ptr<Buffer> doorbells;  // made with the first queue, see doorbell_page()
  bool doorbell_taken[doorbell_count] = {};
  std::mutex mutex;  // doorbells, instructions

  bool charge(std::uint64_t bytes) noexcept;  // false when not that much is left
  void release(std::uint64_t bytes) noexcept { own_usage().fetch_sub(bytes); }
  std::uint64_t used() noexcept { return own_usage().load() + (usage == nullptr ? 0 : usage->others(index)); }
  std::uint64_t available() noexcept { return vram - std::min(vram, used()); }

  std::shared_ptr<Buffer> doorbell_page();  // null when the system refuses
  int take_doorbell();                      // a slot, -1 when all are taken
  void give_doorbell(int slot);

  // The instruction interpreter, loaded with the first compute queue. Null when it cannot be had; the reason is in
  // *problem.
  InstructionSet* instructions(std::string* problem);
  // Replaces it; for tests.
  void set_instructions(std::unique_ptr<InstructionSet> instructions) { instructions_ = std::move(instructions); }

 private:
  std::atomic<std::uint64_t>& own_usage() noexcept { return usage == nullptr ? private_usage_ : usage->own(index); }

  std::atomic<std::uint64_t> private_usage_{0};
  std::unique_ptr<InstructionSet> instructions_;
};

}  // namespace kerncap::softgpu
