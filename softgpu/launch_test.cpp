#include "softgpu/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::softgpu {
namespace {

class LaunchTest : public ::testing::Test {
 protected:
  LaunchTest() { std::ofstream(folder.path() / "libkerncap-softgpu.so") << "x"; }
  support::TemporaryFolder folder{"softgpu-launch"};
  LaunchOptions options{
      .library_folder = folder.path(), .processors = {"gfx90a", "gfx1030"}, .vram = {}, .threads = {}, .seed = {}};
};

TEST_F(LaunchTest, PreloadsTheLibraryBeforeWhatIsPreloadedAlready) {
  setenv("LD_PRELOAD", "/somewhere/else.so", 1);
  auto changes = launch_environment(options);
  unsetenv("LD_PRELOAD");
  EXPECT_EQ(changes.at("LD_PRELOAD"), (folder.path() / "libkerncap-softgpu.so").string() + ":/somewhere/else.so");
  EXPECT_EQ(changes.at("KERNCAP_SOFTGPU_ARCH"), "gfx90a,gfx1030");
  EXPECT_FALSE(changes.contains("KERNCAP_SOFTGPU_VRAM"));
  EXPECT_EQ(launch_environment(options).at("LD_PRELOAD"), (folder.path() / "libkerncap-softgpu.so").string());
}

TEST_F(LaunchTest, PassesOptionsOn) {
  options.vram = "8G";
  options.threads = 3;
  options.seed = 42;
  const auto changes = launch_environment(options);
  EXPECT_EQ(changes.at("KERNCAP_SOFTGPU_VRAM"), "8G");
  EXPECT_EQ(changes.at("KERNCAP_SOFTGPU_THREADS"), "3");
  EXPECT_EQ(changes.at("KERNCAP_SOFTGPU_SEED"), "42");
}

support::ExitCode code_of(const LaunchOptions& options) {
  try {
    launch_environment(options);
  } catch (const support::Error& error) {
    return error.code();
  }
  return support::ExitCode::done;
}

TEST_F(LaunchTest, RefusesUnknownArchitecturesAndMissingLibraries) {
  LaunchOptions wrong = options;
  wrong.processors = {"gfx1"};
  EXPECT_EQ(code_of(wrong), support::ExitCode::usage);
  wrong.processors = {};
  EXPECT_EQ(code_of(wrong), support::ExitCode::usage);
  wrong = options;
  wrong.library_folder = folder.path() / "none";
  EXPECT_EQ(code_of(wrong), support::ExitCode::environment);
}

TEST_F(LaunchTest, KnowsStaticPrograms) {
  EXPECT_EQ(why_unreachable("/proc/self/exe"), std::nullopt);
  EXPECT_EQ(why_unreachable("/does/not/exist"), std::nullopt);
  EXPECT_EQ(why_unreachable(folder.path()), std::nullopt);
  EXPECT_EQ(why_unreachable(folder.path() / "libkerncap-softgpu.so"), std::nullopt) << "not ELF: a script, say";
  // An ELF header without an interpreter segment is what a static program looks like.
  std::ifstream own("/proc/self/exe", std::ios::binary);
  std::string header(64, '\0');
  own.read(header.data(), 64);
  header[56] = header[57] = 0;  // e_phnum
  std::ofstream(folder.path() / "static", std::ios::binary) << header;
  const auto reason = why_unreachable(folder.path() / "static");
  ASSERT_TRUE(reason.has_value());
  EXPECT_NE(reason->find("statically linked"), std::string::npos);
}

}  // namespace
}  // namespace kerncap::softgpu
