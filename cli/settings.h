// Settings: kerncap.toml (the nearest one upward from the working directory), then the environment (KERNCAP_*), then
// flags; the later wins. docs/reference.md lists them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace kerncap::cli {

struct Settings {
  std::filesystem::path file;          // the kerncap.toml that was read; empty when there was none
  std::filesystem::path database;      // `database` | KERNCAP_DB; empty: found upward from the working directory
  std::optional<std::string> softgpu;  // `softgpu` | KERNCAP_SOFTGPU: architecture list; unset: the real devices
  std::string sources = "reference";   // `sources`: "reference" or "archive"
  std::uint64_t timeout_seconds = 60;  // `replay.timeout`: a dispatch that takes longer is a hang
};

// Throws Error{bad_input} naming file, line and key for anything it does not understand.
Settings load_settings(const std::filesystem::path& start);

}  // namespace kerncap::cli
