// A project in one file, and back. The file is a zstd-compressed tar; its first member lists every other one with size
// and SHA-256, so that unpacking proves that nothing was lost or changed.
#pragma once

#include <cstdint>
#include <filesystem>

namespace kerncap::emit {

struct PackReport {
  std::uint64_t files = 0, bytes = 0;  // bytes: of the files' content
  std::uint64_t packed_bytes = 0;      // of the one file
};

// Build folders are left out; a linked snapshot is taken in. `file` appears whole or not at all. Throws Error{usage}
// when `project` is no project or `file` exists without `replace`, {environment} when writing fails.
PackReport pack_project(const std::filesystem::path& project, const std::filesystem::path& file, bool replace);

// Throws Error{bad_input} naming the damage when the file is no pack, was cut, changed, or holds anything but the
// listed files at safe relative paths; {usage} when `folder` exists without `replace`. The folder appears whole or not
// at all.
PackReport unpack_project(const std::filesystem::path& file, const std::filesystem::path& folder, bool replace);

}  // namespace kerncap::emit
