// libFuzzer target: a snapshot's manifest, index and page table from hostile bytes. The input's first byte chooses
// which of them it replaces in an otherwise whole snapshot; checksums are corrected, so that the checks behind them are
// reached.
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "core/snapshot/layout.h"
#include "core/snapshot/reader.h"
#include "core/snapshot/writer.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"

namespace {

namespace fs = std::filesystem;
using namespace kerncap;
using namespace kerncap::snapshot;

struct Base {
  support::TemporaryFolder folder{"kerncap-fuzz"};
  fs::path path = folder.path() / "s.kcap";
  std::string manifest, index, pages;
  Base() {
    std::vector<Region> regions(2);
    regions[0].address = 0x10000;
    regions[0].size = 3 * chunk_size + 5;
    regions[1].address = 0x900000;
    regions[1].size = 100;
    std::vector<std::byte> bytes(regions[0].size);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
    Writer writer(path, {.threads = 1, .sync = false});
    const auto d = writer.begin_dispatch(regions);
    writer.put(d, 0, State::before, 0, bytes, {});
    writer.drain();
    writer.put(d, 0, State::after, 0, std::span(bytes).first(chunk_size), {});
    Manifest m;
    m.agents.emplace_back();
    Dispatch& dispatch = m.dispatches.emplace_back();
    dispatch.code_object = std::string(64, 'a');
    dispatch.regions = regions;
    dispatch.has_after = true;
    writer.commit(m);
    manifest = support::read_text_file(path / layout::manifest_name);
    index = support::read_text_file(path / layout::index_name);
    pages = support::read_text_file(path / "pages-0.bin");
  }
};

void put(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

template <typename Header>
std::string sealed(std::string_view bytes) {
  std::string out(bytes);
  if (out.size() < sizeof(Header)) return out;
  Header header;
  std::memcpy(&header, out.data(), sizeof header);
  const support::Hash128 hash = support::xxh3_128(support::bytes_of(out).subspan(sizeof header));
  header.hash_high = hash.high;
  header.hash_low = hash.low;
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

std::string sealed_manifest(std::string_view bytes) {
  try {
    support::Json document = support::parse_json(bytes, "fuzz");
    if (!document.is_object()) return std::string(bytes);
    document.erase("checksum");
    document["checksum"] = manifest_checksum(document);
    return support::dump_json(document);
  } catch (const support::Error&) {
    return std::string(bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Base& base = *new Base;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  put(base.path / layout::manifest_name, data[0] % 3 == 0 ? sealed_manifest(bytes) : base.manifest);
  put(base.path / layout::index_name, data[0] % 3 == 1 ? sealed<layout::IndexHeader>(bytes) : base.index);
  put(base.path / "pages-0.bin", data[0] % 3 == 2 ? sealed<layout::PagesHeader>(bytes) : base.pages);
  try {
    const Reader reader(base.path);
    std::vector<std::byte> out(1000);
    for (std::size_t d = 0; d < reader.manifest().dispatches.size(); ++d)
      for (std::size_t r = 0; r < reader.manifest().dispatches[d].regions.size(); ++r)
        for (const State state : {State::before, State::after}) {
          const std::uint64_t region = reader.manifest().dispatches[d].regions[r].size;
          const std::uint64_t n = std::min<std::uint64_t>(region, out.size());
          try {
            reader.read(d, r, state, region - n, std::span(out).first(n));
          } catch (const support::Error&) {
          }
        }
    (void)reader.verify({});
  } catch (const support::Error&) {
  }
  return 0;
}
