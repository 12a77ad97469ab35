#include "capture/host_pages.h"

#include <algorithm>

#include "core/snapshot/manifest.h"
#include "core/support/hash.h"

namespace kerncap::capture {
namespace {

constexpr std::uint64_t page = 4096;

// Calls with (page number, hash) for each page of `bytes`.
template <typename Each>
void each_page(std::uint64_t offset, std::span<const std::byte> bytes, Each&& each) {
  for (std::uint64_t done = 0; done < bytes.size(); done += page)
    each((offset + done) / page, support::xxh3_64(bytes.subspan(done, std::min(page, bytes.size() - done))));
}

}  // namespace

void HostPages::remember(std::uint64_t region, std::uint64_t offset, std::span<const std::byte> bytes) {
  std::vector<std::uint64_t>& hashes = hashes_[region];
  each_page(offset, bytes, [&](std::uint64_t number, std::uint64_t hash) {
    if (number >= hashes.size()) hashes.resize(number + 1);
    hashes[number] = hash;
  });
}

std::vector<std::uint64_t> HostPages::changed(std::uint64_t region, std::uint64_t offset,
                                              std::span<const std::byte> bytes) {
  std::vector<std::uint64_t>& hashes = hashes_[region];
  std::vector<std::uint64_t> chunks;
  each_page(offset, bytes, [&](std::uint64_t number, std::uint64_t hash) {
    if (number >= hashes.size()) hashes.resize(number + 1);
    if (hashes[number] == hash) return;
    hashes[number] = hash;
    const std::uint64_t chunk = number * page / snapshot::chunk_size * snapshot::chunk_size;
    if (chunks.empty() || chunks.back() != chunk) chunks.push_back(chunk);
  });
  return chunks;
}

}  // namespace kerncap::capture
