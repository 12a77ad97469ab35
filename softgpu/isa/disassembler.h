// LLVM's disassembler for one processor and wave size: bytes to text. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kerncap::softgpu::isa {

class Disassembler {
 public:
  // Throws support::Error when LLVM does not know the processor.
  Disassembler(const std::string& processor, bool wave32);
  ~Disassembler();
  Disassembler(const Disassembler&) = delete;
  Disassembler& operator=(const Disassembler&) = delete;

  struct Result {
    unsigned bytes = 0;  // 0: not an instruction
    std::string text;    // e.g. "v_add_f32_e32 v0, v1, v2"
  };
  Result decode(std::span<const std::uint8_t> code, std::uint64_t address);

 private:
  struct Machine;  // LLVM's objects
  std::unique_ptr<Machine> machine_;
};

}  // namespace kerncap::softgpu::isa
