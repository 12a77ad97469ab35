#include "softgpu/isa/disassembler.h"

#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <mutex>

#include "core/support/error.h"

// The AMDGPU parts of llvm-c/Target.h; its LLVMInitializeAll* would pull in every other target.
extern "C" {
void LLVMInitializeAMDGPUTargetInfo(void);
void LLVMInitializeAMDGPUTargetMC(void);
void LLVMInitializeAMDGPUDisassembler(void);
}

namespace kerncap::softgpu::isa {
namespace {

// LLVM 19 knows RDNA3's 16-bit registers for a few instructions only. Of others it prints the upper half of v2 as
// "v130/*Invalid register, operand has 'VS_32_Lo128' register class*/".
std::string upper_halves(std::string text) {
  constexpr std::string_view mark = "/*Invalid register", end_mark = "*/";
  constexpr unsigned first_upper = 128;
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
    const auto end = text.find(end_mark, at);
    auto digits = at;
    while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
    if (end == std::string::npos || digits == at || digits == 0 || text[digits - 1] != 'v' ||
        text.find("Lo128", at) > end)
      break;
    const unsigned number = static_cast<unsigned>(std::stoul(text.substr(digits, at - digits)));
    if (number < first_upper) break;
    text.replace(digits, end + end_mark.size() - digits, std::to_string(number - first_upper) + ".h");
  }
  return text;
}

}  // namespace

// Not the C interface (llvm-c/Disassembler.h): it takes an encoding with unusual but ignored bits
// (MCDisassembler::SoftFail) for no instruction. Hand-written kernels have such: for LLVM 21 a VOP3 v_cmpx of GFX9, in
// rocBLAS's f16 and i8 products for one.
struct Disassembler::Machine {
  llvm::Triple triple;
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembly;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;

  explicit Machine(const std::string& name) : triple(name) {}
};

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
  const std::string name = "amdgcn-amd-amdhsa";
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(name, problem);
  if (target == nullptr) support::fail(support::ExitCode::environment, "LLVM has no AMDGPU disassembler: {}", problem);
  auto made = std::make_unique<Machine>(name);
  Machine& m = *made;
  m.registers.reset(target->createMCRegInfo(name));
  if (m.registers != nullptr) m.assembly.reset(target->createMCAsmInfo(*m.registers, name, m.options));
  m.instructions.reset(target->createMCInstrInfo());
  m.subtarget.reset(target->createMCSubtargetInfo(name, processor, features));
  if (m.assembly != nullptr && m.instructions != nullptr && m.subtarget != nullptr &&
      m.subtarget->isCPUStringValid(processor)) {
    m.context = std::make_unique<llvm::MCContext>(m.triple, m.assembly.get(), m.registers.get(), m.subtarget.get());
    m.disassembler.reset(target->createMCDisassembler(*m.subtarget, *m.context));
    m.printer.reset(target->createMCInstPrinter(m.triple, m.assembly->getAssemblerDialect(), *m.assembly,
                                                *m.instructions, *m.registers));
  }
  if (m.disassembler == nullptr || m.printer == nullptr)
    support::fail(support::ExitCode::environment, "LLVM's AMDGPU disassembler does not know the processor {}",
                  processor);
  machine_ = std::move(made);
}

Disassembler::~Disassembler() = default;

Disassembler::Result Disassembler::decode(std::span<const std::uint8_t> code, std::uint64_t address) {
  Result result;
  llvm::MCInst instruction;
  std::uint64_t size = 0;
  const auto status = machine_->disassembler->getInstruction(
      instruction, size, llvm::ArrayRef<std::uint8_t>(code.data(), code.size()), address, llvm::nulls());
  if (status == llvm::MCDisassembler::Fail || size == 0) return result;
  result.bytes = static_cast<unsigned>(size);
  std::string text;
  llvm::raw_string_ostream stream(text);
  machine_->printer->printInst(&instruction, address, "", *machine_->subtarget, stream);
  stream.flush();
  std::string_view view(text);
  while (!view.empty() && (view.front() == '\t' || view.front() == ' ')) view.remove_prefix(1);
  // Comments ("; Warning ...", "// ...") follow the instruction.
  for (const std::string_view mark : {"//", ";"})
    if (const auto at = view.find(mark); at != std::string_view::npos) view = view.substr(0, at);
  while (!view.empty() && (view.back() == '\t' || view.back() == ' ')) view.remove_suffix(1);
  result.text = upper_halves(std::string(view));
  return result;
}

}  // namespace kerncap::softgpu::isa
