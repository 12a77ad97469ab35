#include "core/snapshot/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "core/snapshot/test_data.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"

namespace kerncap::snapshot {
namespace {

namespace fs = std::filesystem;
using support::Error;

std::vector<std::byte> read_back(const Reader& reader, std::size_t dispatch, std::size_t region, State state) {
  std::vector<std::byte> out(reader.manifest().dispatches[dispatch].regions[region].size);
  reader.read(dispatch, region, state, 0, out);
  return out;
}

std::uint64_t folder_bytes(const fs::path& folder) {
  std::uint64_t sum = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) sum += entry.file_size();
  return sum;
}

class WriterTest : public ::testing::Test {
 protected:
  fs::path path(const char* name = "s.kcap") const { return folder_.path() / name; }
  std::size_t entries_in_folder() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator{}));
  }
  support::TemporaryFolder folder_;
};

TEST_F(WriterTest, BytesComeBackBeforeAndAfter) {
  const std::vector<Region> regions = {testing::region(0x10000, 3 * chunk_size + 100), testing::region(0x900000, 17)};
  const auto before = testing::text_like_bytes(regions[0].size, 1), small = testing::random_bytes(17, 2);
  auto after = before;
  after[chunk_size + 5] ^= std::byte{1};
  after.back() ^= std::byte{1};
  const std::string elf = "not really an ELF";
  const std::string digest = support::sha256_hex(support::bytes_of(elf));
  {
    Writer writer(path(), {});
    const auto d = writer.begin_dispatch(regions);
    std::atomic<int> released{0};
    writer.put(d, 0, State::before, 0, before, [&] { ++released; });
    writer.put(d, 1, State::before, 0, small, [&] { ++released; });
    writer.drain();
    EXPECT_EQ(released, 2);
    writer.put(d, 0, State::after, 0, after, {});
    writer.put(d, 1, State::after, 0, small, {});
    writer.drain();
    EXPECT_EQ(writer.changed_chunks(d), 2u);
    writer.add_code_object(digest, support::bytes_of(elf));
    writer.set_kernarg(d, support::bytes_of("12345678"));
    Manifest m = testing::small_manifest(regions);
    m.dispatches[0].code_object = digest;
    writer.commit(m);
  }
  const Reader reader(path());
  EXPECT_EQ(read_back(reader, 0, 0, State::before), before);
  EXPECT_EQ(read_back(reader, 0, 0, State::after), after);
  EXPECT_EQ(read_back(reader, 0, 1, State::after), small);
  EXPECT_EQ(reader.chunks(0, 0), 4u);
  const bool changed[] = {reader.changed(0, 0, 0), reader.changed(0, 0, 1), reader.changed(0, 0, 2),
                          reader.changed(0, 0, 3)};
  EXPECT_THAT(changed, ::testing::ElementsAre(false, true, false, true));
  EXPECT_EQ(reader.kernarg(0).size(), 8u);
  EXPECT_EQ(reader.code_object(digest).size(), elf.size());
  EXPECT_THAT(reader.verify({}), ::testing::IsEmpty());
  std::vector<std::byte> part(chunk_size + 10);  // crosses chunks at odd offsets
  reader.read(0, 0, State::after, chunk_size - 3, part);
  EXPECT_EQ(std::memcmp(part.data(), after.data() + chunk_size - 3, part.size()), 0);
  EXPECT_THROW(reader.read(0, 0, State::before, regions[0].size - 1, part), Error);
}

TEST_F(WriterTest, ZerosAndDuplicatesCostNothing) {
  const std::uint64_t size = 64 * chunk_size;
  const std::vector<Region> regions = {testing::region(0x10000, size), testing::region(0x10000 + size, size),
                                       testing::region(0x10000 + 2 * size, 2 * chunk_size)};
  const std::vector<std::byte> zeros(size);
  const auto one = testing::random_bytes(chunk_size, 3);
  std::vector<std::byte> same;
  for (int i = 0; i < 64; ++i) same.insert(same.end(), one.begin(), one.end());
  Writer writer(path(), {});
  const auto d = writer.begin_dispatch(regions);
  writer.put(d, 0, State::before, 0, zeros, {});
  writer.put(d, 1, State::before, 0, same, {});
  writer.drain();  // region 2 is never put: zeros
  const WriterStatistics s = writer.statistics();
  EXPECT_EQ(s.zero_chunks, 64u);
  EXPECT_EQ(s.duplicate_chunks, 63u);
  EXPECT_EQ(s.stored_chunks, 1u);
  writer.commit(testing::small_manifest(regions));
  EXPECT_LT(folder_bytes(path()), 2 * chunk_size);
  const Reader reader(path());
  EXPECT_EQ(read_back(reader, 0, 1, State::before), same);
  EXPECT_EQ(read_back(reader, 0, 2, State::after), std::vector<std::byte>(2 * chunk_size));
  EXPECT_TRUE(reader.is_zero(0, 0, State::before, 5));
  EXPECT_FALSE(reader.is_zero(0, 1, State::before, 5));
}

TEST_F(WriterTest, RandomDataGrowsByLessThanOnePercent) {
  const std::vector<Region> regions = {testing::region(0x10000, 8 << 20)};
  const auto bytes = testing::random_bytes(8 << 20, 4);
  Writer writer(path(), {});
  writer.put(writer.begin_dispatch(regions), 0, State::before, 0, bytes, {});
  writer.commit(testing::small_manifest(regions));
  EXPECT_LT(folder_bytes(path()), bytes.size() * 101 / 100);
}

TEST_F(WriterTest, WhatCompressesIsCompressedEvenBesideRandomBytes) {
  // Chunks of text, of random bytes, and text with a random beginning, middle or end.
  std::vector<std::byte> bytes;
  const auto text = testing::text_like_bytes(chunk_size, 11), random = testing::random_bytes(chunk_size, 12);
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.insert(bytes.end(), random.begin(), random.end());
  for (const std::size_t at : {std::size_t{0}, chunk_size / 2, chunk_size - 4096}) {
    auto mixed = text;
    std::copy_n(random.begin(), 4096, mixed.begin() + static_cast<std::ptrdiff_t>(at));
    bytes.insert(bytes.end(), mixed.begin(), mixed.end());
  }
  bytes.resize(5 * chunk_size + 77, std::byte{'a'});
  const std::vector<Region> regions = {testing::region(0x10000, bytes.size())};
  Writer writer(path(), {});
  writer.put(writer.begin_dispatch(regions), 0, State::before, 0, bytes, {});
  writer.drain();
  EXPECT_GT(writer.statistics().stored_bytes, chunk_size);
  EXPECT_LT(writer.statistics().stored_bytes, 2.5 * chunk_size);  // 1 random + 4 of text, at about a quarter
  writer.commit(testing::small_manifest(regions));
  const Reader reader(path());
  EXPECT_EQ(read_back(reader, 0, 0, State::before), bytes);
}

TEST_F(WriterTest, SeveralDispatchesShareChunksAndFiles) {
  const std::vector<Region> regions = {testing::region(0x10000, 32 * chunk_size)};
  const auto bytes = testing::random_bytes(regions[0].size, 5);
  auto after = bytes;
  after[0] ^= std::byte{1};
  Writer writer(path(), {.pack_size = chunk_size * 4});
  Manifest m = testing::small_manifest(regions);
  for (int i = 0; i < 3; ++i) {
    const auto d = writer.begin_dispatch(regions);
    writer.put(d, 0, State::before, 0, i == 0 ? bytes : after, {});
    writer.drain();
    writer.put(d, 0, State::after, 0, after, {});
    writer.drain();
    EXPECT_EQ(writer.changed_chunks(d), i == 0 ? 1u : 0u);
  }
  m.dispatches.resize(3, m.dispatches[0]);
  writer.commit(m);
  EXPECT_EQ(writer.statistics().stored_chunks, 33u);
  const Reader reader(path());
  EXPECT_GT(reader.manifest().chunk_files.size(), 1u);
  EXPECT_EQ(read_back(reader, 2, 0, State::before), after);
  EXPECT_EQ(read_back(reader, 0, 0, State::before), bytes);
}

TEST_F(WriterTest, RegionsThatAreNotKeptAreGoneAndTheOthersAreNumberedAnew) {
  const auto r = [](std::uint64_t n) { return testing::region(n * 0x100000, 2 * chunk_size); };
  const auto first = testing::random_bytes(2 * chunk_size, 9), third = testing::random_bytes(2 * chunk_size, 10);
  auto after = third;
  after[chunk_size] ^= std::byte{1};
  Writer writer(path(), {});
  const auto d = writer.begin_dispatch({r(1), r(2), r(3)});
  writer.put(d, 0, State::before, 0, first, {});
  writer.put(d, 2, State::before, 0, third, {});
  EXPECT_THROW(writer.keep_regions(d, {true}), Error);
  writer.keep_regions(d, {false, false, true});
  writer.put(d, 0, State::after, 0, after, {});
  EXPECT_THROW(writer.put(d, 1, State::after, 0, after, {}), Error);
  writer.commit(testing::small_manifest({r(3)}));
  const Reader reader(path());
  EXPECT_EQ(read_back(reader, 0, 0, State::before), third);
  EXPECT_EQ(read_back(reader, 0, 0, State::after), after);
}

TEST_F(WriterTest, NothingIsLeftWithoutCommit) {
  {
    Writer writer(path(), {});
    const auto bytes = testing::random_bytes(chunk_size, 6);
    writer.put(writer.begin_dispatch({testing::region(0x10000, chunk_size)}), 0, State::before, 0, bytes, {});
    writer.drain();
  }
  EXPECT_EQ(entries_in_folder(), 0u);
}

TEST_F(WriterTest, AnExistingSnapshotIsKeptUnlessReplaceIsAsked) {
  const std::vector<Region> none;
  Writer(path(), {}).commit([&] {
    Manifest m = testing::small_manifest(none);
    m.dispatches.clear();
    return m;
  }());
  EXPECT_THROW(Writer(path(), {}), Error);
  { Writer abandoned(path(), {.replace = true}); }
  EXPECT_NO_THROW(Reader{path()});
}

TEST_F(WriterTest, AFullDiskIsAnErrorAndEveryBufferIsReleased) {
  // A file size limit is the portable full disk: write fails with EFBIG as it would with ENOSPC.
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::atomic<int> released{0};
    int result = 1;
    {
      Writer writer(path(), {});
      const std::vector<Region> regions = {testing::region(0x10000, 16 << 20)};
      const auto d = writer.begin_dispatch(regions);
      const auto bytes = testing::random_bytes(16 << 20, 7);
      int given = 0;
      try {
        for (std::uint64_t offset = 0; offset < bytes.size(); offset += chunk_size) {
          ++given;
          writer.put(d, 0, State::before, offset, std::span(bytes).subspan(offset, chunk_size), [&] { ++released; });
        }
        writer.commit(testing::small_manifest(regions));
      } catch (const Error& error) {
        try {
          writer.drain();
        } catch (const Error&) {
        }
        result = error.code() == support::ExitCode::environment && released == given ? 0 : 2;
      }
    }
    ::_exit(result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(entries_in_folder(), 0u);
}

TEST_F(WriterTest, AKillAtAnyMomentLeavesNoSnapshotOrAWholeOne) {
  const std::vector<Region> regions = {testing::region(0x10000, 64 * chunk_size)};
  const auto bytes = testing::random_bytes(regions[0].size, 8);
  int whole = 0;
  for (int delay = 0; delay < 24; ++delay) {
    const pid_t child = ::fork();
    if (child == 0) {
      Writer writer(path(), {.replace = true});
      writer.put(writer.begin_dispatch(regions), 0, State::before, 0, bytes, {});
      Manifest m = testing::small_manifest(regions);
      m.dispatches[0].code_object = support::sha256_hex(support::bytes_of("elf"));
      writer.add_code_object(m.dispatches[0].code_object, support::bytes_of("elf"));
      writer.commit(m);
      ::_exit(0);
    }
    if (delay < 23) {  // the last one lives
      ::usleep(static_cast<useconds_t>(delay * 700));
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (fs::exists(path())) {
      ++whole;
      const Reader reader(path());
      EXPECT_THAT(reader.verify({}), ::testing::IsEmpty());
      EXPECT_EQ(read_back(reader, 0, 0, State::before), bytes);
    }
  }
  EXPECT_GT(whole, 0);
}

TEST_F(WriterTest, PartsOfChunksAndForeignRegionsAreRefused) {
  Writer writer(path(), {});
  const auto d = writer.begin_dispatch({testing::region(0x10000, 2 * chunk_size)});
  const std::vector<std::byte> bytes(2 * chunk_size);
  int released = 0;
  const auto refused = [&](std::size_t region, std::uint64_t offset, std::size_t size) {
    EXPECT_THROW(writer.put(d, region, State::before, offset, std::span(bytes).first(size), [&] { ++released; }),
                 Error);
  };
  refused(0, 1, chunk_size);
  refused(0, 0, 100);
  refused(0, chunk_size, 2 * chunk_size);
  refused(1, 0, chunk_size);
  EXPECT_EQ(released, 4);
  EXPECT_THROW(writer.begin_dispatch({testing::region(0x20000, 10), testing::region(0x20005, 10)}), Error);
  EXPECT_THROW(writer.add_code_object(std::string(64, '0'), bytes), Error);
}

}  // namespace
}  // namespace kerncap::snapshot
