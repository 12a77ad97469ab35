// The captured kernel as assembly, to read: what a project without sources has to offer, and a start for everybody
// else.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace kerncap::emit {

// llvm-objdump's listing of one function; nothing when no llvm-objdump that knows the architecture is found. `compiler`
// (may be empty): the one beside it comes first.
std::optional<std::string> disassemble(const std::filesystem::path& code_object, const std::string& symbol,
                                       const std::filesystem::path& compiler);

}  // namespace kerncap::emit
