// The one place for hashing: SHA-256 where identity must hold against anybody (code objects, sources), XXH3 where only
// accidents must be found (log frames, memory chunks).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace kerncap::support {

using Bytes = std::span<const std::byte>;

inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// Lower-case hexadecimal, 64 characters.
std::string sha256_hex(Bytes data);
std::string sha256_hex_of_file(const std::filesystem::path& path);  // throws Error{environment} when unreadable

std::uint64_t xxh3_64(Bytes data);

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128&) const = default;
};
Hash128 xxh3_128(Bytes data);

}  // namespace kerncap::support

template <>
struct std::hash<kerncap::support::Hash128> {
  std::size_t operator()(const kerncap::support::Hash128& h) const noexcept { return h.low; }
};
