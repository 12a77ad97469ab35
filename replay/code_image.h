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
  bool is_writable = false;  // lies in a section that device code may write
};

struct CodeImage {
  std::string processor;             // "gfx90a", from the metadata's target or empty
  std::string target;                // "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", from the metadata; may be empty
  std::vector<ImageSymbol> symbols;  // defined, from .symtab and .dynsym, without duplicates
  std::vector<codeobject::Kernel> kernels;
  struct Segment {
    std::uint64_t address = 0, memory_size = 0, file_offset = 0, file_size = 0;
  };
  std::vector<Segment> segments;  // loadable; inside the file
  std::uint64_t memory_size = 0;  // extent of the loadable segments, from virtual address 0

  const ImageSymbol* find(std::string_view name) const;             // unique names only; nullptr also when ambiguous
  const ImageSymbol* covering(std::uint64_t address) const;         // the symbol whose extent holds the address
  const codeobject::Kernel* kernel(std::string_view symbol) const;  // by descriptor symbol ("..." or "....kd") or name
};

// Untrusted input: throws Error{bad_input} naming `name` and the damage.
CodeImage read_code_image(std::span<const std::byte> elf, std::string_view name);

// May the symbol be a variable of the device program? Data objects are; kernel descriptors are not. Whether read-only
// data was a variable to the application (__constant__ memory is read-only in newer code objects) only its memory can
// tell: it is where the host has written there.
bool is_data(const ImageSymbol& symbol);

// The bytes of [address, address + size) as the file has them; zeros where it has none (.bss). Empty when out of range.
std::vector<std::byte> initial_bytes(const CodeImage& image, std::span<const std::byte> elf, std::uint64_t address,
                                     std::uint64_t size);

}  // namespace kerncap::replay
