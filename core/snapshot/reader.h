// Reading a snapshot folder. Hostile input is expected: opening checks the manifest, every offset and size; every
// chunk's hash is checked when it is read. Opening reads no chunk. Errors: support::Error{bad_input} naming file and
// damage.
//
// Thread-safety: const members may be called in parallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/snapshot/manifest.h"
#include "core/support/hash.h"

namespace kerncap::snapshot {

enum class State { before, after };

class Reader {
 public:
  explicit Reader(std::filesystem::path folder);
  ~Reader();
  Reader(Reader&&) noexcept;

  const std::filesystem::path& folder() const;
  const Manifest& manifest() const;

  // Bytes [offset, offset + out.size()) of a region in a state. Elided zero chunks are filled in.
  void read(std::size_t dispatch, std::size_t region, State state, std::uint64_t offset,
            std::span<std::byte> out) const;

  // Number of 64 KiB chunks of a region (the last may be short), and whether the kernel changed / the chunk is all
  // zero.
  std::uint64_t chunks(std::size_t dispatch, std::size_t region) const;
  bool changed(std::size_t dispatch, std::size_t region, std::uint64_t chunk) const;
  bool is_zero(std::size_t dispatch, std::size_t region, State state, std::uint64_t chunk) const;
  // XXH3-128 of the chunk's bytes as the index has it, 0 for zeros: equal bytes have equal checksums, nothing is read.
  support::Hash128 checksum(std::size_t dispatch, std::size_t region, State state, std::uint64_t chunk) const;

  std::vector<std::byte> kernarg(std::size_t dispatch) const;             // the kernarg segment as dispatched
  std::filesystem::path code_object_path(std::string_view digest) const;  // code/<digest>.hsaco
  std::vector<std::byte> code_object(std::string_view digest) const;      // SHA-256 checked

  std::uint64_t stored_bytes() const;  // of all chunks in the pack files: what verify() reports as progress

  // Reads everything and checks every hash; returns one sentence per damage, empty when whole.
  std::vector<std::string> verify(const std::function<void(std::uint64_t bytes)>& progress) const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace kerncap::snapshot
