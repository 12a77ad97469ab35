#include "core/codeobject/bundle.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Support/Compression.h>
#include <llvm/Support/Error.h>
#include <zstd.h>

#include <algorithm>
#include <optional>

#include "core/codeobject/target_id.h"
#include "core/support/hash.h"

namespace kerncap::codeobject {
namespace {

using support::ExitCode;
using support::fail;

// A bundle that claims to unpack to more than this is damage: no device code comes near it.
constexpr std::uint64_t largest_unpacked = std::uint64_t{8} << 30;
// zstd's and zlib's best ratios are far below this; a larger claim would only make us reserve memory for nothing.
constexpr std::uint64_t largest_ratio = 100000;
constexpr std::uint64_t most_entries = 4096;

// Appends the entries of the plain bundle at `offset`; returns the offset behind its last byte.
std::uint64_t read_plain_bundle(const ByteView& view, std::uint64_t offset, Container container,
                                std::vector<FoundCodeObject>& found) {
  const auto entries = view.read<std::uint64_t>(offset + bundle_magic.size(), "the bundle's entry count");
  if (entries > most_entries)
    fail(ExitCode::bad_input, "{}: the offload bundle at offset {} claims {} entries", view.name(), offset, entries);
  std::uint64_t cursor = offset + bundle_magic.size() + 8;
  std::uint64_t end = cursor;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const auto code_offset = view.read<std::uint64_t>(cursor, "a bundle entry");
    const auto code_size = view.read<std::uint64_t>(cursor + 8, "a bundle entry");
    const auto id_size = view.read<std::uint64_t>(cursor + 16, "a bundle entry");
    const auto id = view.slice(cursor + 24, id_size, "a bundle entry's name");
    cursor += 24 + id_size;
    if (code_offset > view.size() - offset)
      fail(ExitCode::bad_input, "{}: a bundle entry's code lies outside the file", view.name());
    const auto code = view.slice(offset + code_offset, code_size, "a bundle entry's code");
    end = std::max({end, cursor, offset + code_offset + code_size});
    std::string entry_id(reinterpret_cast<const char*>(id.data()), id.size());
    if (code_size == 0 || is_host_entry(entry_id)) continue;
    std::string target = target_of_entry(entry_id);
    found.push_back(make_found(std::move(entry_id), std::move(target), container, code));
  }
  return end;
}

struct CompressedHeader {
  std::uint16_t version = 0, method = 0;
  std::uint64_t size = 0;  // of the whole bundle with this header; 0 when the version does not say
  std::uint64_t unpacked_size = 0;
  std::uint64_t header_size = 0;
};

CompressedHeader read_compressed_header(const ByteView& view, std::uint64_t offset) {
  constexpr std::string_view what = "the compressed bundle's header";
  CompressedHeader header;
  header.version = view.read<std::uint16_t>(offset + 4, what);
  header.method = view.read<std::uint16_t>(offset + 6, what);
  switch (header.version) {
    case 1:  // raw size, hash
      header.unpacked_size = view.read<std::uint32_t>(offset + 8, what);
      header.header_size = 20;
      break;
    case 2:  // size, raw size, hash
      header.size = view.read<std::uint32_t>(offset + 8, what);
      header.unpacked_size = view.read<std::uint32_t>(offset + 12, what);
      header.header_size = 24;
      break;
    case 3:  // the same in 64 bits
      header.size = view.read<std::uint64_t>(offset + 8, what);
      header.unpacked_size = view.read<std::uint64_t>(offset + 16, what);
      header.header_size = 32;
      break;
    default:
      fail(ExitCode::bad_input, "{}: compressed offload bundle of version {}; versions 1 to 3 are known", view.name(),
           header.version);
  }
  view.slice(offset, header.header_size, what);
  if (header.size != 0 && header.size < header.header_size)
    fail(ExitCode::bad_input, "{}: a compressed offload bundle says it is smaller than its header", view.name());
  return header;
}

// Unpacks the compressed bundle at `offset` and reads it; returns the offset behind it.
std::uint64_t read_compressed_bundle(const ByteView& view, std::uint64_t offset, std::vector<FoundCodeObject>& found) {
  const auto header = read_compressed_header(view, offset);
  const std::uint64_t packed_offset = offset + header.header_size;
  std::uint64_t packed_size = view.size() - packed_offset;
  if (header.size != 0) {
    packed_size = view.slice(packed_offset, header.size - header.header_size, "a compressed bundle's content").size();
  } else if (header.method == 1) {
    // Version 1 does not say where it ends, a zstd frame does.
    const std::size_t frame = ZSTD_findFrameCompressedSize(view.bytes().data() + packed_offset, packed_size);
    if (ZSTD_isError(frame))
      fail(ExitCode::bad_input, "{}: damaged compressed offload bundle: {}", view.name(), ZSTD_getErrorName(frame));
    packed_size = frame;
  }
  if (header.unpacked_size > largest_unpacked || header.unpacked_size / largest_ratio > packed_size)
    fail(ExitCode::bad_input, "{}: a compressed offload bundle of {} bytes claims to unpack to {} bytes", view.name(),
         packed_size, header.unpacked_size);

  if (header.method > 1)
    fail(ExitCode::bad_input, "{}: compressed offload bundle with unknown method {}", view.name(), header.method);
  const auto format = header.method == 1 ? llvm::compression::Format::Zstd : llvm::compression::Format::Zlib;
  if (const char* reason = llvm::compression::getReasonIfUnsupported(format))
    fail(ExitCode::bad_input, "{}: cannot unpack a compressed offload bundle: {}", view.name(), reason);
  const auto packed = view.slice(packed_offset, packed_size, "a compressed bundle's content");
  llvm::SmallVector<std::uint8_t, 0> unpacked;
  if (auto error = llvm::compression::decompress(
          format, llvm::ArrayRef(reinterpret_cast<const std::uint8_t*>(packed.data()), packed.size()), unpacked,
          header.unpacked_size))
    fail(ExitCode::bad_input, "{}: damaged compressed offload bundle: {}", view.name(),
         llvm::toString(std::move(error)));
  if (unpacked.size() != header.unpacked_size)
    fail(ExitCode::bad_input, "{}: a compressed offload bundle unpacks to {} bytes instead of {}", view.name(),
         unpacked.size(), header.unpacked_size);
  const ByteView inner(std::as_bytes(std::span(unpacked.data(), unpacked.size())), view.name());
  if (!inner.starts_with(bundle_magic))
    fail(ExitCode::bad_input, "{}: a compressed offload bundle holds no offload bundle", view.name());
  read_plain_bundle(inner, 0, Container::compressed_bundle, found);
  return packed_offset + packed_size;
}

std::optional<std::string_view> string_at(const ByteView& view, std::uint64_t offset) {
  if (offset >= view.size()) return std::nullopt;
  const auto rest = view.text().substr(offset);
  const auto end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

// Offsets from llvm/Object/OffloadBinary.h, version 1.
void read_offload_binary(const ByteView& binary, std::vector<FoundCodeObject>& found) {
  const auto entry_offset = binary.read<std::uint64_t>(16, "the offload binary's header");
  const auto entry_size = binary.read<std::uint64_t>(24, "the offload binary's header");
  if (entry_size < 40)
    fail(ExitCode::bad_input, "{}: offload binary with an entry of {} bytes", binary.name(), entry_size);
  const ByteView entry(binary.slice(entry_offset, entry_size, "the offload binary's entry"), binary.name());
  const auto strings_offset = entry.read<std::uint64_t>(8, "the entry");
  const auto strings = entry.read<std::uint64_t>(16, "the entry");
  const auto image_offset = entry.read<std::uint64_t>(24, "the entry");
  const auto image_size = entry.read<std::uint64_t>(32, "the entry");
  const auto image = binary.slice(image_offset, image_size, "the offload binary's image");
  if (strings > most_entries) fail(ExitCode::bad_input, "{}: offload binary with {} strings", binary.name(), strings);
  binary.slice(strings_offset, strings * 16, "the offload binary's strings");
  std::string triple, arch;
  for (std::uint64_t i = 0; i < strings; ++i) {
    const auto key = string_at(binary, binary.read<std::uint64_t>(strings_offset + i * 16, "a string"));
    const auto value = string_at(binary, binary.read<std::uint64_t>(strings_offset + i * 16 + 8, "a string"));
    if (!key || !value) fail(ExitCode::bad_input, "{}: offload binary with a string outside of it", binary.name());
    if (*key == "triple") triple = *value;
    if (*key == "arch") arch = *value;
  }
  if (image.empty() || !(triple.starts_with("amdgcn") || triple.starts_with("spirv"))) return;
  found.push_back(make_found(triple + "-" + arch, normalise_target(arch), Container::llvm_offloading, image));
}

}  // namespace

FoundCodeObject make_found(std::string entry_id, std::string target, Container container,
                           std::span<const std::byte> bytes) {
  FoundCodeObject result;
  result.entry_id = std::move(entry_id);
  result.target = std::move(target);
  result.container = container;
  result.bytes.assign(bytes.begin(), bytes.end());
  result.is_bitcode = ByteView(bytes, "").starts_with(bitcode_magic);
  result.digest = support::sha256_hex(bytes);
  return result;
}

void find_in_bundles(const ByteView& section, std::vector<FoundCodeObject>& found) {
  const auto text = section.text();
  std::uint64_t offset = 0;
  while (offset < text.size()) {
    // Only zero padding stands between bundles; a linker script may change its amount, so the next magic is searched.
    const auto plain = text.find(bundle_magic, offset);
    const auto compressed = text.substr(0, std::min<std::size_t>(plain, text.size())).find(compressed_magic, offset);
    if (compressed != std::string_view::npos)
      offset = read_compressed_bundle(section, compressed, found);
    else if (plain != std::string_view::npos)
      offset = read_plain_bundle(section, plain, Container::offload_bundle, found);
    else
      break;
  }
}

void find_in_offload_binaries(const ByteView& section, std::vector<FoundCodeObject>& found) {
  std::uint64_t offset = 0;
  while (offset < section.size()) {
    offset = section.text().find(offload_binary_magic, offset);
    if (offset == std::string_view::npos) return;
    const auto version = section.read<std::uint32_t>(offset + 4, "the offload binary's version");
    if (version != 1)
      fail(ExitCode::bad_input, "{}: offload binary of version {}; version 1 is known", section.name(), version);
    const auto size = section.read<std::uint64_t>(offset + 8, "the offload binary's size");
    const auto binary = section.slice(offset, size, "an offload binary");
    read_offload_binary(ByteView(binary, section.name()), found);
    offset += std::max<std::uint64_t>(size, 8);
  }
}

}  // namespace kerncap::codeobject
