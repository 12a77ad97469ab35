// The writing half of the chunk files: content-addressed, duplicates and zeros elided, compressed where it pays.
//
// Thread-safety: each thread uses its own Lane; the store itself is safe from all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/snapshot/layout.h"
#include "core/support/hash.h"

namespace kerncap::snapshot {

class ChunkStore {
 public:
  ChunkStore(std::filesystem::path folder, int compression_level, std::uint64_t pack_size, bool sync);
  ~ChunkStore();

  class Lane {
   public:
    explicit Lane(ChunkStore& store);
    ~Lane();
    // Returns the chunk's id; its bytes may stay in this lane's buffer until flush().
    std::uint32_t add(std::span<const std::byte> chunk);
    void flush();

   private:
    struct Compressor;
    std::size_t compress(std::span<const std::byte> bytes, std::size_t limit);
    bool looks_compressible(std::span<const std::byte> chunk);
    void write(std::span<const std::byte> bytes, std::span<const std::uint32_t> ids);

    ChunkStore& store_;
    std::unique_ptr<Compressor> compressor_;
    std::vector<std::byte> buffer_;
    std::vector<std::uint32_t> pending_;  // ids whose bytes lie in buffer_, in order
  };

  struct Counts {
    std::uint64_t stored_bytes = 0, zero = 0, duplicate = 0, stored = 0;
  };
  Counts counts() const;

  // All lanes must be flushed. Writes chunks/index.bin; returns the pack files' names relative to the folder.
  std::vector<std::string> finish();

 private:
  struct Place {
    std::uint32_t file;
    std::uint64_t offset;
    int fd;
    bool begin_writing;  // after this piece
  };
  Place reserve(std::uint64_t size);
  // The id of an equal chunk, or of a new entry at the end.
  std::pair<std::uint32_t, bool> find_or_add(const support::Hash128& hash);
  void grow_slots();

  std::filesystem::path folder_;
  const int compression_level_;
  const std::uint64_t pack_size_;
  const bool sync_;
  mutable std::mutex mutex_;  // everything below
  // Ids by hash, open addressing: 8 bytes a chunk on average, where a node of std::unordered_map takes 56. A deque
  // does not move 40 bytes a chunk when it grows, which would double the peak.
  std::vector<std::uint32_t> slots_;  // 0: free
  std::deque<layout::ChunkEntry> entries_;
  struct Pack {
    std::string name;
    int fd;
    std::uint64_t size;
    std::uint64_t unwritten;  // bytes since the kernel was last told to begin writing
  };
  std::vector<Pack> packs_;
  Counts counts_;
};

}  // namespace kerncap::snapshot
