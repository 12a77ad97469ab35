#include "core/snapshot/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/snapshot/layout.h"
#include "core/snapshot/test_data.h"
#include "core/snapshot/writer.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"

namespace kerncap::snapshot {
namespace {

namespace fs = std::filesystem;
using support::Error;

class DamagedSnapshot : public ::testing::Test {
 protected:
  DamagedSnapshot() {
    const std::vector<Region> regions = {testing::region(0x10000, 4 * chunk_size),
                                         testing::region(0x100000, chunk_size)};
    const auto random = testing::random_bytes(regions[0].size, 1);
    const auto text = testing::text_like_bytes(chunk_size, 2);
    const std::string elf = "code";
    Writer writer(snapshot(), {});
    const auto d = writer.begin_dispatch(regions);
    writer.put(d, 0, State::before, 0, random, {});
    writer.put(d, 1, State::before, 0, text, {});
    writer.drain();
    writer.put(d, 1, State::after, 0, std::span(random).first(chunk_size), {});
    writer.set_kernarg(d, support::bytes_of("abcdefgh"));
    Manifest m = testing::small_manifest(regions);
    m.dispatches[0].code_object = support::sha256_hex(support::bytes_of(elf));
    m.dispatches[0].kernel.kernarg_size = 8;
    writer.add_code_object(m.dispatches[0].code_object, support::bytes_of(elf));
    writer.commit(m);
  }

  fs::path snapshot() const { return folder_.path() / "s.kcap"; }

  // Everything that a careful user of the reader would do; true when some of it was refused or found damaged.
  static bool found_damage(const fs::path& folder) {
    try {
      const Reader reader(folder);
      for (const Dispatch& d : reader.manifest().dispatches)
        for (std::size_t r = 0; r < d.regions.size(); ++r) {
          std::vector<std::byte> out(d.regions[r].size);
          reader.read(0, r, State::before, 0, out);
          reader.read(0, r, State::after, 0, out);
        }
      return !reader.verify({}).empty();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), support::ExitCode::bad_input) << error.what();
      return true;
    }
  }

  static std::string slurp(const fs::path& path) { return support::read_text_file(path); }
  static void spit(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  support::TemporaryFolder folder_;
};

TEST_F(DamagedSnapshot, AWholeOneIsFine) { EXPECT_FALSE(found_damage(snapshot())); }

TEST_F(DamagedSnapshot, AFlippedByteInAnyFileIsFound) {
  int tried = 0;
  for (const auto& entry : fs::recursive_directory_iterator(snapshot())) {
    if (!entry.is_regular_file()) continue;
    const std::string good = slurp(entry.path());
    const std::size_t step = std::max<std::size_t>(1, good.size() / 97);
    for (std::size_t i = 0; i < good.size(); i += step) {
      std::string bad = good;
      if (bad[i] == ' ' || bad[i] == '\n') continue;  // white space of the manifest means nothing
      bad[i] = static_cast<char>(bad[i] ^ 0x10);
      spit(entry.path(), bad);
      EXPECT_TRUE(found_damage(snapshot())) << entry.path() << " byte " << i;
      ++tried;
    }
    spit(entry.path(), good);
  }
  EXPECT_GT(tried, 300);
  EXPECT_FALSE(found_damage(snapshot()));
}

TEST_F(DamagedSnapshot, AnyTruncatedOrMissingOrLongerFileIsFound) {
  for (const auto& entry : fs::recursive_directory_iterator(snapshot())) {
    if (!entry.is_regular_file()) continue;
    const std::string good = slurp(entry.path());
    for (const std::size_t size : {std::size_t{0}, good.size() / 2, good.size() - 2}) {
      spit(entry.path(), good.substr(0, size));
      EXPECT_TRUE(found_damage(snapshot())) << entry.path() << " cut to " << size;
    }
    fs::remove(entry.path());
    EXPECT_TRUE(found_damage(snapshot())) << entry.path() << " removed";
    spit(entry.path(), good + "x");
    EXPECT_TRUE(found_damage(snapshot())) << entry.path() << " longer";
    spit(entry.path(), good);
  }
  EXPECT_FALSE(found_damage(snapshot()));
}

TEST_F(DamagedSnapshot, AFifoInAFilesPlaceDoesNotHang) {
  const fs::path pages = snapshot() / "pages-0.bin";
  fs::remove(pages);
  ASSERT_EQ(::mkfifo(pages.c_str(), 0600), 0);
  EXPECT_TRUE(found_damage(snapshot()));
}

TEST_F(DamagedSnapshot, AFolderWithoutManifestIsNotASnapshot) {
  fs::remove(snapshot() / layout::manifest_name);
  try {
    const Reader reader(snapshot());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("is not a snapshot"));
  }
}

// A checksum proves nothing against somebody who writes it himself.
TEST_F(DamagedSnapshot, CorrectChecksumsDoNotMakeNonsenseAcceptable) {
  const fs::path index = snapshot() / layout::index_name;
  const std::string good = slurp(index);
  const auto with_entry = [&](auto&& change) {
    std::string bytes = good;
    layout::IndexHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::size_t place = sizeof header + header.file_count * 8;
    layout::ChunkEntry entry;
    std::memcpy(&entry, bytes.data() + place, sizeof entry);
    change(header, entry);
    std::memcpy(bytes.data() + place, &entry, sizeof entry);
    const support::Hash128 hash = support::xxh3_128(support::bytes_of(bytes).subspan(sizeof header));
    header.hash_high = hash.high;
    header.hash_low = hash.low;
    std::memcpy(bytes.data(), &header, sizeof header);
    spit(index, bytes);
    return found_damage(snapshot());
  };
  using H = layout::IndexHeader;
  using E = layout::ChunkEntry;
  EXPECT_FALSE(with_entry([](H&, E&) {}));
  EXPECT_TRUE(with_entry([](H&, E& e) { e.offset = UINT64_MAX - 10; }));
  EXPECT_TRUE(with_entry([](H&, E& e) { e.file = 1; }));
  EXPECT_TRUE(with_entry([](H&, E& e) { e.stored_size = 0; }));
  EXPECT_TRUE(with_entry([](H&, E& e) { e.stored_size = UINT32_MAX; }));
  EXPECT_TRUE(with_entry([](H&, E& e) { e.raw_size = 1 << 30; }));
  EXPECT_TRUE(with_entry([](H&, E& e) { e.raw_size = 5; }));
  EXPECT_TRUE(with_entry([](H&, E& e) { e.codec = static_cast<layout::Codec>(9); }));
  EXPECT_TRUE(with_entry([](H& h, E&) { h.chunk_count = UINT64_MAX / 40; }));
  EXPECT_TRUE(with_entry([](H& h, E&) { h.file_count = UINT64_MAX / 8; }));
  EXPECT_TRUE(with_entry([](H& h, E&) { h.format_version = 2; }));
}

// 30 GiB: zeros, some duplicates, and 2 GiB of distinct chunks.
TEST(Reader, OpeningALargeSnapshotIsQuickAndReadsNoChunk) {
  const support::TemporaryFolder folder;
  const fs::path path = folder.path() / "s.kcap";
  const std::uint64_t gib = std::uint64_t{1} << 30;
  const std::vector<Region> regions = {testing::region(gib, 10 * gib), testing::region(20 * gib, 18 * gib),
                                       testing::region(40 * gib, 2 * gib)};
  {
    Writer writer(path, {.sync = false});
    const auto d = writer.begin_dispatch(regions);
    std::vector<std::byte> bytes(16 << 20, std::byte{3});
    // Region 0 is never put: zeros; the page table has its full length all the same.
    writer.put(d, 1, State::before, 0, bytes, {});
    writer.drain();
    for (std::uint64_t offset = 0, number = 0; offset < regions[2].size; offset += bytes.size()) {
      for (std::size_t chunk = 0; chunk < bytes.size(); chunk += chunk_size)
        std::memcpy(bytes.data() + chunk, &++number, sizeof number);
      writer.put(d, 2, State::before, offset, bytes, {});
      writer.drain();
    }
    writer.commit(testing::small_manifest(regions));
  }
  // Other bytes in the pack files, of the same size: whoever reads a chunk notices.
  for (const auto& entry : fs::directory_iterator(path / "chunks"))
    if (entry.path().extension() == ".pack") {
      const std::uintmax_t size = entry.file_size();
      fs::resize_file(entry.path(), 0);
      fs::resize_file(entry.path(), size);
    }
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Reader reader(path);
    best = std::min(best, std::chrono::steady_clock::now() - start);
    EXPECT_EQ(reader.chunks(0, 1), 18 * gib / chunk_size);
    std::vector<std::byte> bytes(chunk_size);
    EXPECT_NO_THROW(reader.read(0, 0, State::before, 0, bytes));
    EXPECT_THROW(reader.read(0, 2, State::before, 0, bytes), Error);
  }
  EXPECT_LT(best, std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace kerncap::snapshot
