// Host code that is optimised when it is linked (-flto): the "object" is LLVM bitcode, and the fat binary is the
// initialiser of a global variable in the section .hip_fatbin (clang/lib/CodeGen/CGCUDANV.cpp, makeModuleCtorFunction).
// In an archive member of its own: only who asks for it links LLVM's bitcode reader.
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "core/codeobject/bundle.h"
#include "core/codeobject/code_object.h"

namespace kerncap::codeobject {
namespace {

constexpr std::string_view wrapped_bitcode_magic{"\xde\xc0\x17\x0b", 4};  // llvm/BinaryFormat/Magic.h

// Damaged bitcode is no news to anybody here: the reader's messages go nowhere.
void ignore_diagnostics(const llvm::DiagnosticInfo*, void*) {}

}  // namespace

std::vector<FoundCodeObject> code_objects_in_host_bitcode(std::span<const std::byte> file, std::string_view name) {
  std::vector<FoundCodeObject> found;
  const ByteView view(file, name);
  if (!view.starts_with(bitcode_magic) && !view.starts_with(wrapped_bitcode_magic)) return found;
  llvm::LLVMContext context;
  context.setDiagnosticHandlerCallBack(ignore_diagnostics, nullptr);
  // Lazily: function bodies, nearly all of the file, are not read.
  auto module = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(llvm::StringRef(view.text().data(), view.size()),
                                                                 llvm::StringRef(name.data(), name.size())),
                                           context);
  if (!module) {
    support::fail(support::ExitCode::bad_input, "{}: LLVM bitcode that cannot be read: {}", name,
                  llvm::toString(module.takeError()));
  }
  for (const llvm::GlobalVariable& variable : (*module)->globals()) {
    if (variable.getSection() != ".hip_fatbin" || !variable.hasInitializer()) continue;
    const auto* bytes = llvm::dyn_cast<llvm::ConstantDataSequential>(variable.getInitializer());
    if (bytes == nullptr) continue;
    const llvm::StringRef raw = bytes->getRawDataValues();
    find_in_bundles(ByteView(std::as_bytes(std::span(raw.data(), raw.size())), name), found);
  }
  return found;
}

}  // namespace kerncap::codeobject
