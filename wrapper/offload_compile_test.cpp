// HIP compiles through kerncap-cc with the real compilers: jobs, passes, headers and targets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wrapper/build_for_test.h"

namespace kerncap::wrapper {
namespace {

using compdb::Job;
using compdb::Record;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

struct Driver {
  const char* name;
  Words command;
};
void PrintTo(const Driver& driver, std::ostream* stream) { *stream << driver.name; }

// The small header replaces HIP's, and nothing is called that lives in the device libraries.
const Words lean = {"-nogpuinc", "-nogpulib"};

// Without hipcc the driver has to be told where Debian keeps ROCm.
const char* const device_libraries = "--rocm-device-lib-path=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";
Words clang_15() { return {"clang++-15", "-x", "hip", "--rocm-path=/usr", device_libraries}; }
// The device libraries of ROCm 5.2 know the older code object version only.
Words clang_19() {
  return {"clang++-19", "-x", "hip", "--rocm-path=/usr", device_libraries, "-mcode-object-version=4"};
}
Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

class OffloadCompile : public ::testing::TestWithParam<Driver> {
 protected:
  void SetUp() override { KERNCAP_NEEDS(GetParam().command.front()); }
  Words hip(const Words& arguments) const { return GetParam().command + lean + arguments; }
  BuildTree tree;
};

TEST_P(OffloadCompile, two_architectures_are_one_unit_with_three_passes) {
  tree.compile(hip({"--offload-arch=gfx90a", "--offload-arch=gfx1030", "-c", "a.hip", "-o", "a.o"}));
  const Record unit = tree.unit();
  EXPECT_EQ(unit.language, "hip");
  EXPECT_EQ(unit.source, "a.hip");
  EXPECT_EQ(unit.output, (tree.path() / "a.o").string());
  EXPECT_THAT(targets_of_passes(unit), ElementsAre("gfx1030", "gfx90a", "host"));
  EXPECT_THAT(unit.device_targets, UnorderedElementsAre("gfx90a", "gfx1030"));
  EXPECT_EQ(jobs_of(unit, Job::Tool::cc1), 3U);
  EXPECT_EQ(jobs_of(unit, Job::Tool::linker), 2U);
  EXPECT_GE(jobs_of(unit, Job::Tool::bundler), 1U);
}

TEST_P(OffloadCompile, a_unit_with_the_real_headers_and_device_libraries_leads_from_kernel_to_record) {
  tree.compile(GetParam().command + Words{"--offload-arch=gfx90a", "-O2", "-c", "real.hip"});
  const Record unit = tree.unit();
  EXPECT_THAT(own_files(unit, "gfx90a"), ElementsAre("real.hip"));
  EXPECT_GT(unit.files.size(), 100U);
  EXPECT_THAT(tree.database().find_kernel("_Z8kernel_rPi"), SizeIs(1));
  EXPECT_THAT(tree.database().find_header("/usr/include/hip/hip_runtime.h"), SizeIs(1));
  EXPECT_LT(tree.database().statistics().bytes, 16U << 10);
}

TEST_P(OffloadCompile, headers_are_told_apart_by_pass) {
  tree.compile(hip({"--offload-arch=gfx90a", "-c", "a.hip"}));
  const Record unit = tree.unit();
  EXPECT_THAT(own_files(unit, "gfx90a"), ElementsAre("a.hip", "device_only.h", "k.h", "mini_hip.h"));
  EXPECT_THAT(own_files(unit, "host"), ElementsAre("a.hip", "host_only.h", "k.h", "mini_hip.h"));
  for (const compdb::SourceFile& file : unit.files) EXPECT_NE(file.hash == 0, !file.system) << file.path;
}

TEST_P(OffloadCompile, user_headers_of_all_passes_are_known_with_mmd_and_the_depfile_is_untouched) {
  ASSERT_EQ(tree.run(hip({"--offload-arch=gfx90a", "-MMD", "-MF", "plain.d", "-c", "a.hip"})).exit_status, 0);
  tree.compile(hip({"--offload-arch=gfx90a", "-MMD", "-MF", "recorded.d", "-c", "a.hip"}));
  EXPECT_EQ(tree.read("recorded.d"), tree.read("plain.d"));
  EXPECT_THAT(own_files(tree.unit(), "gfx90a"), ElementsAre("a.hip", "device_only.h", "k.h", "mini_hip.h"));
}

TEST_P(OffloadCompile, the_object_is_the_same_byte_for_byte) {
  for (const Words& extra :
       {Words{}, Words{"-O3", "-g"}, Words{"-MD", "-MF", "x.d"}, Words{"-fgpu-rdc"}, Words{"-save-temps=obj"}}) {
    Words command = hip({"--offload-arch=gfx90a", "--offload-arch=gfx1030", "-c", "a.hip", "-o", "same.o"});
    command.insert(command.end(), extra.begin(), extra.end());
    ASSERT_EQ(tree.run(command).exit_status, 0);
    const std::string plain = tree.read("same.o");
    tree.compile(command);
    EXPECT_EQ(plain, tree.read("same.o")) << support::shell_quoted(command);
  }
}

TEST_P(OffloadCompile, the_jobs_are_those_of_the_drivers_own_dry_run) {
  const Words command = hip({"--offload-arch=gfx90a", "-O2", "-MD", "-MF", "x.d", "-c", "a.hip", "-o", "a.o"});
  tree.compile(command);
  Record unit = tree.unit();
  Record dry = unit;
  dry.jobs.clear();
  std::string reason;
  ASSERT_TRUE(compdb::recover_jobs(dry, &reason)) << reason;
  ASSERT_EQ(dry.jobs.size(), unit.jobs.size());
  for (std::size_t i = 0; i < unit.jobs.size(); ++i) {
    ASSERT_EQ(dry.jobs[i].argv.size(), unit.jobs[i].argv.size());
    for (std::size_t k = 0; k < unit.jobs[i].argv.size(); ++k) {
      const std::string &recorded = unit.jobs[i].argv[k], &expected = dry.jobs[i].argv[k];
      // Temporary files have other names each time, and the number of the unit depends on every option, "-###" too.
      if (recorded.find("/tmp/") == std::string::npos && !recorded.starts_with("-cuid=")) {
        EXPECT_EQ(recorded, expected);
      }
    }
  }
  EXPECT_EQ(targets_of_passes(dry), targets_of_passes(unit));
  EXPECT_EQ(own_files(dry, "gfx90a"), own_files(unit, "gfx90a"));
}

TEST_P(OffloadCompile, several_sources_in_one_command_are_several_units) {
  tree.compile(hip({"--offload-arch=gfx90a", "-c", "a.hip", "b.hip"}));
  const std::vector<Record> units = tree.units();
  ASSERT_THAT(units, SizeIs(2));
  EXPECT_EQ(units[0].output, (tree.path() / "a.o").string());
  EXPECT_EQ(units[1].output, (tree.path() / "b.o").string());
  for (const Record& unit : units) EXPECT_EQ(unit.passes.size(), 2U);
  EXPECT_THAT(tree.database().find_kernel("_Z8kernel_bPf"), SizeIs(1));
}

TEST_P(OffloadCompile, compiling_and_linking_in_one_command_gives_units_and_a_link) {
  tree.compile(hip({"--offload-arch=gfx90a", "a.hip", "b.hip", "main.hip", "-o", "app", "-L/usr/lib/x86_64-linux-gnu",
                    "-lamdhip64"}));
  EXPECT_THAT(tree.units(), SizeIs(3));
  EXPECT_THAT(tree.links(), SizeIs(1));
  const compdb::Database database = tree.database();
  const auto a = database.find_kernel("_Z8kernel_aPi");
  ASSERT_FALSE(a.empty());
  EXPECT_EQ(a.front().record.source, "a.hip");
  // main.hip has no kernel and leaves no code object behind: it is a candidate for neither first place.
  for (const auto& match : a) EXPECT_NE(match.record.source, "main.hip");
}

TEST_P(OffloadCompile, device_only_and_host_only_compiles_have_their_passes) {
  tree.compile(hip({"--offload-arch=gfx90a", "--cuda-device-only", "-c", "a.hip", "-o", "dev.o"}));
  tree.compile(hip({"--offload-arch=gfx90a", "--cuda-host-only", "-c", "a.hip", "-o", "host.o"}));
  const std::vector<Record> units = tree.units();
  ASSERT_THAT(units, SizeIs(2));
  EXPECT_THAT(targets_of_passes(units[0]), ElementsAre("gfx90a"));
  EXPECT_THAT(targets_of_passes(units[1]), ElementsAre("host"));
}

TEST_P(OffloadCompile, a_syntax_check_is_a_unit_without_an_output) {
  tree.compile(hip({"--offload-arch=gfx90a", "-fsyntax-only", "a.hip"}));
  const Record unit = tree.unit();
  EXPECT_EQ(unit.output, "");
  EXPECT_THAT(targets_of_passes(unit), ElementsAre("gfx90a", "host"));
}

TEST_P(OffloadCompile, a_source_from_standard_input_is_marked_as_not_replayable) {
  Words command = GetParam().command + lean;
  if (std::ranges::find(command, "-x") == command.end()) command.insert(command.end(), {"-x", "hip"});
  command.insert(command.end(), {"--offload-arch=gfx90a", "-c", "-", "-o", "stdin.o"});
  tree.compile(command, {}, tree.read("b.hip"));
  const Record unit = tree.unit();
  EXPECT_EQ(unit.source, "-");
  EXPECT_FALSE(unit.replayable);
  EXPECT_FALSE(unit.not_replayable_reason.empty());
}

TEST_P(OffloadCompile, target_features_are_part_of_the_target) {
  tree.compile(hip({"--offload-arch=gfx90a:xnack+", "--offload-arch=gfx90a:xnack-", "-c", "b.hip"}));
  EXPECT_THAT(tree.unit().device_targets, UnorderedElementsAre("gfx90a:xnack+", "gfx90a:xnack-"));
  const auto matches = tree.database().find_kernel("_Z8kernel_bPf");
  ASSERT_THAT(matches, SizeIs(2));
  EXPECT_NE(matches[0].target, matches[1].target);
  for (const auto& match : matches) EXPECT_THAT(match.record.device_targets, Contains(match.target));
}

TEST_P(OffloadCompile, lists_repetitions_and_removals_of_architectures_are_resolved) {
  tree.compile(
      hip({"--offload-arch=gfx90a,gfx1030", "--offload-arch=gfx90a", "--no-offload-arch=gfx1030", "-c", "b.hip"}));
  EXPECT_THAT(tree.unit().device_targets, ElementsAre("gfx90a"));
}

TEST_P(OffloadCompile, options_in_pairs_stay_with_their_pass) {
  tree.compile(hip({"--offload-arch=gfx90a", "-Xarch_device", "-DONLY_DEVICE", "-Xclang", "-fno-threadsafe-statics",
                    "-mllvm", "-amdgpu-dump-hsa-metadata=0", "-c", "b.hip"}));
  const Record unit = tree.unit();
  EXPECT_THAT(unit.argv, Contains("-Xarch_device"));
  for (const Job& job : unit.jobs) {
    if (job.tool != Job::Tool::cc1) continue;
    const bool defined = std::ranges::find(job.argv, "ONLY_DEVICE") != job.argv.end() ||
                         std::ranges::find(job.argv, "-DONLY_DEVICE") != job.argv.end();
    EXPECT_EQ(defined, job.target == "gfx90a");
    EXPECT_THAT(job.argv, Contains("-fno-threadsafe-statics"));
  }
}

TEST_P(OffloadCompile, intermediate_files_that_are_kept_change_neither_units_nor_passes) {
  tree.compile(hip({"--offload-arch=gfx90a", "-save-temps=obj", "-c", "a.hip", "-o", "a.o"}));
  const Record unit = tree.unit();
  EXPECT_EQ(unit.source, "a.hip");
  EXPECT_EQ(unit.output, (tree.path() / "a.o").string());
  EXPECT_THAT(targets_of_passes(unit), ElementsAre("gfx90a", "host"));
  EXPECT_THAT(own_files(unit, "gfx90a"), ElementsAre("a.hip", "device_only.h", "k.h", "mini_hip.h"));
}

TEST_P(OffloadCompile, relocatable_device_code_is_found_by_its_cuid) {
  tree.compile(hip({"--offload-arch=gfx90a", "-fgpu-rdc", "-c", "a.hip", "-o", "a.o"}));
  const Record unit = tree.unit();
  EXPECT_TRUE(unit.rdc);
  std::string cuid;
  for (const Job& job : unit.jobs) {
    for (const std::string& argument : job.argv) {
      if (argument.starts_with("-cuid=")) cuid = argument.substr(6);
    }
  }
  ASSERT_FALSE(cuid.empty());
  EXPECT_THAT(tree.database().find_cuid(cuid), SizeIs(1));
  EXPECT_THAT(tree.database().find_cuid("0123456789abcdef"), IsEmpty());
}

TEST_P(OffloadCompile, an_object_leads_from_digest_to_record_and_a_rebuilt_one_is_stale) {
  tree.compile(hip({"--offload-arch=gfx90a", "-c", "b.hip", "-o", "b.o"}));
  const auto before = tree.database().find_kernel("_Z8kernel_bPf.kd");
  ASSERT_THAT(before, SizeIs(1));
  EXPECT_FALSE(before[0].stale);
  EXPECT_EQ(before[0].digest.size(), 64U);
  EXPECT_THAT(tree.database().find_code_object(before[0].digest), SizeIs(1));

  // Rebuilt without the wrapper, to something else: the digest that was indexed still leads to its record, as a stale
  // one.
  tree.write("b.hip", tree.read("b.hip") +
                          "__global__ void later(float* p) { p[1] = 1; }\nvoid l() { later<<<1, 1>>>(nullptr); }\n");
  ASSERT_EQ(tree.run(hip({"--offload-arch=gfx90a", "-c", "b.hip", "-o", "b.o"})).exit_status, 0);
  const auto after = tree.database().find_code_object(before[0].digest);
  ASSERT_THAT(after, SizeIs(1));
  EXPECT_TRUE(after[0].stale);
}

INSTANTIATE_TEST_SUITE_P(Drivers, OffloadCompile,
                         ::testing::Values(Driver{"hipcc", {"hipcc"}}, Driver{"clang15", clang_15()},
                                           Driver{"clang19", clang_19()}),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

// --- what only newer drivers have
class NewDriver : public ::testing::Test {
 protected:
  void SetUp() override { KERNCAP_NEEDS("clang++-19"); }
  BuildTree tree;
};

TEST_F(NewDriver, the_new_offload_driver_is_recognised_and_its_code_objects_found) {
  tree.compile(clang_19() + lean + Words{"--offload-new-driver", "--offload-arch=gfx90a", "-c", "a.hip"});
  const Record unit = tree.unit();
  EXPECT_TRUE(unit.new_driver);
  EXPECT_THAT(targets_of_passes(unit), ElementsAre("gfx90a", "host"));
  EXPECT_THAT(tree.database().find_kernel("_Z8kernel_aPi"), SizeIs(1));
}

TEST_F(NewDriver, compressed_bundles_are_looked_into) {
  tree.compile(clang_19() + lean + Words{"--offload-compress", "--offload-arch=gfx90a", "-c", "a.hip"});
  EXPECT_TRUE(tree.unit().compressed);
  EXPECT_THAT(tree.database().find_kernel("_Z8kernel_aPi"), SizeIs(1));
}

TEST_F(NewDriver, a_code_object_is_found_by_the_cuid_in_it) {
  tree.compile(clang_19() + lean + Words{"--offload-arch=gfx90a", "-c", "a.hip"});
  for (const Job& job : tree.unit().jobs) {
    for (const std::string& argument : job.argv) {
      if (argument.starts_with("-cuid=")) {
        EXPECT_THAT(tree.database().find_cuid(argument.substr(6)), SizeIs(1));
      }
    }
  }
}

}  // namespace
}  // namespace kerncap::wrapper
