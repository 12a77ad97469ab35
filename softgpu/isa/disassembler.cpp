#include "softgpu/isa/disassembler.h"

#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>

#include <array>
#include <mutex>

#include "core/support/error.h"

// The AMDGPU parts of llvm-c/Target.h; its LLVMInitializeAll* would pull in every other target.
extern "C" {
void LLVMInitializeAMDGPUTargetInfo(void);
void LLVMInitializeAMDGPUTargetMC(void);
void LLVMInitializeAMDGPUDisassembler(void);
}

namespace kerncap::softgpu::isa {

Disassembler::Disassembler(const std::string& processor, bool wave32) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
  });
  // GCN has no wave32; RDNA's disassembler names vcc and the mask registers by the wave size.
  const bool rdna = processor.starts_with("gfx1");
  const char* features = !rdna    ? ""
                         : wave32 ? "+wavefrontsize32,-wavefrontsize64"
                                  : "-wavefrontsize32,+wavefrontsize64";
  context_ =
      LLVMCreateDisasmCPUFeatures("amdgcn-amd-amdhsa", processor.c_str(), features, nullptr, 0, nullptr, nullptr);
  if (context_ == nullptr)
    support::fail(support::ExitCode::environment, "LLVM's AMDGPU disassembler does not know the processor {}",
                  processor);
}

Disassembler::~Disassembler() { LLVMDisasmDispose(context_); }

Disassembler::Result Disassembler::decode(std::span<const std::uint8_t> code, std::uint64_t address) {
  std::array<char, 512> text{};
  const auto size = LLVMDisasmInstruction(context_, const_cast<std::uint8_t*>(code.data()), code.size(), address,
                                          text.data(), text.size());
  Result result;
  result.bytes = static_cast<unsigned>(size);
  std::string_view view(text.data());
  while (!view.empty() && (view.front() == '\t' || view.front() == ' ')) view.remove_prefix(1);
  // Comments ("; Warning ...", "// ...") follow the instruction.
  for (const std::string_view mark : {"//", ";"})
    if (const auto at = view.find(mark); at != std::string_view::npos) view = view.substr(0, at);
  while (!view.empty() && (view.back() == '\t' || view.back() == ' ')) view.remove_suffix(1);
  result.text = view;
  return result;
}

}  // namespace kerncap::softgpu::isa
