#include "core/snapshot/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "core/snapshot/layout.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"

namespace kerncap::snapshot {
namespace {

using layout::AfterEntry;
using layout::ChunkEntry;
using support::ExitCode;
using support::fail;

constexpr std::uint64_t largest_kernarg = 16u << 20;
constexpr std::uint64_t largest_code_object = std::uint64_t{8} << 30;

class File {
 public:
  // O_NONBLOCK: a FIFO put in a file's place must not hang us; fstat then refuses it.
  explicit File(std::filesystem::path path) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) fail(ExitCode::bad_input, "cannot read '{}': {}", path_.string(), std::strerror(errno));
    struct stat status {};
    if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(fd_);
      fail(ExitCode::bad_input, "cannot read '{}': not a regular file", path_.string());
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(File&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}
  File& operator=(File&&) = delete;

  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(ExitCode::bad_input, "cannot read '{}': {}", path_.string(), std::strerror(errno));
      if (got == 0) fail(ExitCode::bad_input, "'{}' is truncated at byte {}", path_.string(), offset);
      offset += static_cast<std::uint64_t>(got);
      out = out.subspan(static_cast<std::size_t>(got));
    }
  }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

std::vector<std::byte> read_whole(const std::filesystem::path& path, std::uint64_t limit) {
  const File file(path);
  if (file.size() > limit)
    fail(ExitCode::bad_input, "'{}' is larger ({} bytes) than can be right", path.string(), file.size());
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

// Takes structs off the front of a file's bytes; the caller has checked the total size.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T one() {
    T value;
    take(&value, sizeof value);
    return value;
  }
  template <typename T>
  std::vector<T> many(std::uint64_t count) {
    std::vector<T> values(count);
    take(values.data(), count * sizeof(T));
    return values;
  }

 private:
  void take(void* target, std::size_t size) {
    if (size != 0) std::memcpy(target, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }
  std::span<const std::byte> bytes_;
};

std::uint64_t chunk_count(std::uint64_t size) { return (size + chunk_size - 1) / chunk_size; }

std::uint64_t chunk_length(std::uint64_t region_size, std::uint64_t chunk) {
  return std::min(chunk_size, region_size - chunk * chunk_size);
}

struct Index {
  std::vector<std::uint64_t> file_sizes;
  std::vector<ChunkEntry> entries;
};

template <typename Header>
Header checked_header(std::span<const std::byte> bytes, std::uint64_t magic, const std::string& name) {
  if (bytes.size() < sizeof(Header)) fail(ExitCode::bad_input, "'{}' is truncated: {} bytes", name, bytes.size());
  const Header header = Cursor(bytes).one<Header>();
  if (header.magic != magic) fail(ExitCode::bad_input, "'{}' is not what its name says (wrong magic)", name);
  if (header.format_version != layout::version || header.bytes_per_chunk != chunk_size)
    fail(ExitCode::bad_input, "'{}' has version {} with chunks of {} bytes; this Kerncap reads version {} with {}",
         name, header.format_version, header.bytes_per_chunk, layout::version, chunk_size);
  const support::Hash128 hash = support::xxh3_128(bytes.subspan(sizeof(Header)));
  if (hash.high != header.hash_high || hash.low != header.hash_low)
    fail(ExitCode::bad_input, "'{}' is damaged (its checksum differs)", name);
  return header;
}

Index read_index(const std::filesystem::path& path) {
  const std::string name = path.string();
  const std::vector<std::byte> bytes = read_whole(path, std::uint64_t{1} << 36);
  const auto header = checked_header<layout::IndexHeader>(bytes, layout::index_magic, name);
  const std::uint64_t payload = bytes.size() - sizeof header;
  if (header.file_count > payload / sizeof(std::uint64_t) || header.chunk_count > payload / sizeof(ChunkEntry) ||
      header.file_count * sizeof(std::uint64_t) + header.chunk_count * sizeof(ChunkEntry) != payload)
    fail(ExitCode::bad_input, "'{}' has a size that does not fit its counts", name);
  Cursor cursor{std::span(bytes).subspan(sizeof header)};
  Index index;
  index.file_sizes = cursor.many<std::uint64_t>(header.file_count);
  index.entries = cursor.many<ChunkEntry>(header.chunk_count);
  for (std::size_t i = 0; i < index.entries.size(); ++i) {
    const ChunkEntry& e = index.entries[i];
    const bool raw = e.codec == layout::Codec::raw, zstd = e.codec == layout::Codec::zstd;
    if ((!raw && !zstd) || e.raw_size == 0 || e.raw_size > chunk_size || e.stored_size == 0 ||
        e.stored_size > e.raw_size || (raw && e.stored_size != e.raw_size) || e.file >= index.file_sizes.size() ||
        e.stored_size > index.file_sizes[e.file] || e.offset > index.file_sizes[e.file] - e.stored_size)
      fail(ExitCode::bad_input, "'{}': the entry of chunk {} makes no sense", name, i + 1);
  }
  return index;
}

struct Pages {
  struct Part {
    std::uint64_t before_first = 0;
    std::uint64_t after_first = 0, after_count = 0;
  };
  std::vector<Part> parts;  // one for each region of the manifest
  std::vector<std::uint32_t> before;
  std::vector<AfterEntry> after;
};

void check_id(std::uint32_t id, std::uint64_t length, const Index& index, const std::string& name) {
  if (id == 0) return;
  if (id > index.entries.size()) fail(ExitCode::bad_input, "'{}' names chunk {} of {}", name, id, index.entries.size());
  if (index.entries[id - 1].raw_size != length)
    fail(ExitCode::bad_input, "'{}': chunk {} has {} bytes where {} are needed", name, id,
         index.entries[id - 1].raw_size, length);
}

Pages read_pages(const std::filesystem::path& path, const Dispatch& dispatch, const Index& index) {
  const std::string name = path.string();
  const std::vector<std::byte> bytes = read_whole(path, std::uint64_t{1} << 36);
  const auto header = checked_header<layout::PagesHeader>(bytes, layout::pages_magic, name);
  if (header.region_count != dispatch.regions.size())
    fail(ExitCode::bad_input, "'{}' has {} regions and the manifest {}", name, header.region_count,
         dispatch.regions.size());
  std::uint64_t chunks = 0;
  for (const Region& region : dispatch.regions) chunks += chunk_count(region.size);  // each below 2^41
  const std::uint64_t payload = bytes.size() - sizeof header;
  const std::uint64_t fixed = header.region_count * sizeof(layout::PagesRegion);
  if (chunks > payload / sizeof(std::uint32_t) || header.after_count > payload / sizeof(AfterEntry) ||
      fixed + chunks * sizeof(std::uint32_t) + header.after_count * sizeof(AfterEntry) != payload)
    fail(ExitCode::bad_input, "'{}' has a size that does not fit its regions", name);

  Cursor cursor{std::span(bytes).subspan(sizeof header)};
  const auto regions = cursor.many<layout::PagesRegion>(header.region_count);
  Pages pages;
  pages.before = cursor.many<std::uint32_t>(chunks);
  pages.after = cursor.many<AfterEntry>(header.after_count);
  std::uint64_t before_next = 0, after_next = 0;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    const Region& region = dispatch.regions[r];
    const std::uint64_t count = chunk_count(region.size);
    if (regions[r].address != region.address || regions[r].size != region.size)
      fail(ExitCode::bad_input, "'{}': region {} is not the manifest's", name, r);
    if (regions[r].after_first != after_next || regions[r].after_count > pages.after.size() - after_next)
      fail(ExitCode::bad_input, "'{}': region {} has changes outside the list of changes", name, r);
    for (std::uint64_t c = 0; c < count; ++c)
      check_id(pages.before[before_next + c], chunk_length(region.size, c), index, name);
    std::uint64_t lowest = 0;
    for (std::uint64_t a = 0; a < regions[r].after_count; ++a) {
      const AfterEntry& entry = pages.after[after_next + a];
      if (entry.chunk < lowest || entry.chunk >= count)
        fail(ExitCode::bad_input, "'{}': region {} has a change in chunk {} of {}", name, r, entry.chunk, count);
      lowest = std::uint64_t{entry.chunk} + 1;
      check_id(entry.id, chunk_length(region.size, entry.chunk), index, name);
    }
    pages.parts.push_back({before_next, after_next, regions[r].after_count});
    before_next += count;
    after_next += regions[r].after_count;
  }
  if (after_next != pages.after.size()) fail(ExitCode::bad_input, "'{}' has changes that belong to no region", name);
  return pages;
}

// One decompression context for each thread: making one costs more than decoding a chunk.
ZSTD_DCtx* decompressor() {
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  thread_local std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (!context) fail(ExitCode::environment, "not enough memory to decompress the snapshot");
  return context.get();
}

}  // namespace

struct Reader::Implementation {
  std::filesystem::path folder;
  Manifest manifest;
  Index index;
  std::vector<File> files;
  std::vector<Pages> pages;  // one for each dispatch

  const Region& region(std::size_t dispatch, std::size_t region_number) const {
    if (dispatch >= manifest.dispatches.size() || region_number >= manifest.dispatches[dispatch].regions.size())
      fail(ExitCode::usage, "'{}' has no dispatch {} with a region {}", folder.string(), dispatch, region_number);
    return manifest.dispatches[dispatch].regions[region_number];
  }

  const AfterEntry* change(std::size_t dispatch, std::size_t region_number, std::uint64_t chunk) const {
    const Pages& p = pages[dispatch];
    const Pages::Part& part = p.parts[region_number];
    const AfterEntry* first = p.after.data() + part.after_first;
    const AfterEntry* last = first + part.after_count;
    const AfterEntry* found =
        std::lower_bound(first, last, chunk, [](const AfterEntry& e, std::uint64_t value) { return e.chunk < value; });
    return found != last && found->chunk == chunk ? found : nullptr;
  }

  std::uint32_t id(std::size_t dispatch, std::size_t region_number, State state, std::uint64_t chunk) const {
    if (state == State::after) {
      if (!manifest.dispatches[dispatch].has_after)
        fail(ExitCode::bad_input, "'{}' has no state after the kernel: {}", folder.string(),
             manifest.dispatches[dispatch].incomplete_reason);
      if (const AfterEntry* entry = change(dispatch, region_number, chunk)) return entry->id;
    }
    const Pages& p = pages[dispatch];
    return p.before[p.parts[region_number].before_first + chunk];
  }

  // `out` is the whole chunk.
  void load(std::uint32_t id, std::span<std::byte> out) const {
    const ChunkEntry& entry = index.entries[id - 1];
    const File& file = files[entry.file];
    if (entry.codec == layout::Codec::raw) {
      file.read(entry.offset, out);
    } else {
      std::array<std::byte, chunk_size> stored;
      file.read(entry.offset, std::span(stored).first(entry.stored_size));
      const std::size_t size =
          ZSTD_decompressDCtx(decompressor(), out.data(), out.size(), stored.data(), entry.stored_size);
      if (ZSTD_isError(size) || size != out.size())
        fail(ExitCode::bad_input, "'{}' is damaged: chunk {} does not decompress", file.path().string(), id);
    }
    const support::Hash128 hash = support::xxh3_128(out);
    if (hash.high != entry.hash_high || hash.low != entry.hash_low)
      fail(ExitCode::bad_input, "'{}' is damaged: chunk {} at byte {} has another checksum", file.path().string(), id,
           entry.offset);
  }
};

Reader::Reader(std::filesystem::path folder) : implementation_(std::make_unique<Implementation>()) {
  Implementation& im = *implementation_;
  im.folder = std::move(folder);
  std::error_code ignored;
  if (!std::filesystem::is_directory(im.folder, ignored))
    fail(ExitCode::bad_input, "'{}' is not a snapshot: no such folder", im.folder.string());
  const std::filesystem::path manifest = im.folder / layout::manifest_name;
  if (!std::filesystem::is_regular_file(manifest, ignored))
    fail(ExitCode::bad_input, "'{}' is not a snapshot: it has no {}", im.folder.string(), layout::manifest_name);
  support::Json document = support::read_json_file(manifest);
  im.manifest = manifest_from_json(document, manifest.string());
  const std::string checksum = support::string_member(document, "checksum", manifest.string());
  document.erase("checksum");
  if (manifest_checksum(document) != checksum)
    fail(ExitCode::bad_input, "'{}' is damaged or was edited (its checksum differs)", manifest.string());
  im.index = read_index(im.folder / layout::index_name);
  if (im.index.file_sizes.size() != im.manifest.chunk_files.size())
    fail(ExitCode::bad_input, "'{}' lists {} chunk files and its index {}", manifest.string(),
         im.manifest.chunk_files.size(), im.index.file_sizes.size());
  for (std::size_t i = 0; i < im.index.file_sizes.size(); ++i) {
    im.files.emplace_back(im.folder / im.manifest.chunk_files[i]);
    if (im.files.back().size() != im.index.file_sizes[i])
      fail(ExitCode::bad_input, "'{}' has {} bytes instead of {}", im.files.back().path().string(),
           im.files.back().size(), im.index.file_sizes[i]);
  }
  for (const Dispatch& dispatch : im.manifest.dispatches)
    im.pages.push_back(read_pages(im.folder / dispatch.pages_file, dispatch, im.index));
}

Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

const std::filesystem::path& Reader::folder() const { return implementation_->folder; }
const Manifest& Reader::manifest() const { return implementation_->manifest; }

void Reader::read(std::size_t dispatch, std::size_t region, State state, std::uint64_t offset,
                  std::span<std::byte> out) const {
  const Implementation& im = *implementation_;
  const Region& r = im.region(dispatch, region);
  if (offset > r.size || out.size() > r.size - offset)
    fail(ExitCode::usage, "bytes {} to {} lie outside the region at {:#x} with {} bytes", offset, offset + out.size(),
         r.address, r.size);
  while (!out.empty()) {
    const std::uint64_t chunk = offset / chunk_size, skip = offset % chunk_size;
    const std::uint64_t length = chunk_length(r.size, chunk);
    const std::size_t wanted = std::min<std::uint64_t>(out.size(), length - skip);
    const std::uint32_t id = im.id(dispatch, region, state, chunk);
    if (id == 0) {
      std::memset(out.data(), 0, wanted);
    } else if (wanted == length) {
      im.load(id, out.first(wanted));
    } else {
      std::array<std::byte, chunk_size> whole;
      im.load(id, std::span(whole).first(length));
      std::memcpy(out.data(), whole.data() + skip, wanted);
    }
    out = out.subspan(wanted);
    offset += wanted;
  }
}

std::uint64_t Reader::chunks(std::size_t dispatch, std::size_t region) const {
  return chunk_count(implementation_->region(dispatch, region).size);
}

bool Reader::changed(std::size_t dispatch, std::size_t region, std::uint64_t chunk) const {
  const Region& r = implementation_->region(dispatch, region);
  if (chunk >= chunk_count(r.size)) fail(ExitCode::usage, "the region at {:#x} has no chunk {}", r.address, chunk);
  return implementation_->change(dispatch, region, chunk) != nullptr;
}

bool Reader::is_zero(std::size_t dispatch, std::size_t region, State state, std::uint64_t chunk) const {
  const Region& r = implementation_->region(dispatch, region);
  if (chunk >= chunk_count(r.size)) fail(ExitCode::usage, "the region at {:#x} has no chunk {}", r.address, chunk);
  return implementation_->id(dispatch, region, state, chunk) == 0;
}

support::Hash128 Reader::checksum(std::size_t dispatch, std::size_t region, State state, std::uint64_t chunk) const {
  if (is_zero(dispatch, region, state, chunk)) return {};
  const ChunkEntry& entry = implementation_->index.entries[implementation_->id(dispatch, region, state, chunk) - 1];
  return {entry.hash_high, entry.hash_low};
}

std::vector<std::byte> Reader::kernarg(std::size_t dispatch) const {
  const Implementation& im = *implementation_;
  if (dispatch >= im.manifest.dispatches.size())
    fail(ExitCode::usage, "'{}' has no dispatch {}", im.folder.string(), dispatch);
  const Dispatch& d = im.manifest.dispatches[dispatch];
  const std::filesystem::path path = im.folder / d.kernarg_file;
  std::vector<std::byte> bytes = read_whole(path, largest_kernarg);
  if (bytes.size() < d.kernel.kernarg_size)
    fail(ExitCode::bad_input, "'{}' has {} bytes and the kernel takes {}", path.string(), bytes.size(),
         d.kernel.kernarg_size);
  const support::Hash128 hash = support::xxh3_128(bytes);
  if (fmt::format("{:016x}{:016x}", hash.high, hash.low) != d.kernarg_checksum)
    fail(ExitCode::bad_input, "'{}' is damaged (its checksum differs)", path.string());
  return bytes;
}

std::filesystem::path Reader::code_object_path(std::string_view digest) const {
  return implementation_->folder / "code" / fmt::format("{}.hsaco", digest);
}

std::vector<std::byte> Reader::code_object(std::string_view digest) const {
  if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    fail(ExitCode::usage, "'{}' is not a SHA-256 digest", digest);
  const std::filesystem::path path = code_object_path(digest);
  std::vector<std::byte> bytes = read_whole(path, largest_code_object);
  if (support::sha256_hex(bytes) != digest)
    fail(ExitCode::bad_input, "'{}' is damaged: its content has another digest", path.string());
  return bytes;
}

std::uint64_t Reader::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (const ChunkEntry& entry : implementation_->index.entries) bytes += entry.stored_size;
  return bytes;
}

std::vector<std::string> Reader::verify(const std::function<void(std::uint64_t bytes)>& progress) const {
  const Implementation& im = *implementation_;
  std::vector<std::string> damages;
  const auto check = [&](auto&& action) {
    try {
      action();
    } catch (const support::Error& error) {
      damages.emplace_back(error.what());
    }
  };
  std::vector<std::byte> buffer(chunk_size);
  for (std::size_t i = 0; i < im.index.entries.size(); ++i) {
    const ChunkEntry& entry = im.index.entries[i];
    check([&] { im.load(static_cast<std::uint32_t>(i + 1), std::span(buffer).first(entry.raw_size)); });
    if (progress) progress(entry.stored_size);
  }
  std::set<std::string> digests;
  for (std::size_t d = 0; d < im.manifest.dispatches.size(); ++d) {
    const Dispatch& dispatch = im.manifest.dispatches[d];
    check([&] { (void)kernarg(d); });
    digests.insert(dispatch.code_object);
    for (const CodeObjectLoad& load : dispatch.loads) digests.insert(load.digest);
  }
  for (const std::string& digest : digests) check([&] { (void)code_object(digest); });
  return damages;
}

}  // namespace kerncap::snapshot
