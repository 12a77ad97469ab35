#include "core/compdb/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kerncap::compdb {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CommandLine parse(std::vector<std::string> arguments, std::string_view family = "clang") {
  arguments.insert(arguments.begin(), std::string(family));
  return parse_arguments(arguments, family);
}

TEST(Arguments, queries_compile_nothing) {
  for (const char* query :
       {"--version", "-v", "-print-search-dirs", "--print-targets", "-dumpmachine", "-###", "--help"}) {
    EXPECT_EQ(parse({query}).action, Action::query) << query;
  }
  EXPECT_EQ(parse({"-###", "-c", "a.c"}).action, Action::query);
  EXPECT_EQ(parse({"-c"}).action, Action::query);
  EXPECT_EQ(parse({"-v", "-c", "a.c"}).action, Action::compile);
}

TEST(Arguments, actions_are_told_apart) {
  EXPECT_EQ(parse({"-c", "a.c"}).action, Action::compile);
  EXPECT_EQ(parse({"a.c"}).action, Action::link);
  EXPECT_EQ(parse({"a.o", "-o", "app"}).action, Action::link);
  EXPECT_EQ(parse({"-S", "a.c"}).action, Action::assembly);
  EXPECT_EQ(parse({"-c", "-E", "a.c"}).action, Action::preprocess);
  EXPECT_EQ(parse({"-E", "-c", "a.c"}).action, Action::preprocess);
  EXPECT_EQ(parse({"-M", "a.c"}).action, Action::preprocess);
  EXPECT_EQ(parse({"-MM", "a.c"}).action, Action::preprocess);
  EXPECT_EQ(parse({"-fsyntax-only", "a.c"}).action, Action::syntax_only);
  EXPECT_EQ(parse({"-x", "c++-header", "a.h", "-o", "a.pch"}).action, Action::precompile);
  EXPECT_EQ(parse({"a.hpp"}).action, Action::precompile);
}

TEST(Arguments, the_output_is_found_in_each_spelling) {
  EXPECT_EQ(parse({"-c", "a.c", "-o", "x.o"}).output, "x.o");
  EXPECT_EQ(parse({"-c", "a.c", "-ox.o"}).output, "x.o");
  EXPECT_EQ(parse({"-c", "a.c", "--output=x.o"}).output, "x.o");
  EXPECT_EQ(parse({"-c", "a.c", "-o", "-"}).output, "-");
  EXPECT_EQ(parse({"-c", "a.c"}).output, "");
  const CommandLine line = parse({"-c", "dir/a.b.c"});
  EXPECT_EQ(default_output(line, line.sources[0], "clang"), "a.b.o");
}

TEST(Arguments, values_of_options_are_no_sources) {
  const CommandLine line =
      parse({"-I",  "x.c",    "-D",      "y.c",           "-include", "z.h",           "-isystem", "s.c", "-Xclang",
             "q.c", "-mllvm", "r.c",     "-Xarch_gfx90a", "-DZ",      "-Xarch_device", "t.c",      "-MF", "u.c",
             "-MT", "v.c",    "-target", "w.c",           "--param",  "p.c",           "-imacros", "m.h", "-L",
             "l.c", "-c",     "real.c"});
  ASSERT_EQ(line.sources.size(), 1U);
  EXPECT_EQ(line.sources[0].path, "real.c");
  EXPECT_THAT(line.system_folders, ElementsAre("s.c"));
  EXPECT_EQ(line.dependency_file, "u.c");
}

TEST(Arguments, languages_follow_x_and_suffix) {
  const CommandLine line = parse({"a.c", "-x", "hip", "b.cpp", "-x", "none", "c.cc", "d.s", "e.o", "libf.a"});
  ASSERT_EQ(line.sources.size(), 4U);
  EXPECT_EQ(line.sources[0].language, "c");
  EXPECT_EQ(line.sources[1].language, "hip");
  EXPECT_EQ(line.sources[2].language, "c++");
  EXPECT_EQ(line.sources[3].language, "assembler");
  EXPECT_THAT(line.link_inputs, ElementsAre("e.o", "libf.a"));
  EXPECT_TRUE(line.offload);
}

TEST(Arguments, standard_input_is_a_source) {
  const CommandLine line = parse({"-x", "hip", "-", "-c", "-o", "a.o"});
  ASSERT_EQ(line.sources.size(), 1U);
  EXPECT_EQ(line.sources[0].path, "-");
  EXPECT_EQ(line.sources[0].language, "hip");
}

TEST(Arguments, a_double_dash_ends_the_options) {
  const CommandLine line = parse({"-c", "--", "-odd.c"});
  ASSERT_EQ(line.sources.size(), 1U);
  EXPECT_EQ(line.sources[0].path, "-odd.c");
}

TEST(Arguments, device_targets_add_up_and_are_taken_away) {
  EXPECT_THAT(
      parse({"--offload-arch=gfx90a,gfx1030", "--offload-arch=gfx90a:xnack+:sramecc-", "-c", "a.hip"}).device_targets,
      ElementsAre("gfx90a", "gfx1030", "gfx90a:xnack+:sramecc-"));
  EXPECT_THAT(parse({"--offload-arch=gfx90a", "--cuda-gpu-arch=gfx1030", "--no-offload-arch=gfx90a", "-c", "a.hip"})
                  .device_targets,
              ElementsAre("gfx1030"));
  EXPECT_THAT(parse({"--offload-arch=gfx90a", "--no-offload-arch=all", "-c", "a.hip"}).device_targets, IsEmpty());
}

TEST(Arguments, modes_are_flags) {
  const CommandLine line =
      parse({"-fgpu-rdc", "--offload-new-driver", "--offload-compress", "-flto=thin", "-c", "a.hip"});
  EXPECT_TRUE(line.rdc && line.new_driver && line.compressed && line.lto);
  EXPECT_FALSE(parse({"-fgpu-rdc", "-fno-gpu-rdc", "-c", "a.hip"}).rdc);
  EXPECT_FALSE(parse({"-flto", "-fno-lto", "-c", "a.c"}).lto);
}

TEST(Arguments, dependency_files_are_found_in_each_spelling) {
  EXPECT_EQ(parse({"-MD", "-c", "a.c", "-o", "o/a.o"}).dependency_file, "o/a.d");
  EXPECT_EQ(parse({"-MD", "-c", "s/a.c"}).dependency_file, "a.d");
  EXPECT_EQ(parse({"-MD", "-MF", "x.d", "-c", "a.c"}).dependency_file, "x.d");
  EXPECT_EQ(parse({"-Wp,-MMD,x.d", "-c", "a.c"}).dependency_file, "x.d");
  EXPECT_FALSE(parse({"-MD", "-c", "a.c"}).user_headers_only);
  EXPECT_TRUE(parse({"-MMD", "-c", "a.c"}).user_headers_only);
  EXPECT_TRUE(parse({"-Wp,-MMD,x.d", "-c", "a.c"}).user_headers_only);
  EXPECT_EQ(parse({"-MF", "x.d", "-c", "a.c"}).writes_dependencies, false);
}

TEST(Arguments, nvcc_takes_values_where_others_have_flags) {
  const CommandLine line = parse({"-arch", "sm_70", "-ccbin", "g++", "-gencode", "arch=compute_70,code=sm_70", "-std",
                                  "c++17", "-dc", "k.cu", "-o", "k.o"},
                                 "nvcc");
  ASSERT_EQ(line.sources.size(), 1U);
  EXPECT_EQ(line.sources[0].language, "cuda");
  EXPECT_EQ(line.action, Action::compile);
  EXPECT_TRUE(line.rdc);
  EXPECT_THAT(line.device_targets, ElementsAre("sm_70"));
}

TEST(Arguments, families_are_known_by_name) {
  EXPECT_EQ(compiler_family("/usr/bin/clang++-15"), "clang");
  EXPECT_EQ(compiler_family("/opt/rocm/llvm/bin/amdclang++"), "clang");
  EXPECT_EQ(compiler_family("x86_64-linux-gnu-g++-12"), "gcc");
  EXPECT_EQ(compiler_family("gcc"), "gcc");
  EXPECT_EQ(compiler_family("/opt/rocm/bin/hipcc"), "hipcc");
  EXPECT_EQ(compiler_family("nvcc"), "nvcc");
  EXPECT_EQ(compiler_family("c++"), "unknown");
  EXPECT_EQ(compiler_family("clang-format"), "unknown");
}

TEST(Arguments, odd_ends_do_no_harm) {
  EXPECT_EQ(parse_arguments({}, "clang").action, Action::query);
  for (const char* last :
       {"-o", "-x", "-I", "-MF", "-Xclang", "-", "--", "-Wp,", "-Xpreprocessor", "--offload-arch="}) {
    EXPECT_NO_THROW(parse({"-c", "a.c", last})) << last;
  }
}

}  // namespace
}  // namespace kerncap::compdb
