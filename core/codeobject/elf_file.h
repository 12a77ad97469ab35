// Opening a little-endian 64-bit ELF with LLVM's checked reader.
#pragma once

#include <llvm/Object/ELF.h>

#include <optional>

#include "core/codeobject/byte_view.h"

namespace kerncap::codeobject {

using ElfFile = llvm::object::ELFFile<llvm::object::ELF64LE>;

// Nothing when the file is an ELF of another class or byte order; throws Error{bad_input} when its header is damaged.
inline std::optional<ElfFile> open_elf(const ByteView& file) {
  using namespace llvm::ELF;
  if (file.size() < EI_NIDENT || file.read<std::uint8_t>(EI_CLASS, "the ELF header") != ELFCLASS64 ||
      file.read<std::uint8_t>(EI_DATA, "the ELF header") != ELFDATA2LSB)
    return std::nullopt;
  auto elf = ElfFile::create(llvm::StringRef(file.text().data(), file.size()));
  if (!elf)
    support::fail(support::ExitCode::bad_input, "{}: damaged ELF header: {}", file.name(),
                  llvm::toString(elf.takeError()));
  return *elf;
}

inline bool is_amdgpu_elf(const ByteView& file) {
  return file.contains(0, 64) &&
         file.read<std::uint8_t>(llvm::ELF::EI_CLASS, "the ELF header") == llvm::ELF::ELFCLASS64 &&
         file.read<std::uint16_t>(18, "the ELF header") == llvm::ELF::EM_AMDGPU;
}

}  // namespace kerncap::codeobject
