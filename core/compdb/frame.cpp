#include "core/compdb/frame.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include <cstring>

namespace kerncap::compdb {
namespace {

constexpr std::string_view magic = "KCDB";
// 17 KB of a C++ unit: 29 us and 4.3 KB at level 3, 63 us and 3.9 KB here, 96 us and 3.9 KB at level 9.
constexpr int compression_level = 5;

// Setting a compressor up takes 60 us, a fifth of what recording a small C file costs in all.
constexpr std::size_t worth_compressing = 3072;

template <typename Integer>
Integer read(std::string_view bytes, std::size_t at) {
  Integer value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;  // Kerncap runs on little-endian hosts only (the AMD GPU runtime does too)
}

template <typename Integer>
void write(std::string& bytes, Integer value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint64_t checksum(std::string_view fields, std::string_view payload) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, fields.data(), fields.size());
  XXH3_64bits_update(&state, payload.data(), payload.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace

std::string make_frame(FrameType type, std::string_view payload) {
  std::string compressed;
  std::uint32_t raw_size = 0;
  std::string_view stored = payload;
  if (payload.size() >= worth_compressing) {
    compressed.resize(ZSTD_compressBound(payload.size()));
    const std::size_t size =
        ZSTD_compress(compressed.data(), compressed.size(), payload.data(), payload.size(), compression_level);
    if (ZSTD_isError(size) == 0U && size < payload.size()) {
      raw_size = static_cast<std::uint32_t>(payload.size());
      stored = std::string_view(compressed).substr(0, size);
    }
  }
  std::string fields;
  write(fields, static_cast<std::uint32_t>(stored.size()));
  write(fields, static_cast<std::uint16_t>(type));
  write(fields, frame_version);
  write(fields, raw_size);
  std::string frame(magic);
  frame.reserve(frame_header_size + stored.size());
  frame += fields;
  write(frame, checksum(fields, stored));
  frame += stored;
  return frame;
}

bool frame_at(std::string_view log, std::uint64_t offset, Frame& frame) {
  if (offset > log.size() || log.size() - offset < frame_header_size) return false;
  const std::string_view here = log.substr(offset);
  if (!here.starts_with(magic)) return false;
  const auto length = read<std::uint32_t>(here, 4);
  if (length > largest_payload || length > here.size() - frame_header_size) return false;
  const std::string_view stored = here.substr(frame_header_size, length);
  if (read<std::uint64_t>(here, 16) != checksum(here.substr(4, 12), stored)) return false;
  frame = {.offset = offset,
           .size = frame_header_size + length,
           .type = read<std::uint16_t>(here, 8),
           .version = read<std::uint16_t>(here, 10),
           .raw_size = read<std::uint32_t>(here, 12),
           .stored = stored};
  return true;
}

ScanResult scan_frames(std::string_view log, std::uint64_t start, const std::function<void(const Frame&)>& each) {
  ScanResult result;
  std::uint64_t at = start;
  bool in_damage = false;
  while (at < log.size()) {
    Frame frame;
    if (frame_at(log, at, frame)) {
      each(frame);
      ++result.frames;
      at += frame.size;
      in_damage = false;
      result.end = at;
      continue;
    }
    const std::size_t next = log.find(magic, at + 1);
    const std::uint64_t skipped = (next == std::string_view::npos ? log.size() : next) - at;
    if (!in_damage) ++result.damaged_places;
    in_damage = true;
    result.damaged_bytes += skipped;
    at += skipped;
  }
  // A damaged tail may be a frame that is still being written: a later scan starts there again.
  if (result.end < start) result.end = start;
  return result;
}

bool frame_payload(const Frame& frame, std::string& payload) {
  if (frame.raw_size == 0) {
    payload.assign(frame.stored);
    return true;
  }
  if (frame.raw_size > largest_raw_size) return false;
  // The checksum is no signature: believe the size only as far as zstd's own header agrees with it.
  if (ZSTD_getFrameContentSize(frame.stored.data(), frame.stored.size()) != frame.raw_size) return false;
  payload.resize(frame.raw_size);
  const std::size_t size = ZSTD_decompress(payload.data(), payload.size(), frame.stored.data(), frame.stored.size());
  return ZSTD_isError(size) == 0U && size == frame.raw_size;
}

}  // namespace kerncap::compdb
