#include "core/compdb/index_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/compdb/file_system.h"
#include "core/support/error.h"

namespace kerncap::compdb {
namespace {

constexpr std::uint64_t magic = 0x3130'5844'4950'434bULL;  // "KCPIDX01"; a new layout is a new number
constexpr std::size_t sections = 8;

struct Section {
  std::uint64_t offset = 0, size = 0;  // bytes from the start of the file
};

struct Header {
  std::uint64_t magic = 0, checksum = 0;  // XXH3-64 of what follows in the header
  std::uint64_t file_size = 0, pending = 0;
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
  std::string tagged(1, static_cast<char>(kind));
  tagged += text;
  return hash_bytes(tagged);
}

TextReference IndexContent::add_text(std::string_view text) {
  const TextReference reference = {static_cast<std::uint32_t>(texts.size()), static_cast<std::uint32_t>(text.size())};
  texts += text;
  return reference;
}

std::string IndexFile::serialise(const IndexContent& content) {
  const std::array<std::string_view, sections> parts = {
      bytes_of(content.logs),         bytes_of(content.units), bytes_of(content.keys), bytes_of(content.headers),
      bytes_of(content.code_objects), bytes_of(content.roots), content.postings,       content.texts};
  Header header;
  header.magic = magic;
  header.statistics = content.statistics;
  header.pending = content.pending;
  std::uint64_t at = sizeof header;
  for (std::size_t i = 0; i < sections; ++i) {
    header.section[i] = {at, parts[i].size()};
    at += (parts[i].size() + 7) / 8 * 8;
  }
  header.file_size = at;
  header.checksum = checksum_of(header);
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.reserve(at);
  for (std::string_view part : parts) {
    file += part;
    file.resize((file.size() + 7) / 8 * 8);
  }
  return file;
}

void IndexFile::publish(const std::filesystem::path& path, const IndexContent& content) {
  try {
    support::write_file_atomically(path, serialise(content), 0644);
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
  postings_ = file.substr(header.section[6].offset, header.section[6].size);
  texts_ = file.substr(header.section[7].offset, header.section[7].size);
  return view_items(file, header.section[0], logs_) && view_items(file, header.section[1], units_) &&
         view_items(file, header.section[2], keys_) && view_items(file, header.section[3], headers_) &&
         view_items(file, header.section[4], code_objects_) && view_items(file, header.section[5], roots_);
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

std::vector<std::uint32_t> IndexFile::units_of(const IndexedHeader& header) const {
  std::vector<std::uint32_t> units;
  if (header.first > postings_.size() || header.size > postings_.size() - header.first) return units;
  std::uint64_t unit = 0, delta = 0;
  unsigned shift = 0;
  for (char c : postings_.substr(header.first, header.size)) {
    const auto byte = static_cast<unsigned char>(c);
    delta |= std::uint64_t{byte & 0x7fU} << shift;
    shift += 7;
    if ((byte & 0x80) != 0 && shift < 35) continue;
    unit += delta;
    if (unit < units_.size()) units.push_back(static_cast<std::uint32_t>(unit));
    delta = 0;
    shift = 0;
  }
  return units;
}

std::vector<std::uint32_t> IndexFile::units_of_header(std::uint64_t hash) const {
  const auto found = std::ranges::lower_bound(headers_, hash, {}, &IndexedHeader::hash);
  if (found == headers_.end() || found->hash != hash) return {};
  return units_of(*found);
}

std::string_view IndexFile::text(TextReference reference) const {
  if (reference.offset > texts_.size() || reference.size > texts_.size() - reference.offset) return {};
  return texts_.substr(reference.offset, reference.size);
}

}  // namespace kerncap::compdb
