// The binary files of a snapshot, as bytes; docs/formats/snapshot.md says the same in prose. All numbers are
// little-endian, which is what every host of an AMD GPU uses, so the structs are read and written as they are.
//
//   chunks/index.bin   IndexHeader, file sizes (u64 each), ChunkEntry each      one for the whole snapshot
//   <pages file>       PagesHeader, PagesRegion each, before ids, AfterEntry each    one for each dispatch
//
// A chunk id is 0 for a chunk of zeros, else 1 + the position of its ChunkEntry.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace kerncap::snapshot::layout {

static_assert(std::endian::native == std::endian::little, "snapshots are little-endian and mapped as they are");

inline constexpr const char* manifest_name = "manifest.json";
inline constexpr const char* index_name = "chunks/index.bin";
inline constexpr std::uint64_t index_magic = 0x315844495041434b;  // "KCAPIDX1"
inline constexpr std::uint64_t pages_magic = 0x314741505041434b;  // "KCAPPAG1"
inline constexpr std::uint32_t version = 1;

// Device addresses are at most 57 bits wide; anything above is damage. Also keeps every sum below 2^64.
inline constexpr std::uint64_t address_limit = std::uint64_t{1} << 57;

enum class Codec : std::uint8_t { raw = 0, zstd = 1 };

struct IndexHeader {
  std::uint64_t magic = index_magic;
  std::uint32_t format_version = version;
  std::uint32_t bytes_per_chunk = 0;
  std::uint64_t file_count = 0;  // pack files; their names are in the manifest, in this order
  std::uint64_t chunk_count = 0;
  std::uint64_t hash_high = 0, hash_low = 0;  // XXH3-128 of everything after this header
};
static_assert(sizeof(IndexHeader) == 48 && std::is_trivially_copyable_v<IndexHeader>);

struct ChunkEntry {
  std::uint64_t hash_high = 0, hash_low = 0;  // XXH3-128 of the raw bytes
  std::uint64_t offset = 0;                   // in the pack file
  std::uint32_t file = 0;
  std::uint32_t stored_size = 0;
  std::uint32_t raw_size = 0;  // at most 64 KiB; less only for the last chunk of a region
  Codec codec = Codec::raw;
  std::uint8_t reserved[3] = {};
};
static_assert(sizeof(ChunkEntry) == 40 && std::is_trivially_copyable_v<ChunkEntry>);

struct PagesHeader {
  std::uint64_t magic = pages_magic;
  std::uint32_t format_version = version;
  std::uint32_t bytes_per_chunk = 0;
  std::uint64_t region_count = 0;
  std::uint64_t after_count = 0;              // AfterEntry in all
  std::uint64_t hash_high = 0, hash_low = 0;  // XXH3-128 of everything after this header
};
static_assert(sizeof(PagesHeader) == 48 && std::is_trivially_copyable_v<PagesHeader>);

struct PagesRegion {
  std::uint64_t address = 0, size = 0;             // must equal the manifest's region
  std::uint64_t after_first = 0, after_count = 0;  // slice of the AfterEntry array, ascending chunk numbers
};
static_assert(sizeof(PagesRegion) == 32 && std::is_trivially_copyable_v<PagesRegion>);

struct AfterEntry {
  std::uint32_t chunk = 0;  // number inside the region
  std::uint32_t id = 0;     // its content after the kernel
};
static_assert(sizeof(AfterEntry) == 8 && std::is_trivially_copyable_v<AfterEntry>);

}  // namespace kerncap::snapshot::layout
