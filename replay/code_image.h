// What a replay needs to know of a code object without LLVM: its symbols and its kernels' metadata. An emitted project
// builds this, so it reads the ELF itself and the metadata note with nlohmann-json's MessagePack reader.
//
// Facts: LLVM's "User Guide for AMDGPU Backend", sections "ELF Code Object" and "Code Object Metadata".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codeobject/kernel.h"

namespace kerncap::replay {

struct ImageSymbol {
  std::string name;
  std::uint64_t address = 0, size = 0;  // ELF virtual address
  bool is_function = false, is_object = false, is_local = false;
  bool is_writable = false;             // lies in a section that device code may write
};

struct CodeImage {
  std::string processor;                // "gfx90a", from the metadata's target or empty
  std::string target;                   // "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", from the metadata; may be empty
  std::vector<ImageSymbol> symbols;     // defined, from .symtab and .dynsym, without duplicates
  std::vector<codeobject::Kernel> kernels;
  std::uint64_t memory_size = 0;        // extent of the loadable segments, from virtual address 0

  const ImageSymbol* find(std::string_view name) const;           // unique names only; nullptr also when ambiguous
  const ImageSymbol* covering(std::uint64_t address) const;       // the symbol whose extent holds the address
  const codeobject::Kernel* kernel(std::string_view symbol) const;  // by descriptor symbol ("..." or "....kd") or name
};

// Untrusted input: throws Error{bad_input} naming `name` and the damage.
CodeImage read_code_image(std::span<const std::byte> elf, std::string_view name);

// A variable of the device program: an object in a writable section. __constant__ ones are among them, because the host
// writes them; read-only data, kernel descriptors included, comes with the code.
bool is_variable(const ImageSymbol& symbol);

}  // namespace kerncap::replay
