// Code objects: finding them inside files and reading what they say.
//
// Everything here takes untrusted bytes: every offset and size is checked, and damage is thrown as
// support::Error{bad_input} naming `name` and what is wrong. No global state; all functions may run in parallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codeobject/kernel.h"

namespace kerncap::codeobject {

enum class Container {
  raw,                // the file is an AMDGPU ELF itself
  offload_bundle,     // __CLANG_OFFLOAD_BUNDLE__, alone or in .hip_fatbin (several, at 4 KiB alignment)
  compressed_bundle,  // CCOB, versions 1 to 3
  llvm_offloading,    // .llvm.offloading (new driver)
  rdc_section,        // __CLANG_OFFLOAD_BUNDLE__hip-amdgcn-... sections (RDC, old driver; bitcode)
};

struct FoundCodeObject {
  std::string entry_id;  // as the container spells it, e.g. "hipv4-amdgcn-amd-amdhsa--gfx90a"
  std::string target;    // normalised target id, e.g. "gfx90a:xnack+"
  Container container = Container::raw;
  bool is_bitcode = false;       // LLVM bitcode (RDC) instead of an ELF
  std::vector<std::byte> bytes;  // the code object itself, decompressed
  std::string digest;            // SHA-256 of `bytes`, lower-case hexadecimal: the database's primary key
};

// All device code objects in an object file, executable, shared library, archive member, bundle or raw code object;
// empty when the file holds none. Host entries of bundles are skipped.
std::vector<FoundCodeObject> find_code_objects(std::span<const std::byte> file, std::string_view name);

// The same for an object that is LLVM bitcode because the host code is optimised when it is linked (-flto). Bitcode of a
// newer LLVM than the one that Kerncap was built with may be refused (bad_input).
std::vector<FoundCodeObject> code_objects_in_host_bitcode(std::span<const std::byte> file, std::string_view name);

struct Variable {             // __device__, __constant__, managed and other global objects of the code object
  std::string name;           // mangled symbol
  std::uint64_t address = 0;  // virtual address inside the code object (ELF st_value), bytes
  std::uint64_t size = 0;     // bytes
};

struct Segment {                                                               // PT_LOAD
  std::uint64_t address = 0, memory_size = 0, file_offset = 0, file_size = 0;  // bytes
  bool executable = false, writable = false;
};

struct CodeObject {
  std::string target;    // target id from e_flags or the metadata's amdhsa.target, e.g. "gfx90a:sramecc+:xnack-"
  unsigned version = 0;  // code object version: 3, 4, 5, 6
  std::vector<Kernel> kernels;
  std::vector<Variable> variables;  // defined STT_OBJECT symbols that are not kernel descriptors
  std::vector<Segment> segments;
  std::vector<std::string> cuids;  // hex of the __hip_cuid_<hex> symbols; empty for older compilers
};

CodeObject parse_code_object(std::span<const std::byte> elf, std::string_view name);

// "_Z3addPfS_i" -> "add(float*, float*, int)"; the name itself when it isn't mangled.
std::string demangle(std::string_view symbol);

// The names by which people call a function: demangled, mangled, without return type, without parameters, without
// namespaces, without template arguments. May repeat.
std::vector<std::string> name_spellings(std::string_view symbol, std::string_view demangled);

// The kernels (mangled names) that a host object file launches, from the stubs that clang puts there for each: what is
// known of relocatable device code before it is linked. Empty for a stripped file, and for one that is no host ELF.
std::vector<std::string> kernels_with_host_stubs(std::span<const std::byte> file, std::string_view name);

// The kernel-name patterns of every Kerncap command: a glob over the demangled name (without '*' it must match the
// whole demangled name, or the name without its parameters, or the unqualified base name), "re:..." a regular
// expression, "sym:..." the exact symbol. Throws Error{usage} for a malformed pattern.
class NamePattern {
 public:
  explicit NamePattern(std::string_view pattern);
  bool matches(std::string_view symbol, std::string_view demangled) const;
  const std::string& text() const { return text_; }

 private:
  struct Compiled;
  std::string text_;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace kerncap::codeobject
