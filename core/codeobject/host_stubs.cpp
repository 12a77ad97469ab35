// Kernels as the host sees them. For each kernel that a translation unit defines clang emits a host function of the
// same signature whose identifier starts with "__device_stub__" (clang/lib/AST/ItaniumMangle.cpp,
// CXXNameMangler::mangleDeviceStubName), so "_Z20__device_stub__scaleIfEvPT_" stands for "_Z5scaleIfEvPT_".
#include <llvm/Object/ELF.h>

#include <algorithm>

#include "core/codeobject/code_object.h"
#include "core/codeobject/elf_file.h"

namespace kerncap::codeobject {
namespace {

constexpr std::string_view stub_prefix = "__device_stub__";

// The kernel's own symbol; empty when `symbol` is no stub.
std::string kernel_of_stub(std::string_view symbol) {
  const std::size_t at = symbol.find(stub_prefix);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = symbol.substr(at + stub_prefix.size());
  if (at == 0) return std::string(rest);  // extern "C"
  std::size_t digits = at;
  while (digits > 0 && symbol[digits - 1] >= '0' && symbol[digits - 1] <= '9') --digits;
  std::size_t length = 0;
  for (const char c : symbol.substr(digits, at - digits)) {
    length = 10 * length + static_cast<std::size_t>(c - '0');
    if (length > symbol.size()) return {};
  }
  if (length <= stub_prefix.size()) return {};
  return std::string(symbol.substr(0, digits)) + std::to_string(length - stub_prefix.size()) + std::string(rest);
}

}  // namespace

std::vector<std::string> kernels_with_host_stubs(std::span<const std::byte> file, std::string_view name) {
  std::vector<std::string> kernels;
  const ByteView view(file, name);
  if (!view.starts_with("\177ELF") || is_amdgpu_elf(view)) return kernels;
  const auto elf = open_elf(view);
  if (!elf) return kernels;
  auto sections = elf->sections();
  if (!sections) {
    llvm::consumeError(sections.takeError());
    return kernels;
  }
  for (const auto& section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_SYMTAB) continue;
    auto symbols = elf->symbols(&section);
    auto names = elf->getStringTableForSymtab(section);
    if (!symbols || !names) {
      if (!symbols) llvm::consumeError(symbols.takeError());
      if (!names) llvm::consumeError(names.takeError());
      continue;
    }
    for (const auto& symbol : *symbols) {
      if (symbol.getType() != llvm::ELF::STT_FUNC || symbol.st_shndx == llvm::ELF::SHN_UNDEF) continue;
      auto text = symbol.getName(*names);
      if (!text) {
        llvm::consumeError(text.takeError());
        continue;
      }
      if (std::string kernel = kernel_of_stub({text->data(), text->size()}); !kernel.empty())
        kernels.push_back(std::move(kernel));
    }
  }
  std::ranges::sort(kernels);
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  return kernels;
}

}  // namespace kerncap::codeobject
