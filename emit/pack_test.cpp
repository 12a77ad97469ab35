#include "emit/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Pack : public ::testing::Test {
 protected:
  Pack() {
    write("project/kernel.json", "{}\n");
    write("project/src/a/kernel.hip", "__global__ void k() {}\n");
    write("project/empty", "");
    write("project/build/CMakeCache.txt", "cache");
    write("project/build/kernel.hsaco", "built");
    write("elsewhere.kcap/manifest.json", std::string(3 << 20, 'x'));
    fs::create_directory_symlink(folder_.path() / "elsewhere.kcap", project() / "snapshot");
  }

  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_.path() / name).parent_path());
    support::write_file_atomically(folder_.path() / name, text, 0644);
  }
  fs::path project() const { return folder_.path() / "project"; }
  fs::path file() const { return folder_.path() / "project.kcpack"; }
  fs::path restored() const { return folder_.path() / "restored"; }

  support::TemporaryFolder folder_;
};

TEST_F(Pack, GivesBackEveryFileButBuildFolders) {
  const auto packed = pack_project(project(), file(), false);
  EXPECT_EQ(packed.files, 4u);
  EXPECT_LT(packed.packed_bytes, 100000u);
  const auto unpacked = unpack_project(file(), restored(), false);
  EXPECT_EQ(unpacked.files, 4u);
  EXPECT_EQ(unpacked.bytes, packed.bytes);
  EXPECT_EQ(support::read_text_file(restored() / "src/a/kernel.hip"), "__global__ void k() {}\n");
  EXPECT_EQ(fs::file_size(restored() / "snapshot/manifest.json"), std::uintmax_t{3 << 20});
  EXPECT_FALSE(fs::is_symlink(restored() / "snapshot"));
  EXPECT_FALSE(fs::exists(restored() / "build"));
}

TEST_F(Pack, RefusesWhatIsNoProjectOrExists) {
  EXPECT_THROW(pack_project(folder_.path(), file(), false), support::Error);
  pack_project(project(), file(), false);
  EXPECT_THROW(pack_project(project(), file(), false), support::Error);
  EXPECT_NO_THROW(pack_project(project(), file(), true));
  EXPECT_THROW(unpack_project(file(), project(), false), support::Error);
}

TEST_F(Pack, NoticesEveryFlippedByteAndEveryCut) {
  pack_project(project(), file(), false);
  const std::string whole = support::read_text_file(file());
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 60) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    support::write_file_atomically(file(), damaged);
    try {
      unpack_project(file(), restored(), true);
      // A flip that leaves every file as it was packed is no damage (tar's padding, unused header fields).
      EXPECT_EQ(support::read_text_file(restored() / "src/a/kernel.hip"), "__global__ void k() {}\n") << at;
    } catch (const support::Error& error) {
      EXPECT_EQ(error.code(), support::ExitCode::bad_input) << error.what();
      EXPECT_FALSE(fs::exists(restored()));
    }
    fs::remove_all(restored());
    support::write_file_atomically(file(), whole.substr(0, at));
    EXPECT_THROW(unpack_project(file(), restored(), false), support::Error) << at;
  }
}

TEST_F(Pack, RefusesPathsOutsideAndForeignMembers) {
  // Made with tar itself: what an attacker would send.
  write("evil/kerncap-pack.json",
        R"({"schema": "kerncap.pack/1", "files": [{"path": "../escaped", "size": 1, "sha256": "00"}]})");
  write("evil/escaped", "x");
  const auto tar = [&](const std::string& arguments) {
    return std::system(
        ("cd '" + (folder_.path() / "evil").string() + "' && tar --zstd -cf '" + file().string() + "' " + arguments)
            .c_str());
  };
  ASSERT_EQ(tar("-P kerncap-pack.json ../evil/escaped"), 0);
  EXPECT_THROW(unpack_project(file(), restored(), false), support::Error);
  EXPECT_FALSE(fs::exists(folder_.path() / "escaped"));
  write("evil/kerncap-pack.json", R"({"schema": "kerncap.pack/1", "files": []})");
  ASSERT_EQ(tar("kerncap-pack.json escaped"), 0);
  try {
    unpack_project(file(), restored(), false);
    FAIL();
  } catch (const support::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not name"));
  }
  fs::create_symlink("/etc/passwd", folder_.path() / "evil/link");
  ASSERT_EQ(tar("kerncap-pack.json link"), 0);
  EXPECT_THROW(unpack_project(file(), restored(), false), support::Error);
}

}  // namespace
}  // namespace kerncap::emit
