#include "softgpu/isa/instruction_bench.h"

#include <llvm/MC/MCAsmBackend.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCCodeEmitter.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCObjectFileInfo.h>
#include <llvm/MC/MCParser/MCAsmParser.h>
#include <llvm/MC/MCParser/MCTargetAsmParser.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCStreamer.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/TargetParser/Triple.h>

#include <map>
#include <tuple>

#include "softgpu/isa/assembly_text.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo(void);
void LLVMInitializeAMDGPUTargetMC(void);
void LLVMInitializeAMDGPUAsmParser(void);
}

namespace kerncap::softgpu::isa {
namespace {

// Collects the bytes of instructions and ignores everything else.
class BytesStreamer final : public llvm::MCStreamer {
 public:
  BytesStreamer(llvm::MCContext& context, llvm::MCCodeEmitter& emitter, std::vector<u8>& bytes)
      : MCStreamer(context), emitter_(emitter), bytes_(bytes) {}
  void emitInstruction(const llvm::MCInst& instruction, const llvm::MCSubtargetInfo& subtarget) override {
    llvm::SmallVector<char, 32> code;
    llvm::SmallVector<llvm::MCFixup, 4> fixups;
    emitter_.encodeInstruction(instruction, code, fixups, subtarget);
    bytes_.insert(bytes_.end(), code.begin(), code.end());
  }
  bool emitSymbolAttribute(llvm::MCSymbol*, llvm::MCSymbolAttr) override { return true; }
  void emitCommonSymbol(llvm::MCSymbol*, std::uint64_t, llvm::Align) override {}
  void emitZerofill(llvm::MCSection*, llvm::MCSymbol*, std::uint64_t, llvm::Align, llvm::SMLoc) override {}

 private:
  llvm::MCCodeEmitter& emitter_;
  std::vector<u8>& bytes_;
};

std::optional<std::vector<u8>> assemble_now(const std::string& processor, bool wave32, const std::string& text) {
  static const bool initialised = [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmParser();
    return true;
  }();
  static_cast<void>(initialised);
  const llvm::Triple triple("amdgcn-amd-amdhsa");
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple.str(), error);
  if (target == nullptr) throw std::runtime_error(error);
  const bool rdna = processor.starts_with("gfx1");
  const char* features = !rdna    ? ""
                         : wave32 ? "+wavefrontsize32,-wavefrontsize64"
                                  : "-wavefrontsize32,+wavefrontsize64";
  const llvm::MCTargetOptions options;
  const std::unique_ptr<llvm::MCRegisterInfo> registers(target->createMCRegInfo(triple.str()));
  const std::unique_ptr<llvm::MCAsmInfo> assembly(target->createMCAsmInfo(*registers, triple.str(), options));
  const std::unique_ptr<llvm::MCInstrInfo> instructions(target->createMCInstrInfo());
  const std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(triple.str(), processor, features));
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text + "\n"), llvm::SMLoc());
  sources.setDiagHandler([](const llvm::SMDiagnostic&, void*) {});
  llvm::MCContext context(triple, assembly.get(), registers.get(), subtarget.get(), &sources, &options);
  const std::unique_ptr<llvm::MCObjectFileInfo> object(target->createMCObjectFileInfo(context, true));
  context.setObjectFileInfo(object.get());
  const std::unique_ptr<llvm::MCCodeEmitter> emitter(target->createMCCodeEmitter(*instructions, context));
  std::vector<u8> bytes;
  BytesStreamer streamer(context, *emitter, bytes);
  target->createNullTargetStreamer(streamer);
  const std::unique_ptr<llvm::MCAsmParser> parser(llvm::createMCAsmParser(sources, context, streamer, *assembly));
  const std::unique_ptr<llvm::MCTargetAsmParser> target_parser(
      target->createMCAsmParser(*subtarget, *parser, *instructions, options));
  parser->setTargetParser(*target_parser);
  if (parser->Run(false) || bytes.empty()) return std::nullopt;
  return bytes;
}

std::map<std::string, std::set<std::string>>& recorded() {
  static std::map<std::string, std::set<std::string>> all;
  return all;
}
// By the disassembler's name, because assemblers know older ones too. Dual-issue instructions are two.
void record(const std::string& processor, const std::string& text) {
  auto& mnemonics = recorded()[processor];
  const auto middle = text.find("::");
  mnemonics.insert(parse_assembly(text.substr(0, middle)).mnemonic);
  if (middle != std::string::npos) mnemonics.insert(parse_assembly(text.substr(middle + 2)).mnemonic);
}

}  // namespace

std::optional<std::vector<u8>> assemble(const std::string& processor, bool wave32, const std::string& text) {
  static std::map<std::tuple<std::string, bool, std::string>, std::optional<std::vector<u8>>> known;
  const auto key = std::make_tuple(processor, wave32, text);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  return known[key] = assemble_now(processor, wave32, text);
}

InstructionBench::InstructionBench(const std::string& processor, bool wave32) {
  if (!find_target(processor, target_)) throw std::runtime_error("unknown processor " + processor);
  constexpr u64 code_bytes = 1 << 20, code_address = 0x200000000, page = AddressSpace::page_size;
  storage_.resize(memory_bytes + code_bytes + page);
  const u64 start = (reinterpret_cast<u64>(storage_.data()) + page - 1) & ~(page - 1);
  memory_ = {reinterpret_cast<std::byte*>(start), memory_bytes};
  code_ = {memory_.data() + memory_bytes, code_bytes};
  space_.map(memory_address, memory_bytes, memory_.data(), permission_read | permission_write);
  space_.map(code_address, code_bytes, code_.data(), permission_read | permission_execute);
  next_code_ = code_address;
  cache_ = std::make_unique<CodeCache>(target_, space_, wave32);
  engine_ = std::make_unique<Engine>();
  engine_->attach(&space_, this);
  group_.lds.resize(4096);
  group_.live = 2;  // so that barriers wait
  state_.request.memory = &space_;
  state_.request.host = this;
  state_.device = &device_;
  state_.kernel.wave32 = wave32;
  wave_ = std::make_unique<Wave>();
  Wave& w = *wave_;
  std::memset(w.v, 0, max_lane_registers * row_lanes * sizeof(u32));
  std::memset(w.s, 0, sizeof w.s);
  w.lanes = wave32 ? 32 : 64;
  w.all_lanes = wave32 ? 0xffffffffu : ~u64{0};
  w.write_mask(reg_exec, w.all_lanes);
  w.fill_mask(w.exec());
  w.mode = 0xf0;  // round to nearest, denormals kept
  w.mode_changed();
  w.engine = engine_.get();
  w.workgroup = &group_;
  w.dispatch = &state_;
  w.code = cache_.get();
  w.target = &target_;
  w.reserve_scratch(64 * 256);
  w.scratch_bytes = 256;
}

InstructionBench::~InstructionBench() = default;

void InstructionBench::clear_error() {
  state_.status.store(DispatchStatus::running);
  state_.error = {};
  wave_->state = WaveState::ready;
}

bool InstructionBench::run(const std::string& text) {
  const auto bytes = assemble(target_.processor, wave_->lanes == 32, text);
  if (!bytes) return false;
  const u64 offset = next_code_ & (code_.size() - 1);
  if (offset + bytes->size() + 64 > code_.size()) {
    cache_->invalidate(0, 0);
    next_code_ -= offset;
    return run(text);
  }
  std::memcpy(code_.data() + offset, bytes->data(), bytes->size());
  clear_error();
  const Operation* op = cache_->at(next_code_);
  wave_->next = op->execute.load()(*wave_, op);
  next_code_ += bytes->size();
  if (!failed()) record(target_.processor, cache_->describe(next_code_ - bytes->size()));
  return true;
}

const std::map<std::string, std::set<std::string>>& InstructionBench::executed() { return recorded(); }

}  // namespace kerncap::softgpu::isa
