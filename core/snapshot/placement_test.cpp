#include "core/snapshot/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "core/snapshot/reader.h"
#include "core/snapshot/test_data.h"
#include "core/snapshot/writer.h"
#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::snapshot {
namespace {

namespace fs = std::filesystem;

class Placement : public ::testing::Test {
 protected:
  Placement() {
    const std::vector<Region> regions = {testing::region(0x10000, 40 * chunk_size)};
    Writer writer(original(), {});
    writer.put(writer.begin_dispatch(regions), 0, State::before, 0, bytes_, {});
    Manifest m = testing::small_manifest(regions);
    m.dispatches[0].code_object = support::sha256_hex(support::bytes_of("elf"));
    writer.add_code_object(m.dispatches[0].code_object, support::bytes_of("elf"));
    writer.commit(m);
  }
  fs::path original() const { return folder_.path() / "s.kcap"; }
  void expect_whole(const fs::path& path) const {
    const Reader reader(path);
    EXPECT_THAT(reader.verify({}), ::testing::IsEmpty());
    std::vector<std::byte> bytes(bytes_.size());
    reader.read(0, 0, State::before, 0, bytes);
    EXPECT_EQ(bytes, bytes_);
  }
  static struct stat status(const fs::path& path) {
    struct stat out {};
    EXPECT_EQ(::stat(path.c_str(), &out), 0) << path;
    return out;
  }
  support::TemporaryFolder folder_;
  std::vector<std::byte> bytes_ = testing::random_bytes(40 * chunk_size, 1);
};

TEST_F(Placement, ACopyIsWholeAndSharesNoFile) {
  const fs::path copy = folder_.path() / "copy";
  place(original(), copy, Transfer::copy);
  expect_whole(copy);
  EXPECT_NE(status(copy / "chunks/0000.pack").st_ino, status(original() / "chunks/0000.pack").st_ino);
  EXPECT_EQ(status(copy).st_mode & 0777, 0700u);
  EXPECT_EQ(status(copy / "manifest.json").st_mode & 0777, 0600u);
  std::ofstream(copy / "chunks/0000.pack", std::ios::trunc) << "gone";
  expect_whole(original());
}

TEST_F(Placement, TakingMovesTheVeryFiles) {
  const ino_t pack = status(original() / "chunks/0000.pack").st_ino;
  const fs::path taken = folder_.path() / "taken";
  place(original(), taken, Transfer::take);
  expect_whole(taken);
  EXPECT_EQ(status(taken / "chunks/0000.pack").st_ino, pack);
  EXPECT_FALSE(fs::exists(original()));
}

TEST_F(Placement, TakingAcrossFileSystemsCopiesAndRemoves) {
  const fs::path other = fs::path("/dev/shm") / ("kerncap-placement-" + std::to_string(::getpid()));
  if (!fs::is_directory("/dev/shm") || status("/dev/shm").st_dev == status(folder_.path()).st_dev)
    GTEST_SKIP() << "there is no second file system here";
  place(original(), other, Transfer::take);
  expect_whole(other);
  EXPECT_FALSE(fs::exists(original()));
  fs::remove_all(other);
}

TEST_F(Placement, WhatExistsIsNotTouched) {
  const fs::path there = folder_.path() / "there";
  fs::create_directory(there);
  std::ofstream(there / "mine") << "x";
  EXPECT_THROW(place(original(), there, Transfer::copy), support::Error);
  EXPECT_THROW(place(original(), there, Transfer::take), support::Error);
  EXPECT_TRUE(fs::exists(there / "mine"));
  expect_whole(original());
}

TEST_F(Placement, ALinkToASnapshotIsFollowedAndLinksInsideAreNot) {
  fs::create_directory_symlink(original(), folder_.path() / "link");
  place(folder_.path() / "link", folder_.path() / "copy", Transfer::copy);
  EXPECT_FALSE(fs::is_symlink(folder_.path() / "copy"));
  expect_whole(folder_.path() / "copy");
  fs::create_symlink("/etc/passwd", original() / "code/x");
  EXPECT_THROW(place(original(), folder_.path() / "second", Transfer::copy), support::Error);
}

}  // namespace
}  // namespace kerncap::snapshot
