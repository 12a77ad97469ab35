// One wave under glass, for tests: assembles an instruction, executes it, and shows the registers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "softgpu/isa/dispatch.h"

namespace kerncap::softgpu::isa {

// Machine code of an assembly text, or nothing when the target does not have the instruction.
std::optional<std::vector<u8>> assemble(const std::string& processor, bool wave32, const std::string& text);

class InstructionBench : public DispatchHost {
 public:
  explicit InstructionBench(const std::string& processor, bool wave32 = false);
  ~InstructionBench() override;

  // False when the target does not have the instruction.
  bool run(const std::string& text);
  // The mnemonics that have been executed without an error, by processor, in this process. Tests compare the result of
  // each run(), so that these are the instructions with a test.
  static const std::map<std::string, std::set<std::string>>& executed();
  // The error of the last run: `done` when there was none.
  const DispatchError& error() const { return state_.error; }
  bool failed() const { return state_.status.load() != DispatchStatus::running; }
  void clear_error();

  Wave& wave() { return *wave_; }
  unsigned lanes() const { return wave_->lanes; }
  u32* v(unsigned reg) { return wave_->row(reg); }
  u32& s(unsigned reg) { return wave_->s[reg]; }
  void set_exec(u64 mask) { wave_->write_mask(reg_exec, mask); }
  std::vector<std::byte>& lds() { return group_.lds; }
  DeviceState& device() { return device_; }
  DispatchCounters& counters() { return engine_->counters; }
  void count_details(bool wanted) { engine_->count_details = wanted; }
  const Target& target() const { return target_; }
  // Device memory of 64 KiB.
  static constexpr u64 memory_address = 0x100000000, memory_bytes = 65536;
  std::byte* memory() { return memory_.data(); }
  std::vector<std::uint32_t> interrupts;

  std::uint64_t timestamp() noexcept override { return 1234567; }
  void interrupt(std::uint32_t event_id) noexcept override { interrupts.push_back(event_id); }

 private:
  Target target_;
  AddressSpace space_;
  std::vector<std::byte> storage_;
  std::span<std::byte> memory_, code_;
  u64 next_code_ = 0;
  DispatchState state_;
  DeviceState device_;
  Workgroup group_;
  std::unique_ptr<Wave> wave_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<CodeCache> cache_;
};

}  // namespace kerncap::softgpu::isa
