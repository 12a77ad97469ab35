#include "core/compdb/index_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/compdb/file_system.h"
#include "core/support/error.h"

namespace kerncap::compdb {
namespace {

constexpr std::uint64_t magic = 0x3230'5844'4950'434bULL;  // "KCPIDX02"; a new layout is a new number
constexpr std::size_t sections = 9;

struct Section {
  std::uint64_t offset = 0, size = 0;  // bytes from the start of the file
};

struct Header {
  std::uint64_t magic = 0, checksum = 0;  // XXH3-64 of what follows in the header
  std::uint64_t file_size = 0, pending = 0, live_units = 0, live_code_objects = 0;
  Statistics statistics;
  std::array<Section, sections> section;
};
static_assert(sizeof(Header) % 8 == 0);

std::uint64_t checksum_of(const Header& header) {
  const char* start = reinterpret_cast<const char*>(&header) + 2 * sizeof(std::uint64_t);
  return hash_bytes({start, sizeof header - 2 * sizeof(std::uint64_t)});
}

template <typename Item>
std::string_view bytes_of(const std::vector<Item>& items) {
  return {reinterpret_cast<const char*>(items.data()), items.size() * sizeof(Item)};
}

// Sections start at multiples of 8 in a mapping that starts at a page.
template <typename Item>
bool view_items(std::string_view file, const Section& section, std::span<const Item>& items) {
  if (section.offset % 8 != 0 || section.size % sizeof(Item) != 0) return false;
  const void* start = file.data() + section.offset;
  items = {static_cast<const Item*>(start), static_cast<std::size_t>(section.size / sizeof(Item))};
  return true;
}

}  // namespace

std::uint64_t key_hash(KeyKind kind, std::string_view text) {
  return XXH3_64bits_withSeed(text.data(), text.size(), static_cast<std::uint64_t>(kind));
}

TextReference IndexContent::add_text(std::string_view text) {
  if (text.size() > UINT32_MAX - texts.size()) {
    support::fail(support::ExitCode::bad_input, "the compilation database has more than 4 GiB of names: split it");
  }
  const TextReference reference = {static_cast<std::uint32_t>(texts.size()), static_cast<std::uint32_t>(text.size())};
  texts += text;
  return reference;
}

TextReference IndexContent::add_name(std::string_view text) {
  const auto [position, fresh] = names_.try_emplace(hash_bytes(text));
  if (fresh) position->second = add_text(text);
  return position->second;
}

namespace {

using Parts = std::array<std::string_view, sections>;

Parts parts_of(const IndexContent& content) {
  return {bytes_of(content.logs),
          bytes_of(content.units),
          bytes_of(content.keys),
          bytes_of(content.headers),
          bytes_of(content.code_objects),
          bytes_of(content.kernels),
          bytes_of(content.roots),
          content.postings,
          content.texts};
}

std::size_t padding_after(std::string_view part) { return (8 - part.size() % 8) % 8; }

Header header_of(const IndexContent& content, const Parts& parts) {
  Header header;
  header.magic = magic;
  header.statistics = content.statistics;
  header.pending = content.pending;
  header.live_units = content.live_units;
  header.live_code_objects = content.live_code_objects;
  std::uint64_t at = sizeof header;
  for (std::size_t i = 0; i < sections; ++i) {
    header.section[i] = {at, parts[i].size()};
    at += parts[i].size() + padding_after(parts[i]);
  }
  header.file_size = at;
  header.checksum = checksum_of(header);
  return header;
}

// Hands the file's bytes to `write`, piece by piece.
template <typename Write>
void write_index(const IndexContent& content, Write write) {
  const Parts parts = parts_of(content);
  const Header header = header_of(content, parts);
  write(std::string_view(reinterpret_cast<const char*>(&header), sizeof header));
  for (std::string_view part : parts) {
    write(part);
    write(std::string_view("\0\0\0\0\0\0\0", padding_after(part)));
  }
}

}  // namespace

std::string IndexFile::serialise(const IndexContent& content) {
  std::string file;
  write_index(content, [&](std::string_view piece) { file += piece; });
  return file;
}

void IndexFile::publish(const std::filesystem::path& path, const IndexContent& content) {
  try {
    support::AtomicFile file(path, 0644);
    write_index(content, [&](std::string_view piece) { file.write(piece); });
    file.commit();
  } catch (const support::Error&) {
  }
}

bool IndexFile::read(std::string_view file) {
  Header header;
  if (file.size() < sizeof header) return false;
  std::memcpy(&header, file.data(), sizeof header);
  if (header.magic != magic || header.checksum != checksum_of(header) || header.file_size != file.size()) return false;
  for (const Section& section : header.section) {
    if (section.offset > file.size() || section.size > file.size() - section.offset) return false;
  }
  statistics_ = header.statistics;
  pending_ = header.pending;
  live_units_ = header.live_units;
  live_code_objects_ = header.live_code_objects;
  const std::array<Section, sections>& section = header.section;
  postings_ = file.substr(section[7].offset, section[7].size);
  texts_ = file.substr(section[8].offset, section[8].size);
  return view_items(file, section[0], logs_) && view_items(file, section[1], units_) &&
         view_items(file, section[2], keys_) && view_items(file, section[3], headers_) &&
         view_items(file, section[4], code_objects_) && view_items(file, section[5], kernels_) &&
         view_items(file, section[6], roots_);
}

std::optional<IndexFile> IndexFile::open(const std::filesystem::path& path) {
  if (!identify(path.string()).regular) return std::nullopt;
  try {
    IndexFile file;
    file.mapping_ = std::make_shared<const support::MappedFile>(path);
    const std::span<const std::byte> bytes = file.mapping_->bytes();
    if (!file.read({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) return std::nullopt;
    return file;
  } catch (const support::Error&) {
    return std::nullopt;
  }
}

std::optional<IndexFile> IndexFile::from_bytes(std::string bytes) {
  IndexFile file;
  file.bytes_ = std::make_shared<const std::string>(std::move(bytes));
  if (!file.read(*file.bytes_)) return std::nullopt;
  return file;
}

std::span<const IndexedKey> IndexFile::find(std::uint64_t hash) const {
  const auto before = [](const IndexedKey& key, std::uint64_t wanted) { return key.hash < wanted; };
  const auto after = [](std::uint64_t wanted, const IndexedKey& key) { return wanted < key.hash; };
  const auto first = std::lower_bound(keys_.begin(), keys_.end(), hash, before);
  return {first, std::upper_bound(first, keys_.end(), hash, after)};
}

std::vector<std::uint32_t> IndexFile::units_of_header(std::uint64_t hash) const {
  const auto header = std::ranges::lower_bound(headers_, hash, {}, &IndexedHeader::hash);
  std::vector<std::uint32_t> units;
  if (header == headers_.end() || header->hash != hash || header->first > postings_.size() ||
      header->size > postings_.size() - header->first) {
    return units;
  }
  std::uint64_t unit = 0, delta = 0;
  unsigned shift = 0;
  for (char c : postings_.substr(header->first, header->size)) {
    const auto byte = static_cast<unsigned char>(c);
    delta |= std::uint64_t{byte & 0x7fU} << shift;
    shift += 7;
    if ((byte & 0x80) != 0 && shift < 35) continue;
    unit += delta;
    if (unit < units_.size() && !units_[unit].dead()) units.push_back(static_cast<std::uint32_t>(unit));
    delta = 0;
    shift = 0;
  }
  return units;
}

std::string_view IndexFile::text(TextReference reference) const {
  if (reference.offset > texts_.size() || reference.size > texts_.size() - reference.offset) return {};
  return texts_.substr(reference.offset, reference.size);
}

std::vector<std::string_view> IndexFile::kernels_of(const IndexedDigest& code_object) const {
  std::vector<std::string_view> names;
  if (code_object.first_kernel > kernels_.size() || code_object.kernels > kernels_.size() - code_object.first_kernel) {
    return names;
  }
  for (const TextReference& name : kernels_.subspan(code_object.first_kernel, code_object.kernels)) {
    names.push_back(text(name));
  }
  return names;
}

}  // namespace kerncap::compdb
