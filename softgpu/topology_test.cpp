#include "softgpu/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace kerncap::softgpu {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::map<std::string, std::string>& environment() {
  static std::map<std::string, std::string> variables;
  return variables;
}

Configuration configured(std::map<std::string, std::string> variables) {
  environment() = std::move(variables);
  return read_configuration([](const char* name) -> const char* {
    const auto found = environment().find(name);
    return found == environment().end() ? nullptr : found->second.c_str();
  });
}

TEST(Configuration, IsInertWithoutAnArchitecture) {
  EXPECT_TRUE(configured({}).devices.empty());
  EXPECT_TRUE(configured({{"KERNCAP_SOFTGPU_ARCH", ""}}).devices.empty());
  EXPECT_EQ(configured({}).problem, "");
}

TEST(Configuration, TakesSeveralDevices) {
  const Configuration two = configured({{"KERNCAP_SOFTGPU_ARCH", "gfx90a,gfx1030"}, {"KERNCAP_SOFTGPU_VRAM", "8G"}});
  ASSERT_EQ(two.devices.size(), 2u);
  EXPECT_STREQ(two.devices[1]->processor, "gfx1030");
  EXPECT_EQ(two.vram, std::uint64_t{8} << 30);
}

TEST(Configuration, NamesWhatItDoesNotUnderstand) {
  const Configuration unknown = configured({{"KERNCAP_SOFTGPU_ARCH", "gfx90a,gfx7777"}});
  EXPECT_TRUE(unknown.devices.empty());
  EXPECT_THAT(unknown.problem, HasSubstr("gfx7777"));
  EXPECT_THAT(unknown.problem, HasSubstr("gfx90a"));
  for (const char* size : {"lots", "1K", "-1", "8GG", "99999999999999999999", "4000T"}) {
    const Configuration wrong = configured({{"KERNCAP_SOFTGPU_ARCH", "gfx90a"}, {"KERNCAP_SOFTGPU_VRAM", size}});
    EXPECT_TRUE(wrong.devices.empty()) << size;
    EXPECT_THAT(wrong.problem, HasSubstr("KERNCAP_SOFTGPU_VRAM")) << size;
  }
}

TEST(Configuration, SizesHaveUnits) {
  std::uint64_t bytes = 0;
  EXPECT_TRUE(parse_size("512M", &bytes));
  EXPECT_EQ(bytes, std::uint64_t{512} << 20);
  EXPECT_TRUE(parse_size("2GiB", &bytes));
  EXPECT_EQ(bytes, std::uint64_t{2} << 30);
  EXPECT_TRUE(parse_size("4096", &bytes));
  EXPECT_EQ(bytes, 4096u);
  EXPECT_FALSE(parse_size("", &bytes));
  EXPECT_FALSE(parse_size("0", &bytes));
  EXPECT_FALSE(parse_size("20000000T", &bytes));
}

TEST(VirtualTree, OwnsOnlyTheDriversPlaces) {
  for (const char* path :
       {"/dev/kfd", "/dev/dri", "/dev/dri/renderD128", "/sys/class/drm/card0", "/sys/dev/char/226:128/device",
        "/sys/devices/virtual/kfd/kfd/topology/nodes", "/proc/modules"}) {
    EXPECT_TRUE(VirtualTree::owns(path)) << path;
  }
  for (const char* path : {"", "/", "/dev/drive", "/dev/kfd2", "/dev/null", "/sys/class/net", "/proc/self/maps",
                           "dev/kfd", "/sys/dev/char/1:3"}) {
    EXPECT_FALSE(VirtualTree::owns(path)) << path;
  }
}

TEST(VirtualTree, NormalisesPaths) {
  EXPECT_EQ(VirtualTree::normalise("/sys//class/./drm/"), "/sys/class/drm");
  EXPECT_EQ(VirtualTree::normalise("/a/b/../../c"), "/c");
  EXPECT_EQ(VirtualTree::normalise("/../.."), "/");
}

TEST(VirtualTree, FollowsLinksAndSurvivesLoops) {
  VirtualTree tree;
  tree.add_text("/a/b/file", "text");
  tree.add_link("/l", "/a/b");
  tree.add_link("/m", "/l");
  tree.add_link("/x", "/y");
  tree.add_link("/y", "/x");
  std::string resolved;
  ASSERT_NE(tree.find("/m/file", &resolved), nullptr);
  EXPECT_EQ(resolved, "/a/b/file");
  EXPECT_EQ(tree.find("/m/none"), nullptr);
  EXPECT_EQ(tree.find("/x/file"), nullptr);
}

TEST(Topology, ShowsOneNodeForTheProcessorAndOneForEachDevice) {
  const VirtualTree tree = build_topology(configured({{"KERNCAP_SOFTGPU_ARCH", "gfx90a,gfx1030"}}));
  const std::string nodes = "/sys/devices/virtual/kfd/kfd/topology/nodes";
  const TreeNode* folder = tree.find(nodes);
  ASSERT_NE(folder, nullptr);
  EXPECT_THAT(folder->children, UnorderedElementsAre("0", "1", "2"));
  EXPECT_EQ(tree.find(nodes + "/0/gpu_id")->text, "0\n");
  EXPECT_NE(tree.find(nodes + "/1/gpu_id")->text, tree.find(nodes + "/2/gpu_id")->text);
  const std::string properties = tree.find(nodes + "/2/properties")->text;
  EXPECT_THAT(properties, HasSubstr("gfx_target_version 100300\n"));
  EXPECT_THAT(properties, HasSubstr("drm_render_minor 129\n"));
  EXPECT_LT(properties.size(), 4096u) << "libhsakmt reads one page";
  // Strict: device memory is private, and the processor has no link to it.
  EXPECT_THAT(tree.find(nodes + "/1/mem_banks/0/properties")->text, HasSubstr("heap_type 2\n"));
  EXPECT_THAT(tree.find(nodes + "/0/properties")->text, HasSubstr("io_links_count 0\n"));
  EXPECT_NE(tree.find("/sys/dev/char/226:129/device/drm"), nullptr);
}

TEST(Topology, ALargeBarMakesDeviceMemoryPublic) {
  const VirtualTree tree =
      build_topology(configured({{"KERNCAP_SOFTGPU_ARCH", "gfx90a"}, {"KERNCAP_SOFTGPU_LARGE_BAR", "1"}}));
  const std::string nodes = "/sys/devices/virtual/kfd/kfd/topology/nodes";
  EXPECT_THAT(tree.find(nodes + "/1/mem_banks/0/properties")->text, HasSubstr("heap_type 1\n"));
  EXPECT_THAT(tree.find(nodes + "/0/properties")->text, HasSubstr("io_links_count 1\n"));
}

}  // namespace
}  // namespace kerncap::softgpu
