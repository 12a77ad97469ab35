#include "cli/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::cli {
namespace {

namespace fs = std::filesystem;

class SettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("KERNCAP_DB");
    ::unsetenv("KERNCAP_SOFTGPU");
    fs::create_directories(folder_.path() / "a/b");
  }
  void write(const std::string& text) { support::write_file_atomically(folder_.path() / "kerncap.toml", text); }
  std::string refusal() {
    try {
      load_settings(folder_.path());
    } catch (const support::Error& error) {
      EXPECT_EQ(error.code(), support::ExitCode::bad_input);
      return error.what();
    }
    return "accepted";
  }
  support::TemporaryFolder folder_;
};

TEST_F(SettingsTest, AreFoundUpwardAndPathsAreRelativeToTheFile) {
  write("database = \"build/.kerncap\"\nsoftgpu = \"gfx1030\"\n[replay]\ntimeout = 5\n");
  const Settings settings = load_settings(folder_.path() / "a/b");
  EXPECT_EQ(settings.database, folder_.path() / "build/.kerncap");
  EXPECT_EQ(settings.softgpu, "gfx1030");
  EXPECT_EQ(settings.timeout_seconds, 5u);
}

TEST_F(SettingsTest, TheNearestFileWins) {
  write("softgpu = \"gfx1030\"\n");
  support::write_file_atomically(folder_.path() / "a/kerncap.toml", "softgpu = \"gfx90a\"\n");
  EXPECT_EQ(load_settings(folder_.path() / "a/b").softgpu, "gfx90a");
}

TEST_F(SettingsTest, TheEnvironmentWinsOverTheFile) {
  write("database = \"from-file\"\n");
  ::setenv("KERNCAP_DB", "/from/environment", 1);
  EXPECT_EQ(load_settings(folder_.path()).database, "/from/environment");
  ::unsetenv("KERNCAP_DB");
}

TEST_F(SettingsTest, DamageIsNamedWithFileAndLine) {
  write("database = \"x\"\nsoftgpu = = 1\n");
  EXPECT_NE(refusal().find("kerncap.toml:2"), std::string::npos) << refusal();
  write("\n\nsources = \"sometimes\"\n");
  EXPECT_NE(refusal().find("kerncap.toml:3: 'sources'"), std::string::npos) << refusal();
  write("database = 5\n");
  EXPECT_NE(refusal().find("'database': a string was expected"), std::string::npos) << refusal();
  write("[replay]\ntimeout = -1\n");
  EXPECT_NE(refusal().find("timeout"), std::string::npos) << refusal();
}

TEST_F(SettingsTest, TablesOfEmittedProjectsAreLeftToThem) {
  write("[validate]\nrelative = 1e-5\n");
  EXPECT_NO_THROW(load_settings(folder_.path()));
}

}  // namespace
}  // namespace kerncap::cli
