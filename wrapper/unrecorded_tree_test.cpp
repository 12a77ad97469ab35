#include "wrapper/unrecorded_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wrapper/build_for_test.h"

namespace kerncap::wrapper {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class UnrecordedBuild : public ::testing::Test {
 protected:
  UnrecordedTree look(const Words& command) const {
    return look_at_unrecorded_tree(command, tree.path() / "out/.kerncap", "/opt/ker ncap/bin");
  }
  BuildTree tree;
};

TEST_F(UnrecordedBuild, a_cmake_tree_is_told_the_exact_commands_for_its_languages_and_launchers) {
  tree.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\nproject(p C)\nadd_library(l STATIC c.c)\n");
  ASSERT_EQ(
      tree.run({"cmake", "-S", ".", "-B", "out", "-G", "Ninja", "-DCMAKE_C_COMPILER_LAUNCHER=ccache"}).exit_status, 0);
  const std::string folder = (tree.path() / "out").string();
  const UnrecordedTree found = look({"cmake", "--build", folder});
  EXPECT_EQ(found.folder, folder);
  EXPECT_TRUE(found.goes_past_us);
  EXPECT_THAT(found.how_to_record, AllOf(HasSubstr("cmake -S '" + tree.path().string() + "' -B '" + folder + "'"),
                                         HasSubstr("'-DCMAKE_C_COMPILER_LAUNCHER=/opt/ker ncap/bin/kerncap-cc;ccache'"),
                                         HasSubstr("&& '/opt/ker ncap/bin/kerncap' build --db '" + folder +
                                                   "/.kerncap' -- cmake --build '" + folder + "'"),
                                         Not(HasSubstr("CMAKE_HIP_COMPILER"))));
}

TEST_F(UnrecordedBuild, a_cmake_tree_that_leads_to_us_is_only_up_to_date) {
  tree.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\nproject(p C)\nadd_library(l STATIC c.c)\n");
  ASSERT_EQ(
      tree.run({"cmake", "-S", ".", "-B", "out", "-G", "Ninja", "-DCMAKE_C_COMPILER_LAUNCHER=" + program}).exit_status,
      0);
  const UnrecordedTree found = look({"ninja", "-C", "out"});
  EXPECT_FALSE(found.goes_past_us);
  EXPECT_THAT(found.how_to_record, HasSubstr("--clean-first"));
}

TEST_F(UnrecordedBuild, meson_and_ninja_trees_are_told_apart) {
  tree.write("out/build.ninja", "rule cc\n  command = /usr/bin/gcc -c $in\n");
  EXPECT_TRUE(look({"ninja", "-C", "out"}).goes_past_us);
  EXPECT_THAT(look({"ninja", "-C", "out"}).how_to_record, HasSubstr("-- ninja -C out"));
  tree.write("out/meson-info/x", "");
  EXPECT_THAT(look({"ninja", "-C", "out"}).how_to_record, HasSubstr("meson setup --wipe"));
  tree.write("out/build.ninja", "rule cc\n  command = /somewhere/kerncap-cc /usr/bin/gcc -c $in\n");
  EXPECT_FALSE(look({"ninja", "-C", "out"}).goes_past_us);
}

TEST_F(UnrecordedBuild, a_build_without_a_tree_is_told_in_words) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(tree.path());
  const UnrecordedTree found = look({"./build.sh"});
  std::filesystem::current_path(before);
  EXPECT_EQ(found.folder, "");
  EXPECT_THAT(found.how_to_record, HasSubstr("CC='/opt/ker ncap/bin/kerncap-cc <compiler>'"));
}

}  // namespace
}  // namespace kerncap::wrapper
