// Writing a snapshot folder: bytes of memory go in, in any order and from several buffers at once; worker threads hash,
// compress and write them. The folder appears under its name only by commit(); until then nothing there is a snapshot.
//
//   Writer writer("out.kcap", {});
//   const auto d = writer.begin_dispatch(regions);
//   writer.put(d, 0, State::before, 0, bytes, [&] { /* buffer is free again */ });
//   writer.drain();                                     // all buffers are released
//   writer.put(d, 0, State::after, ...);                // unchanged chunks cost nothing
//   writer.add_code_object(digest, elf); writer.set_kernarg(d, bytes);
//   manifest.dispatches.push_back(...); writer.commit(std::move(manifest));
//
// Memory: 52 bytes for each distinct chunk (its entry and 12 bytes of hash table at most; while that table grows, 6
// more), 8 bytes for each chunk of each region of each dispatch, and for each worker a write buffer of 1 MiB and zstd's
// context (about 1.5 MiB); the buffers given to put() are the caller's. 192 GiB of distinct bytes take about 180 MiB
// and the workers. Errors: support::Error; {environment} for a full disk. After the first error every put() throws it
// again; buffers are released all the same, and the destructor removes the unfinished folder. Thread-safety: put() may
// be called by several threads; the rest by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/snapshot/manifest.h"
#include "core/snapshot/reader.h"

namespace kerncap::snapshot {

struct WriterOptions {
  bool replace = false;       // an existing folder of that name is exchanged for the new one at commit()
  unsigned threads = 0;       // 0: the machine's cores, at most 16
  int compression_level = 1;  // zstd's; 0 stores everything raw
  std::uint64_t pack_size = std::uint64_t{1} << 30;  // a new chunk file is begun past this many bytes
  bool sync = true;                                  // fsync everything before the folder gets its name
};

struct WriterStatistics {
  std::uint64_t raw_bytes = 0;     // given to put()
  std::uint64_t stored_bytes = 0;  // in chunk files
  std::uint64_t zero_chunks = 0, duplicate_chunks = 0, stored_chunks = 0;
};

class Writer {
 public:
  Writer(std::filesystem::path folder, WriterOptions options);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Regions must ascend without overlap; their order is the manifest's. Returns the dispatch's number.
  std::size_t begin_dispatch(const std::vector<Region>& regions);

  // Bytes [offset, offset + data.size()) of a region. `offset` is a multiple of chunk_size; `data` ends at a multiple
  // or at the region's end. `released` is called by a worker when `data` is no longer needed (also after an error).
  // What is never put() reads as zeros; chunks of `after` never put() count as unchanged.
  void put(std::size_t dispatch, std::size_t region, State state, std::uint64_t offset, std::span<const std::byte> data,
           std::function<void()> released);

  // Drains and drops the dispatch's other regions, as if they had not been begun; what was put() of them stays in the
  // chunk files. The regions left are numbered anew.
  void keep_regions(std::size_t dispatch, const std::vector<bool>& keep);

  void drain();  // waits until every buffer is released; throws the first error

  void set_kernarg(std::size_t dispatch, std::span<const std::byte> bytes);
  void add_code_object(std::string_view digest, std::span<const std::byte> bytes);  // once each; the digest is checked

  // Number of chunks that the kernel changed so far.
  std::uint64_t changed_chunks(std::size_t dispatch) const;
  WriterStatistics statistics() const;

  // Drains, writes page tables and index, then the manifest, then gives the folder its name. `manifest.dispatches` must
  // be those begun, in order; pages_file, kernarg_file and chunk_files are filled in here.
  void commit(Manifest manifest);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace kerncap::snapshot
