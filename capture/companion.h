// The door to libkerncap-capture-codeobject.so, which holds everything that needs LLVM: names, patterns, metadata.
//
// Both libraries are built together; the table below is their whole contract. The companion is opened lazily, with
// RTLD_LOCAL, from our own folder, so that an application that never loads a kernel never pays for it and no symbol of
// it meets the application's.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codeobject/kernel.h"

namespace kerncap::capture {

inline constexpr const char* companion_name = "libkerncap-capture-codeobject.so";
inline constexpr const char* companion_entry = "kerncap_capture_companion_1";

// A named range of a code object, in its own (unrelocated) addresses.
struct CodeSymbol {
  std::string name;
  std::uint64_t address = 0, size = 0;
};

struct CodeDescription {
  std::vector<codeobject::Kernel> kernels;
  std::vector<CodeSymbol> symbols;  // functions, kernels and variables; ascending addresses
};

struct Companion {
  // All throw support::Error.
  std::string (*demangle)(std::string_view symbol);
  bool (*matches)(const std::string& pattern, std::string_view symbol, std::string_view demangled);
  CodeDescription (*describe)(std::span<const std::byte> elf, std::string_view name);
};

// Throws Error{environment} when it cannot be opened. The result stays valid for the life of the process.
const Companion& companion();

}  // namespace kerncap::capture
