// The containers that clang puts device code into; each function appends what it finds.
//
// Layouts: clang/docs/ClangOffloadBundler.rst ("Bundled Text/Binary File Layout", "Compression and Decompression") and
// llvm/docs/CommandGuide/llvm-offload-binary.rst with llvm/Object/OffloadBinary.h.
#pragma once

#include <cstdint>
#include <vector>

#include "core/codeobject/byte_view.h"
#include "core/codeobject/code_object.h"

namespace kerncap::codeobject {

inline constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";
inline constexpr std::string_view compressed_magic = "CCOB";
inline constexpr std::string_view offload_binary_magic{"\x10\xff\x10\xad", 4};
inline constexpr std::string_view bitcode_magic{"BC\xc0\xde", 4};

// Several plain or compressed bundles, one behind the other with padding between them (.hip_fatbin of a linked file).
void find_in_bundles(const ByteView& section, std::vector<FoundCodeObject>& found);

// Several offload binaries one behind the other (.llvm.offloading).
void find_in_offload_binaries(const ByteView& section, std::vector<FoundCodeObject>& found);

// Fills in everything but the bytes' origin: digest, bitcode flag, normalised target.
FoundCodeObject make_found(std::string entry_id, std::string target, Container container,
                           std::span<const std::byte> bytes);

}  // namespace kerncap::codeobject
