// Framing of the append-only log: how records survive writers that are killed at any moment.
//
//   bytes  0  4  8  10  12   16        24
//          │  │  │  │   │    │         └ payload (`length` bytes)
//          │  │  │  │   │    └ XXH3-64 of bytes 4..15 and the payload
//          │  │  │  │   └ raw size: bytes after decompression; 0: the payload is stored as it is
//          │  │  │  └ version of the payload's layout (1)
//          │  │  └ type: 1 record
//          │  └ length of the payload
//          └ magic "KCDB"
// All integers are little-endian. A reader that meets anything else than a whole frame looks for the next magic from
// the byte after the failed one: a length is believed only when the checksum over it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kerncap::compdb {

inline constexpr std::size_t frame_header_size = 24;
inline constexpr std::uint32_t largest_payload = 64U << 20;    // bytes; above it a length is damage, not data
inline constexpr std::uint32_t largest_raw_size = 256U << 20;  // bytes after decompression
enum class FrameType : std::uint16_t { record = 1 };
inline constexpr std::uint16_t frame_version = 1;

// One frame with `payload` compressed (zstd) where that makes it smaller.
std::string make_frame(FrameType type, std::string_view payload);

struct Frame {
  std::uint64_t offset = 0, size = 0;  // in the log, bytes, header included
  std::uint16_t type = 0, version = 0;
  std::uint32_t raw_size = 0;
  std::string_view stored;  // the payload as stored
};

struct ScanResult {
  std::uint64_t end = 0;  // first byte that a later scan has to look at again
  std::uint64_t frames = 0, damaged_bytes = 0, damaged_places = 0;
};

// Calls `each` for every whole frame of `log` from `start` on, in order.
ScanResult scan_frames(std::string_view log, std::uint64_t start, const std::function<void(const Frame&)>& each);

// The frame at `offset`, when a whole one stands there.
bool frame_at(std::string_view log, std::uint64_t offset, Frame& frame);

// The payload as it was before compression; false when it cannot be.
bool frame_payload(const Frame& frame, std::string& payload);

}  // namespace kerncap::compdb
