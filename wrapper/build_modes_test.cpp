// Compiles that depend on the results of other compiles, and modes of whole builds: modules, precompiled headers, LTO,
// unity builds, relocatable device code; and rows of the matrix that need a driver with a certain option.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wrapper/build_for_test.h"

namespace kerncap::wrapper {
namespace {

using compdb::Job;
using compdb::Record;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

class BuildMode : public ::testing::Test {
 protected:
  std::string in_tree(const std::string& name) const { return (tree.path() / name).string(); }
  Record unit_of(const std::string& output) const {
    for (const Record& unit : tree.units()) {
      if (unit.output == in_tree(output)) return unit;
    }
    ADD_FAILURE() << "no unit for " << output;
    return {};
  }
  // What each command leaves behind with and without kerncap-cc.
  void expect_same(const std::vector<Words>& commands, const Words& outputs) const {
    std::map<std::string, std::string> plain;
    for (const Words& command : commands) {
      const support::ProcessResult result = tree.run(command);
      ASSERT_EQ(result.exit_status, 0) << support::shell_quoted(command) << "\n" << result.standard_error;
    }
    for (const std::string& output : outputs) {
      plain[output] = tree.read(output);
      std::filesystem::remove(tree.path() / output);
    }
    for (const Words& command : commands) tree.compile(command);
    for (const std::string& output : outputs) EXPECT_TRUE(plain[output] == tree.read(output)) << output;
  }
  BuildTree tree;
};

class ClangModules : public BuildMode, public ::testing::WithParamInterface<const char*> {};

TEST_P(ClangModules, importers_lead_to_the_interfaces_they_were_built_with) {
  KERNCAP_NEEDS(GetParam());
  const std::string clang = GetParam();
  tree.write("m.cppm", "export module m;\nexport int answer() { return 42; }\n");
  tree.write("use.cpp", "import m;\nint main() { return answer() - 42; }\n");
  const std::string by_name = clang == "clang++-15" ? "-fmodule-file=m.pcm" : "-fmodule-file=m=m.pcm";
  expect_same({{clang, "-std=c++20", "--precompile", "m.cppm", "-o", "m.pcm"},
               {clang, "-std=c++20", "-c", "m.pcm", "-o", "m.o"},
               {clang, "-std=c++20", by_name, "-c", "use.cpp", "-o", "use.o"},
               {clang, "-std=c++20", "-fprebuilt-module-path=.", "-c", "use.cpp", "-o", "found.o"},
               {clang, "use.o", "m.o", "-o", "app"}},
              {"m.o", "use.o", "found.o", "app"});
  EXPECT_EQ(tree.run({in_tree("app")}).exit_status, 0);
  EXPECT_THAT(tree.units(), SizeIs(4));
  EXPECT_EQ(unit_of("m.pcm").source, "m.cppm");
  EXPECT_EQ(unit_of("m.o").language, "pcm");
  EXPECT_THAT(unit_of("use.o").inputs, ElementsAre(in_tree("m.pcm")));
  EXPECT_THAT(unit_of("found.o").inputs, ElementsAre(tree.path().string()));
  const auto interface = tree.database().find_output(unit_of("use.o").inputs.front());
  ASSERT_THAT(interface, SizeIs(1));
  EXPECT_EQ(interface[0].record.source, "m.cppm");
  EXPECT_EQ(tree.links().at(0).inputs, (Words{in_tree("use.o"), in_tree("m.o")}));
}
INSTANTIATE_TEST_SUITE_P(Compilers, ClangModules, ::testing::Values("clang++-15", "clang++-19"),
                         [](const auto& parameter) { return "clang" + std::string(parameter.param).substr(8); });

TEST_F(BuildMode, modules_of_gcc_are_known_from_the_depfile) {
  KERNCAP_NEEDS("g++");
  tree.write("m.cpp", "export module m;\nexport int answer() { return 42; }\n");
  tree.write("use.cpp", "import m;\nint main() { return answer() - 42; }\n");
  expect_same({{"g++", "-std=c++20", "-fmodules-ts", "-MD", "-c", "m.cpp"},
               {"g++", "-std=c++20", "-fmodules-ts", "-MD", "-c", "use.cpp"},
               {"g++", "use.o", "m.o", "-o", "app"}},
              {"m.o", "use.o", "app"});
  EXPECT_EQ(tree.run({in_tree("app")}).exit_status, 0);
  EXPECT_THAT(unit_of("use.o").inputs, ElementsAre(in_tree("gcm.cache/m.gcm")));
  EXPECT_THAT(unit_of("m.o").inputs, IsEmpty());
}

TEST_F(BuildMode, users_of_a_precompiled_header_lead_to_it) {
  tree.write("p.h", "#define P 1\n");
  tree.write("p.c", "int p = P;\n");
  for (const char* clang : {"clang-15", "clang-19"}) {
    KERNCAP_NEEDS(clang);
    tree.compile({clang, "-x", "c-header", "p.h", "-o", "p.pch"});
    tree.compile({clang, "-include-pch", "p.pch", "-c", "p.c"});
    EXPECT_THAT(unit_of("p.o").inputs, ElementsAre(in_tree("p.pch")));
    EXPECT_EQ(tree.database().find_output(in_tree("p.pch")).at(0).record.source, "p.h");
  }
  tree.compile({"gcc", "-x", "c-header", "p.h"});
  tree.compile({"gcc", "-include", "p.h", "-c", "p.c"});
  EXPECT_THAT(unit_of("p.o").inputs, ElementsAre(in_tree("p.h.gch")));
  EXPECT_EQ(tree.database().find_output(in_tree("p.h.gch")).at(0).record.source, "p.h");
}

TEST_F(BuildMode, thin_lto_in_the_link_and_distributed) {
  KERNCAP_NEEDS("clang-15");
  KERNCAP_NEEDS("ld.lld-15");  // by its path: what plain "lld" leads to may be older than the compiler
  const std::string linker = "--ld-path=" + support::find_program("ld.lld-15")->string();
  tree.write("part.c", "int part(void) { return 5; }\n");
  tree.write("whole.c", "int part(void);\nint main(void) { return part() - 5; }\n");
  const Words index = {"clang-15", "-flto=thin", linker, "-Wl,--plugin-opt=thinlto-index-only",
                       "whole.o",  "part.o",     "-o",   "index-only"};
  expect_same(
      {{"clang-15", "-O2", "-flto=thin", "-c", "part.c"},
       {"clang-15", "-O2", "-flto=thin", "-c", "whole.c"},
       {"clang-15", "-O2", "-flto=thin", linker, "whole.o", "part.o", "-o", "app"},
       index,
       {"clang-15", "-O2", "-x", "ir", "whole.o", "-fthinlto-index=whole.o.thinlto.bc", "-c", "-o", "whole.native.o"}},
      {"part.o", "whole.o", "app", "whole.native.o"});
  EXPECT_EQ(tree.run({in_tree("app")}).exit_status, 0);
  EXPECT_TRUE(unit_of("part.o").lto);
  EXPECT_EQ(tree.links().at(0).inputs, (Words{in_tree("whole.o"), in_tree("part.o")}));
  EXPECT_TRUE(tree.links().at(0).lto);
  const Record native = unit_of("whole.native.o");
  EXPECT_EQ(native.source, "whole.o");
  EXPECT_THAT(native.inputs, ElementsAre(in_tree("whole.o.thinlto.bc")));
}

TEST_F(BuildMode, a_source_inside_a_unity_unit_is_found) {
  KERNCAP_NEEDS("cmake");
  tree.write("CMakeLists.txt",
             "cmake_minimum_required(VERSION 3.25)\nproject(p C)\nadd_library(l OBJECT one.c two.c)\n"
             "set_target_properties(l PROPERTIES UNITY_BUILD ON)\n");
  tree.write("one.c", "#include \"c.h\"\nint one(void) { return SIX; }\n");
  tree.write("two.c", "int two(void) { return 2; }\n");
  ASSERT_EQ(tree.run({"cmake", "-S", ".", "-B", "out", "-G", "Ninja", "-DCMAKE_C_COMPILER=gcc",
                      "-DCMAKE_C_COMPILER_LAUNCHER=" + program})
                .exit_status,
            0);
  ASSERT_EQ(tree.run({"cmake", "--build", "out"}).exit_status, 0);
  const Record unit = [&] {
    for (const Record& candidate : tree.units()) {
      if (!candidate.configure_check) return candidate;
    }
    return Record();
  }();
  EXPECT_THAT(unit.source, HasSubstr("unity_0"));
  EXPECT_THAT(own_files(unit, "host"), IsSupersetOf({"one.c", "two.c", "c.h"}));
  for (const char* name : {"one.c", "two.c", "c.h"})
    EXPECT_THAT(tree.database().find_header(tree.path() / name), SizeIs(1)) << name;
}

// --- offload modes
const Words lean = {"-nogpuinc", "-nogpulib"};
Words clang_19(const Words& arguments) {
  Words command = {"clang++-19", "-x", "hip", "--rocm-path=/usr", "-mcode-object-version=4"};
  command.insert(command.end(), lean.begin(), lean.end());
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

class RdcLink : public BuildMode, public ::testing::WithParamInterface<const char*> {};

TEST_P(RdcLink, a_device_link_is_part_of_the_link_and_its_objects_are_its_inputs) {
  KERNCAP_NEEDS("clang++-19");
  KERNCAP_NEEDS("ld.lld-19");
  const std::string driver = GetParam();
  Words objects;
  for (const char* name : {"a", "b", "main"}) {
    objects.push_back(std::string(name) + ".o");
    tree.compile(clang_19(
        {driver, "--offload-arch=gfx90a", "-fgpu-rdc", "-c", name + std::string(".hip"), "-o", objects.back()}));
  }
  Words link = {"clang++-19", driver, "--offload-arch=gfx90a",       "-fgpu-rdc", "--hip-link", "--rocm-path=/usr",
                "-o",         "app",  "-L/usr/lib/x86_64-linux-gnu", "-lamdhip64"};
  link.insert(link.end(), objects.begin(), objects.end());
  ASSERT_EQ(tree.run(link).exit_status, 0);
  const std::string plain = tree.read("app");
  tree.compile(link);
  EXPECT_TRUE(plain == tree.read("app"));
  EXPECT_THAT(tree.units(), SizeIs(3));  // what the link assembles and wraps on its way is no unit
  const Record record = tree.links().at(0);
  EXPECT_TRUE(record.rdc);
  EXPECT_EQ(record.new_driver, driver == "--offload-new-driver");
  EXPECT_EQ(record.inputs, (Words{in_tree("a.o"), in_tree("b.o"), in_tree("main.o")}));
  EXPECT_GE(jobs_of(record, Job::Tool::linker), driver == "--offload-new-driver" ? 1U : 2U);
  for (const Record& unit : tree.units()) EXPECT_TRUE(unit.rdc);
}
INSTANTIATE_TEST_SUITE_P(Drivers, RdcLink, ::testing::Values("--no-offload-new-driver", "--offload-new-driver"),
                         [](const auto& parameter) {
                           return std::string(parameter.param).starts_with("--no") ? "old" : "new";
                         });

TEST_F(BuildMode, generic_targets_are_targets_of_their_own) {
  KERNCAP_NEEDS("clang++-19");
  tree.compile({"clang++-19", "-x", "hip", "--rocm-path=/usr", "-nogpuinc", "-nogpulib", "-mcode-object-version=6",
                "--offload-arch=gfx9-generic", "--offload-arch=gfx90a", "-c", "b.hip"});
  EXPECT_THAT(targets_of_passes(tree.unit()), ElementsAre("gfx9-generic", "gfx90a", "host"));
}

TEST_F(BuildMode, native_is_recorded_as_the_processor_that_it_meant) {
  KERNCAP_NEEDS("clang++-19");
  tree.write("which-gpu", "#!/bin/sh\necho gfx1030\n");
  std::filesystem::permissions(tree.path() / "which-gpu", std::filesystem::perms::owner_all);
  tree.compile(clang_19({"--offload-arch=native", "--amdgpu-arch-tool=" + in_tree("which-gpu"), "-c", "b.hip"}));
  EXPECT_THAT(tree.unit().device_targets, ElementsAre("gfx1030"));
  EXPECT_THAT(tree.unit().argv, Contains("--offload-arch=native"));
}

TEST_F(BuildMode, the_older_name_of_the_architecture_option_and_options_for_one_architecture) {
  KERNCAP_NEEDS("hipcc");
  tree.compile({"hipcc", "-nogpuinc", "-nogpulib", "--cuda-gpu-arch=gfx90a", "--cuda-gpu-arch=gfx1030", "-Xarch_gfx90a",
                "-DONLY_90A", "-c", "b.hip"});
  const Record unit = tree.unit();
  EXPECT_THAT(targets_of_passes(unit), ElementsAre("gfx1030", "gfx90a", "host"));
  for (const Job& job : unit.jobs) {
    if (job.tool != Job::Tool::cc1) continue;
    const std::string all = support::shell_quoted(job.argv);
    EXPECT_EQ(all.find("ONLY_90A") != std::string::npos, job.target == "gfx90a") << job.target;
  }
}

TEST_F(BuildMode, preprocessing_device_code_leaves_no_record) {
  KERNCAP_NEEDS("hipcc");
  for (const char* action : {"-E", "-M", "-MM"}) {
    Words command = {"hipcc", "-nogpuinc", "-nogpulib", "--offload-arch=gfx90a", "--cuda-device-only", action, "b.hip"};
    const support::ProcessResult plain = tree.run(command);
    command.insert(command.begin(), program);
    EXPECT_EQ(tree.run(command).standard_output, plain.standard_output);
  }
  EXPECT_THAT(tree.database().records(), IsEmpty());
}

// The drivers of ROCm from 5.5 on run the passes of a unit side by side and mix what they print; no driver here can.
TEST_F(BuildMode, headers_of_passes_that_ran_side_by_side_belong_to_each_of_them) {
  const std::string job = R"( "clang" "-cc1" "-triple" "TRIPLE" "-o" "b.o" "-x" "hip" "b.hip")";
  std::string log;
  for (const char* triple : {R"(amdgcn-amd-amdhsa" "-target-cpu" "gfx90a)", "x86_64-pc-linux-gnu"}) {
    std::string line = job;
    line.replace(line.find("TRIPLE"), 6, triple);
    log += "printf '[Logging clang options]\\n" + line + "\\n' >> \"$CC_PRINT_OPTIONS_FILE\"\n";
  }
  tree.write("clang-driver/clang++", "#!/bin/sh\n" + log + "echo mini_hip.h >> \"$CC_PRINT_HEADERS_FILE\"\n: > b.o\n");
  std::filesystem::permissions(tree.path() / "clang-driver/clang++", std::filesystem::perms::owner_all);
  tree.compile({"clang-driver/clang++", "-parallel-jobs=2", "-c", "b.hip"});
  const Record unit = tree.unit();
  EXPECT_THAT(targets_of_passes(unit), ElementsAre("gfx90a", "host"));
  EXPECT_THAT(own_files(unit, "gfx90a"), ElementsAre("b.hip", "mini_hip.h"));
  EXPECT_THAT(own_files(unit, "host"), ElementsAre("b.hip", "mini_hip.h"));
}

// --- spellings
class Spelling : public BuildMode, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { KERNCAP_NEEDS(GetParam()); }
};

TEST_P(Spelling, include_options_keep_theirs_and_the_files_are_resolved_beside_it) {
  for (const char* name : {"i", "q", "s", "after"})
    tree.write(std::string("inc_") + name + "/" + name + ".h", "#define FROM_" + std::string(name) + " 1\n");
  tree.write("forced.h", "#define FORCED 1\n");
  tree.write("macros.h", "#define MACROS 1\n");
  tree.write("all.c",
             "#include <i.h>\n#include \"q.h\"\n#include <s.h>\n#include <after.h>\n"
             "int all = FROM_i + FROM_q + FROM_s + FROM_after + FORCED + MACROS;\n");
  const Words separate = {"-I", "inc_i", "-iquote", "inc_q", "-isystem", "inc_s", "-idirafter", "inc_after"};
  const Words joined = {"-Iinc_i", "-iquoteinc_q", "-isystem./inc_s/../inc_s", "-idirafterinc_after"};
  for (const Words& options : {separate, joined}) {
    Words command = {GetParam(), "-MD", "-include", "forced.h", "-imacros", "macros.h", "-c", "all.c"};
    command.insert(command.end(), options.begin(), options.end());
    tree.compile(command);
    const Record unit = tree.unit();
    EXPECT_EQ(unit.argv, command);
    std::map<std::string, std::string> read;  // resolved path -> spelling
    for (const compdb::SourceFile& file : unit.files) read[file.path] = file.spelling;
    for (const char* name : {"i", "q", "s", "after"}) {
      const std::string path = in_tree(std::string("inc_") + name + "/" + name + ".h");
      ASSERT_TRUE(read.contains(path)) << path;
      EXPECT_FALSE(read[path].starts_with('/')) << "made absolute: " << read[path];
    }
    EXPECT_TRUE(read.contains(in_tree("forced.h")));
    EXPECT_TRUE(read.contains(in_tree("macros.h")));
  }
}

TEST_P(Spelling, a_response_file_that_is_missing_stays_an_argument) {
  const support::ProcessResult plain = tree.run({GetParam(), "-c", "c.c", "@missing"});
  const support::ProcessResult wrapped = tree.run({program, GetParam(), "-c", "c.c", "@missing"});
  EXPECT_NE(plain.exit_status, 0);
  EXPECT_EQ(wrapped.exit_status, plain.exit_status);
  EXPECT_EQ(wrapped.standard_error, plain.standard_error);
  ASSERT_THAT(tree.units(), Not(IsEmpty()));
  EXPECT_THAT(tree.units()[0].expanded_argv, Contains("@missing"));
}
INSTANTIATE_TEST_SUITE_P(Compilers, Spelling, ::testing::Values("gcc", "clang-15", "clang-19"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace kerncap::wrapper
