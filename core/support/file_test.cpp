#include "core/support/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "core/support/error.h"

namespace kerncap::support {
namespace {

unsigned mode_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

std::size_t entries_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFile, AppearsOnlyByCommitAndIsPrivate) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "data";
  {
    AtomicFile file(path);
    file.write("hello");
    EXPECT_FALSE(std::filesystem::exists(path));
    file.commit();
  }
  EXPECT_EQ(read_text_file(path), "hello");
  EXPECT_EQ(mode_of(path), 0600u);
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(AtomicFile, LeavesTheOldContentWhenNotCommitted) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "data";
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
  }
  EXPECT_EQ(read_text_file(path), "old");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(AtomicFile, SaysThatTheDiskIsFull) {
  const int full = ::open("/dev/full", 1);
  ASSERT_GE(full, 0);
  try {
    write_all(full, std::as_bytes(std::span("x", 1)), "result.bin");
    FAIL() << "writing to a full device succeeded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::environment);
    EXPECT_NE(std::string(error.what()).find("result.bin"), std::string::npos);
  }
  ::close(full);
}

TEST(AtomicFolder, AppearsWholeAndPrivateOrNotAtAll) {
  const TemporaryFolder folder;
  const auto target = folder.path() / "snapshot";
  {
    AtomicFolder unfinished(target, false);
    write_file_atomically(unfinished.path() / "part", "1");
  }
  EXPECT_EQ(entries_in(folder.path()), 0u);
  AtomicFolder finished(target, false);
  write_file_atomically(finished.path() / "part", "1");
  finished.commit();
  EXPECT_EQ(read_text_file(target / "part"), "1");
  EXPECT_EQ(mode_of(target), 0700u);
}

TEST(AtomicFolder, RefusesToReplaceUnlessAsked) {
  const TemporaryFolder folder;
  const auto target = folder.path() / "snapshot";
  std::filesystem::create_directory(target);
  EXPECT_THROW(AtomicFolder(target, false), Error);
  AtomicFolder replacing(target, true);
  write_file_atomically(replacing.path() / "new", "1");
  replacing.commit();
  EXPECT_TRUE(std::filesystem::exists(target / "new"));
  EXPECT_EQ(entries_in(folder.path()), 1u) << "the old folder is still there";
}

TEST(AtomicFolder, NoticesANameThatWasTakenMeanwhile) {
  const TemporaryFolder folder;
  const auto target = folder.path() / "snapshot";
  AtomicFolder late(target, false);
  std::filesystem::create_directory(target);
  EXPECT_THROW(late.commit(), Error);
}

TEST(AtomicFolder, AcceptsATrailingSlash) {
  const TemporaryFolder folder;
  AtomicFolder made(folder.path() / "name/", false);
  made.commit();
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "name"));
}

TEST(MappedFile, MapsEmptyFilesAndRefusesFolders) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "empty", "");
  EXPECT_EQ(MappedFile(folder.path() / "empty").bytes().size(), 0u);
  EXPECT_THROW(MappedFile(folder.path()), Error);
  EXPECT_THROW(MappedFile(folder.path() / "missing"), Error);
}

TEST(SafeRelativePath, KeepsInsideItsFolder) {
  for (const char* good : {"a", "a/b", "code/x.hsaco", "..a", "a..b/c"})
    EXPECT_TRUE(is_safe_relative_path(good)) << good;
  for (const char* bad : {"", "/", "/a", "..", "../a", "a/../b", "a/..", "./a", "a//b", "a/"}) {
    EXPECT_FALSE(is_safe_relative_path(bad)) << bad;
  }
  EXPECT_FALSE(is_safe_relative_path(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace kerncap::support
