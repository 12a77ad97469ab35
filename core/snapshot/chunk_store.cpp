#include "core/snapshot/chunk_store.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/snapshot/manifest.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/xxh3_stream.h"

namespace kerncap::snapshot {
namespace {

using layout::ChunkEntry;
using support::ExitCode;
using support::fail;

constexpr std::size_t lane_buffer = 1 << 20;
constexpr std::uint64_t write_behind = 8 << 20;

bool all_zero(std::span<const std::byte> bytes) {
  // The first byte is zero and every byte equals the one before it: memcmp finds that at memory speed.
  return bytes.empty() ||
         (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

void write_at(int fd, std::uint64_t offset, std::span<const std::byte> data, const std::string& name) {
  while (!data.empty()) {
    const ssize_t wrote = ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail(ExitCode::environment, "cannot write '{}': {}", name, std::strerror(errno));
    offset += static_cast<std::uint64_t>(wrote);
    data = data.subspan(static_cast<std::size_t>(wrote));
  }
}

}  // namespace

struct ChunkStore::Lane::Compressor {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::vector<std::byte> target = std::vector<std::byte>(chunk_size);
  ~Compressor() { ZSTD_freeCCtx(context); }
};

ChunkStore::ChunkStore(std::filesystem::path folder, int compression_level, std::uint64_t pack_size, bool sync)
    : folder_(std::move(folder)), compression_level_(compression_level), pack_size_(pack_size), sync_(sync) {
  std::error_code error;
  std::filesystem::create_directory(folder_ / "chunks", error);
  if (error) fail(ExitCode::environment, "cannot write '{}': {}", (folder_ / "chunks").string(), error.message());
  std::filesystem::permissions(folder_ / "chunks", std::filesystem::perms::owner_all, error);
}

ChunkStore::~ChunkStore() {
  for (const Pack& pack : packs_) ::close(pack.fd);
}

ChunkStore::Lane::Lane(ChunkStore& store) : store_(store), compressor_(std::make_unique<Compressor>()) {
  if (compressor_->context == nullptr) fail(ExitCode::environment, "not enough memory to compress the snapshot");
  buffer_.reserve(lane_buffer);
}
ChunkStore::Lane::~Lane() = default;

std::uint32_t ChunkStore::Lane::add(std::span<const std::byte> chunk) {
  if (all_zero(chunk)) {
    const std::lock_guard lock(store_.mutex_);
    ++store_.counts_.zero;
    return 0;
  }
  const support::Hash128 hash = support::xxh3_128(chunk);
  std::uint32_t id = 0;
  {
    const std::lock_guard lock(store_.mutex_);
    if (store_.entries_.size() >= UINT32_MAX - 1) fail(ExitCode::environment, "the snapshot has too many chunks");
    const auto [found, fresh] = store_.find_or_add(hash);
    id = found;
    if (!fresh) {
      ++store_.counts_.duplicate;
      return id;
    }
    store_.entries_.back().raw_size = static_cast<std::uint32_t>(chunk.size());  // place and codec follow at flush()
    ++store_.counts_.stored;
  }
  std::span<const std::byte> stored = chunk;
  layout::Codec codec = layout::Codec::raw;
  if (store_.compression_level_ != 0 && looks_compressible(chunk)) {
    // A target smaller than the source makes zstd stop early where compression would not pay (an eighth saved).
    if (const std::size_t size = compress(chunk, chunk.size() - chunk.size() / 8); size != 0) {
      stored = std::span(compressor_->target).first(size);
      codec = layout::Codec::zstd;
    }
  }
  const bool at_once =
      codec == layout::Codec::raw && chunk.size() == chunk_size;  // a copy into the buffer gains nothing
  {
    const std::lock_guard lock(store_.mutex_);
    ChunkEntry& entry = store_.entries_[id - 1];
    entry.stored_size = static_cast<std::uint32_t>(stored.size());
    entry.codec = codec;
    store_.counts_.stored_bytes += stored.size();
  }
  if (at_once) {
    write(stored, std::span(&id, 1));
    return id;
  }
  if (buffer_.size() + stored.size() > lane_buffer) flush();
  buffer_.insert(buffer_.end(), stored.begin(), stored.end());
  pending_.push_back(id);
  return id;
}

// 0 when the result would be larger than `limit`.
std::size_t ChunkStore::Lane::compress(std::span<const std::byte> bytes, std::size_t limit) {
  const std::size_t size = ZSTD_compressCCtx(compressor_->context, compressor_->target.data(), limit, bytes.data(),
                                             bytes.size(), store_.compression_level_);
  return ZSTD_isError(size) ? 0 : size;
}

// Three samples instead of all of it: trying in vain is most of the processor time of random data.
bool ChunkStore::Lane::looks_compressible(std::span<const std::byte> chunk) {
  constexpr std::size_t sample = 4096;
  if (chunk.size() < 8 * sample) return true;
  for (const std::size_t at : {std::size_t{0}, chunk.size() / 2, chunk.size() - sample})
    if (compress(chunk.subspan(at, sample), sample - sample / 16) != 0) return true;
  return false;
}

void ChunkStore::Lane::flush() {
  if (buffer_.empty()) return;
  write(buffer_, pending_);
  buffer_.clear();
  pending_.clear();
}

// `bytes` are the stored bytes of the chunks `ids`, one after the other.
void ChunkStore::Lane::write(std::span<const std::byte> bytes, std::span<const std::uint32_t> ids) {
  const Place place = store_.reserve(bytes.size());
  write_at(place.fd, place.offset, bytes, (store_.folder_ / "chunks").string());
  // The disk works while we compress, instead of during the fsync at the end. Only a hint: errors come out there.
  if (place.begin_writing) ::sync_file_range(place.fd, 0, 0, SYNC_FILE_RANGE_WRITE);
  const std::lock_guard lock(store_.mutex_);
  std::uint64_t offset = place.offset;
  for (const std::uint32_t id : ids) {
    ChunkEntry& entry = store_.entries_[id - 1];
    entry.file = place.file;
    entry.offset = offset;
    offset += entry.stored_size;
  }
}

ChunkStore::Place ChunkStore::reserve(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (packs_.empty() || packs_.back().size >= pack_size_) {
    Pack pack{fmt::format("chunks/{:04}.pack", packs_.size()), -1, 0, 0};
    const std::filesystem::path path = folder_ / pack.name;
    pack.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (pack.fd < 0) fail(ExitCode::environment, "cannot write '{}': {}", path.string(), std::strerror(errno));
    packs_.push_back(std::move(pack));
  }
  Pack& pack = packs_.back();
  pack.unwritten += size;
  const bool begin_writing = sync_ && pack.unwritten >= write_behind;
  if (begin_writing) pack.unwritten = 0;
  const Place place{static_cast<std::uint32_t>(packs_.size() - 1), pack.size, pack.fd, begin_writing};
  pack.size += size;
  return place;
}

std::pair<std::uint32_t, bool> ChunkStore::find_or_add(const support::Hash128& hash) {
  if (entries_.size() >= slots_.size() / 4 * 3) grow_slots();
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash.low & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const ChunkEntry& entry = entries_[slots_[slot] - 1];
    if (entry.hash_high == hash.high && entry.hash_low == hash.low) return {slots_[slot], false};
  }
  ChunkEntry& entry = entries_.emplace_back();
  entry.hash_high = hash.high;
  entry.hash_low = hash.low;
  slots_[slot] = static_cast<std::uint32_t>(entries_.size());
  return {slots_[slot], true};
}

void ChunkStore::grow_slots() {
  std::vector<std::uint32_t> larger(std::max<std::size_t>(1024, 2 * slots_.size()));
  const std::size_t mask = larger.size() - 1;
  for (const std::uint32_t id : slots_) {
    if (id == 0) continue;
    std::size_t slot = entries_[id - 1].hash_low & mask;
    while (larger[slot] != 0) slot = (slot + 1) & mask;
    larger[slot] = id;
  }
  slots_ = std::move(larger);
}

ChunkStore::Counts ChunkStore::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<std::string> ChunkStore::finish() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  std::vector<std::uint64_t> sizes;
  for (const Pack& pack : packs_) {
    if (sync_ && ::fsync(pack.fd) != 0)
      fail(ExitCode::environment, "cannot write '{}': {}", (folder_ / pack.name).string(), std::strerror(errno));
    names.push_back(pack.name);
    sizes.push_back(pack.size);
  }
  layout::IndexHeader header;
  header.bytes_per_chunk = chunk_size;
  header.file_count = packs_.size();
  header.chunk_count = entries_.size();
  // Twice through the entries, once for the checksum: a copy of them all would need as much memory again.
  const auto payload = [&](auto&& sink) {
    sink(std::as_bytes(std::span(sizes)));
    std::vector<ChunkEntry> some;
    for (const ChunkEntry& entry : entries_) {
      some.push_back(entry);
      if (some.size() < 4096 && &entry != &entries_.back()) continue;
      sink(std::as_bytes(std::span(some)));
      some.clear();
    }
  };
  support::Xxh3Stream checksum;
  payload([&](std::span<const std::byte> bytes) { checksum.update(bytes); });
  header.hash_high = checksum.digest().high;
  header.hash_low = checksum.digest().low;
  support::AtomicFile file(folder_ / layout::index_name);
  file.write(std::as_bytes(std::span(&header, 1)));
  payload([&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
  return names;
}

}  // namespace kerncap::snapshot
