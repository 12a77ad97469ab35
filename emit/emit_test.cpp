#include "emit/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/support/error.h"
#include "core/support/hash.h"
#include "emit/application_for_test.h"

namespace kerncap::emit {
namespace {

using testing::Application;
using testing::build_kernel;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr const char* header = R"(#pragma once
// Copyright of somebody else.
template <class T>
__host__ __device__ inline T times(T a, T b) {
  return a * b;
}
)";

constexpr const char* source = R"(#include <hip/hip_runtime.h>
#include "../include/times.h"
__constant__ float coefficients[8];
template <class T>
__global__ void scale(T* data, const T* factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = times(data[i], factor[0]) * coefficients[i % 8];
}
namespace {
__global__ void copy(const float* from, float* to) { to[threadIdx.x] = from[threadIdx.x]; }
}
void run(float* data, const float* factor, float* to) {
  scale<<<1, 64>>>(data, factor, 64);
  copy<<<1, 64>>>(data, to);
}
)";

class Emit : public ::testing::Test {
 protected:
  // Relative spellings, a source outside of the working directory, an absolute include folder: what build systems do.
  void compile_application(std::vector<std::string> more = {}) {
    application_.write("include/times.h", header);
    application_.write("src/scale.hip", source);
    std::vector<std::string> argv{KERNCAP_TEST_HIPCC_PATH,
                                  "--offload-arch=gfx90a",
                                  "--offload-arch=gfx1030",
                                  "-O2",
                                  "-c",
                                  "../src/scale.hip",
                                  "-o",
                                  "scale.o"};
    argv.insert(argv.end(), more.begin(), more.end());
    application_.compile(argv, "build");
  }

  Application application_;
};

TEST_F(Emit, MakesAProjectThatRebuildsTheCapturedCodeObject) {
  compile_application();
  const auto snapshot = application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>");
  const auto report = emit_project(application_.options(snapshot));
  EXPECT_FALSE(report.capture_only) << report.capture_only_reason;
  ASSERT_TRUE(report.rebuild.has_value());
  EXPECT_EQ(report.rebuild->outcome, RebuildOutcome::byte_identical) << report.rebuild->reason;
  EXPECT_EQ(report.rebuild->digest, report.code_object);
  EXPECT_TRUE(report.warnings.empty()) << report.warnings.front();
  EXPECT_THAT(report.files, Contains(Field(&BundledFile::project_path, "src/src/scale.hip")));
  EXPECT_THAT(report.files, Contains(Field(&BundledFile::project_path, "src/include/times.h")));
  EXPECT_EQ(support::read_text_file(report.project / "src/include/times.h"), header);
}

TEST_F(Emit, FindsTheDefinitionWithLinesParametersAndCallees) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.rebuild_check = false;
  const auto report = emit_project(options);
  ASSERT_TRUE(report.kernel.has_value()) << report.warnings.at(0);
  EXPECT_EQ(report.kernel->file, "src/src/scale.hip");
  EXPECT_EQ(report.kernel->first_line, 4u);
  EXPECT_EQ(report.kernel->last_line, 8u);
  EXPECT_THAT(report.kernel->template_arguments, ::testing::ElementsAre("float"));
  ASSERT_EQ(report.kernel->parameters.size(), 3u);
  EXPECT_EQ(report.kernel->parameters[0].name, "data");
  EXPECT_EQ(report.kernel->parameters[0].element, "f32");
  EXPECT_FALSE(report.kernel->parameters[0].is_const);
  EXPECT_TRUE(report.kernel->parameters[1].is_const);
  EXPECT_EQ(report.kernel->parameters[2].element, "i32");
  EXPECT_THAT(report.kernel->callees, Contains(Field(&Function::name, "times")));
  EXPECT_EQ(support::read_json_file(report.project / "kernel.json").at("parameters").size(), 3u);
}

TEST_F(Emit, GivesAProjectThatBuildsElsewhereWhenTheApplicationIsGone) {
  compile_application({"-g"});
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx1030", "copy"));
  options.rebuild_check = false;
  const auto report = emit_project(options);
  const support::TemporaryFolder elsewhere("kerncap elsewhere");  // a space in the path, too
  const auto moved = elsewhere.path() / "moved project";
  std::filesystem::rename(report.project, moved);
  std::filesystem::remove_all(application_.sources());
  EXPECT_EQ(build_kernel(moved), report.code_object);
}

TEST_F(Emit, RebuildsAfterAnEditOfSourceHeaderAndJob) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.rebuild_check = false;
  const auto report = emit_project(options);
  EXPECT_EQ(build_kernel(report.project), report.code_object);
  const auto edit = [&](const char* file, const std::string& from, const std::string& to) {
    std::string text = support::read_text_file(report.project / file);
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    support::write_file_atomically(report.project / file, text.replace(at, from.size(), to), 0644);
  };
  edit("src/include/times.h", "a * b", "a + b");
  const std::string after_header = build_kernel(report.project);
  EXPECT_EQ(after_header.size(), 64u) << after_header;
  EXPECT_NE(after_header, report.code_object);
  edit("src/include/times.h", "a + b", "a * b");
  EXPECT_EQ(build_kernel(report.project), report.code_object);
  edit("jobs/1-compile.args.in", "\"-O2\"", "\"-O1\"");
  EXPECT_NE(build_kernel(report.project), report.code_object);
}

TEST_F(Emit, SeesFilesThatAreAddedToTheProject) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.rebuild_check = false;
  const auto report = emit_project(options);
  std::filesystem::remove_all(application_.sources());
  support::write_file_atomically(report.project / "src/src/added.h", "__device__ inline int added() { return 1; }\n",
                                 0644);
  std::string text = support::read_text_file(report.project / "src/src/scale.hip");
  text = "#include \"added.h\"\n" + text;
  support::write_file_atomically(report.project / "src/src/scale.hip", text, 0644);
  EXPECT_EQ(build_kernel(report.project).size(), 64u);
}

TEST_F(Emit, IsCaptureOnlyWithAReasonWithoutADatabase) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.database.clear();
  const auto report = emit_project(options);
  EXPECT_TRUE(report.capture_only);
  EXPECT_THAT(report.capture_only_reason, HasSubstr("no compilation database"));
  EXPECT_TRUE(std::filesystem::exists(report.project / "snapshot/manifest.json"));
  EXPECT_FALSE(std::filesystem::exists(report.project / "src"));
}

TEST_F(Emit, IsCaptureOnlyWhenTheKernelWasCompiledAgainWithOtherCode) {
  compile_application();
  const auto snapshot = application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>");
  application_.write("include/times.h", std::string(header) + "// more\n");
  application_.write("src/scale.hip", std::string(source) + "__global__ void another(int* p) { *p = 1; }\n");
  application_.compile(
      {KERNCAP_TEST_HIPCC_PATH, "--offload-arch=gfx90a", "-O2", "-c", "../src/scale.hip", "-o", "scale.o"}, "build");
  const auto report = emit_project(application_.options(snapshot));
  EXPECT_TRUE(report.capture_only);
  EXPECT_THAT(report.capture_only_reason, HasSubstr("compiled again"));
}

TEST_F(Emit, NamesASourceThatIsGone) {
  compile_application();
  const auto snapshot = application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>");
  std::filesystem::remove(application_.sources() / "include/times.h");
  const auto report = emit_project(application_.options(snapshot));
  EXPECT_TRUE(report.capture_only);
  EXPECT_THAT(report.capture_only_reason, HasSubstr("times.h"));
}

TEST_F(Emit, SaysWhichSourceChangedWhenTheRebuildDiffers) {
  compile_application();
  const auto snapshot = application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>");
  std::string text = header;
  text.replace(text.find("a * b"), 5, "a - b");
  application_.write("include/times.h", text);
  const auto report = emit_project(application_.options(snapshot));
  ASSERT_TRUE(report.rebuild.has_value());
  EXPECT_EQ(report.rebuild->outcome, RebuildOutcome::differs);
  EXPECT_THAT(report.rebuild->reason, HasSubstr("times.h"));
  EXPECT_THAT(report.rebuild->reason, HasSubstr("changed"));
}

TEST_F(Emit, KeepsAnExistingOutputUnlessToldToReplaceIt) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.rebuild_check = options.find_kernel = false;
  std::filesystem::create_directories(options.output);
  support::write_file_atomically(options.output / "mine", "keep", 0644);
  try {
    emit_project(options);
    FAIL();
  } catch (const support::Error& error) {
    EXPECT_EQ(error.code(), support::ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("--force"));
  }
  EXPECT_TRUE(std::filesystem::exists(options.output / "mine"));
  options.replace = true;
  EXPECT_FALSE(emit_project(options).capture_only);
  EXPECT_FALSE(std::filesystem::exists(options.output / "mine"));
}

TEST_F(Emit, RefusesADispatchThatTheSnapshotDoesNotHave) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.dispatch = 4;
  EXPECT_THROW(emit_project(options), support::Error);
}

TEST_F(Emit, LinksTheSnapshotWhenAsked) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.placement = SnapshotPlacement::link;
  options.rebuild_check = options.find_kernel = false;
  const auto report = emit_project(options);
  EXPECT_TRUE(std::filesystem::is_symlink(report.project / "snapshot"));
  EXPECT_TRUE(std::filesystem::exists(report.project / "snapshot/manifest.json"));
}

TEST_F(Emit, TakesTheNewestOfSeveralCompilesOfOneSourceAndAsksForOthers) {
  compile_application();
  application_.compile({KERNCAP_TEST_HIPCC_PATH, "--offload-arch=gfx90a", "--offload-arch=gfx1030", "-O2", "-c",
                        "../src/scale.hip", "-o", "again.o"},
                       "build");
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.rebuild_check = options.find_kernel = false;
  const auto report = emit_project(options);
  EXPECT_THAT(report.translation_unit->output, HasSubstr("again.o"));
  ASSERT_EQ(report.other_candidates.size(), 1u);
  EXPECT_THAT(report.other_candidates[0].output, HasSubstr("scale.o"));

  application_.write("src/twin/scale.hip", source);
  application_.write("include/times.h", header);
  application_.write("src/include/times.h", header);
  application_.compile({KERNCAP_TEST_HIPCC_PATH, "--offload-arch=gfx90a", "--offload-arch=gfx1030", "-O2", "-c",
                        "../src/twin/scale.hip", "-o", "twin.o"},
                       "build");
  options.replace = true;
  try {
    emit_project(options);
    FAIL();
  } catch (const support::Error& error) {
    EXPECT_EQ(error.code(), support::ExitCode::answer_is_no);
    EXPECT_THAT(error.what(), HasSubstr("twin.o"));
  }
  options.object = application_.sources() / "build/scale.o";
  EXPECT_THAT(emit_project(options).translation_unit->output, HasSubstr("scale.o"));
}

// Ways of compiling that must not matter to the rebuild; the flags are those of the call.
struct Way {
  const char* name;
  std::vector<std::string> flags;
};

class EveryWayOfCompiling : public Emit, public ::testing::WithParamInterface<Way> {};

TEST_P(EveryWayOfCompiling, RebuildsByteIdentical) {
  application_.write("include/forced.h", "#define FORCED 1\n");
  application_.write("build/flags.rsp", "-DFROM_RESPONSE_FILE=\"a b\"\n");
  compile_application(GetParam().flags);
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.find_kernel = false;
  const auto report = emit_project(options);
  ASSERT_FALSE(report.capture_only) << report.capture_only_reason;
  EXPECT_EQ(report.rebuild->outcome, RebuildOutcome::byte_identical) << report.rebuild->reason;
  // Nothing may appear where the original build wrote its side files.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(report.project))
    EXPECT_NE(entry.path().extension(), ".d") << entry.path();
}

INSTANTIATE_TEST_SUITE_P(
    Flags, EveryWayOfCompiling,
    ::testing::Values(Way{"debug", {"-g", "-O0"}}, Way{"depfile", {"-MD", "-MT", "scale.o", "-MF", "scale.o.d"}},
                      Way{"user_depfile", {"-MMD", "-MF", "scale.d"}}, Way{"save_temps", {"-save-temps=obj"}},
                      Way{"time_trace", {"-ftime-trace"}}, Way{"forced_include", {"-include", "../include/forced.h"}},
                      Way{"response_file", {"@flags.rsp"}}, Way{"fast_math", {"-ffast-math"}},
                      Way{"absolute_include", {"-I/nonexistent", "-I../include", "-iquote", "../src"}},
                      Way{"odd_define", {"-DTEXT=\"a;b $c \\ 'd' @e@\""}},
                      Way{"per_arch", {"-Xarch_gfx90a", "-DARCH=1", "-mllvm", "-unroll-threshold=100"}},
                      Way{"remarks", {"-fsave-optimization-record", "-Rpass=inline"}},
                      Way{"working_directory", {"-fdebug-compilation-dir=.", "-fdebug-prefix-map=/tmp=/x", "-g"}}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST_F(Emit, FindsTheKernelOfAUnityBuildInItsOwnFile) {
  application_.write("include/times.h", header);
  application_.write("src/scale.hip", source);
  application_.write("src/unity.hip", "#include \"scale.hip\"\n__global__ void extra(int* p) { *p = 1; }\n");
  application_.compile({KERNCAP_TEST_HIPCC_PATH, "--offload-arch=gfx90a", "-c",
                        (application_.sources() / "src/unity.hip").string(), "-o", "unity.o"},
                       "build");
  const auto report =
      emit_project(application_.options(application_.snapshot_of("build/unity.o", "gfx90a", "scale<float>")));
  EXPECT_EQ(report.rebuild->outcome, RebuildOutcome::byte_identical) << report.rebuild->reason;
  ASSERT_TRUE(report.kernel.has_value());
  EXPECT_EQ(report.kernel->file, "src/src/scale.hip");
}

// Relocatable device code: the code object comes out of a link of several translation units. No HIP headers here,
// because the only pair of compiler and device linker that is sure to fit is the newer clang's own.
constexpr const char* rdc_common = R"(#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct dim3 { unsigned x, y, z; };
extern "C" int __hipPushCallConfiguration(dim3, dim3, unsigned long, void*);
extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);
__device__ float helper(float x);
)";

TEST_F(Emit, TakesFoldersAndFilesWithOddNames) {
  const std::string odd = "we;ird $dir [1] 'q' \\b";
  application_.write(odd + "/ti;mes.h", rdc_common);
  application_.write(
      odd + "/sc$ale;2.hip",
      "#include \"ti;mes.h\"\n__global__ void scale(float* p) { p[0] = 2; }\nvoid* use() { return (void*)&scale; }\n");
  application_.compile({KERNCAP_TEST_CLANG_15, "-x", "hip", "--offload-arch=gfx90a", "-nogpuinc", "-nogpulib", "-O2",
                        "-c", "sc$ale;2.hip", "-o", "../scale.o"},
                       odd);
  const auto report = emit_project(application_.options(application_.snapshot_of("scale.o", "gfx90a", "scale(")));
  ASSERT_FALSE(report.capture_only) << report.capture_only_reason;
  EXPECT_EQ(report.rebuild->outcome, RebuildOutcome::byte_identical) << report.rebuild->reason;
  ASSERT_TRUE(report.kernel.has_value());
  EXPECT_EQ(report.kernel->file, "src/sc_ale_2.hip");
}

class EmitRdc : public Emit {
 protected:
  void build_rdc(const std::vector<std::string>& more = {}) {
    if (std::string(KERNCAP_TEST_CLANG_19).empty()) GTEST_SKIP() << "clang 19 is not installed";
    application_.write("include/rdc.h", rdc_common);
    application_.write("src/kernel.hip",
                       "#include \"../include/rdc.h\"\n"
                       "__global__ void apply(float* p) { p[0] = helper(p[0]); }\n"
                       "static __global__ void only_here(float* p) { p[0] = 1; }\n"
                       "void* use() { return (void*)&only_here; }\n");
    application_.write("src/helper.hip",
                       "#include \"../include/rdc.h\"\n"
                       "__device__ float helper(float x) { return x * 3; }\n"
                       "static __global__ void only_here(float* p) { p[0] = 2; }\n"
                       "void* use_too() { return (void*)&only_here; }\n");
    for (const std::string name : {"kernel", "helper"}) {
      std::vector<std::string> compile{KERNCAP_TEST_CLANG_19,
                                       "-x",
                                       "hip",
                                       "--offload-arch=gfx90a",
                                       "-nogpuinc",
                                       "-nogpulib",
                                       "-fgpu-rdc",
                                       "-O2",
                                       "-fPIC",
                                       "-c",
                                       "../src/" + name + ".hip",
                                       "-o",
                                       name + ".o"};
      compile.insert(compile.end(), more.begin(), more.end());
      application_.compile(compile, "build");
    }
    std::vector<std::string> link{KERNCAP_TEST_CLANG_19,
                                  "--hip-link",
                                  "-fgpu-rdc",
                                  "--offload-arch=gfx90a",
                                  "-nogpulib",
                                  "-shared",
                                  "kernel.o",
                                  "helper.o",
                                  "-o",
                                  "libapp.so"};
    link.insert(link.end(), more.begin(), more.end());
    application_.compile(link, "build");
  }
};

TEST_F(EmitRdc, RebuildsADeviceLinkOfSeveralUnits) {
  build_rdc();
  if (IsSkipped()) return;
  const auto report =
      emit_project(application_.options(application_.snapshot_of("build/libapp.so", "gfx90a", "apply")));
  ASSERT_FALSE(report.capture_only) << report.capture_only_reason;
  EXPECT_EQ(report.rebuild->outcome, RebuildOutcome::byte_identical) << report.rebuild->reason;
  EXPECT_THAT(report.translation_unit->source, HasSubstr("kernel.hip"));
  EXPECT_EQ(report.files.size(), 3u);
  ASSERT_TRUE(report.kernel.has_value());
  EXPECT_EQ(report.kernel->file, "src/src/kernel.hip");
}

TEST_F(EmitRdc, CompilesOnlyTheEditedUnitAgain) {
  build_rdc();
  if (IsSkipped()) return;
  auto options = application_.options(application_.snapshot_of("build/libapp.so", "gfx90a", "apply"));
  options.rebuild_check = options.find_kernel = false;
  const auto report = emit_project(options);
  EXPECT_EQ(build_kernel(report.project), report.code_object);
  const auto helper = report.project / "build/2-helper-2-compile.bc";
  ASSERT_TRUE(std::filesystem::exists(report.project / "build/1-kernel-1-compile.bc"));
  ASSERT_TRUE(std::filesystem::exists(helper));
  const auto before = std::filesystem::last_write_time(helper);
  std::string text = support::read_text_file(report.project / "src/src/kernel.hip");
  text.replace(text.find("helper(p[0])"), 12, "helper(p[1])");
  support::write_file_atomically(report.project / "src/src/kernel.hip", text, 0644);
  EXPECT_NE(build_kernel(report.project), report.code_object);
  EXPECT_EQ(std::filesystem::last_write_time(helper), before);
}

TEST_F(EmitRdc, SaysThatTheNewDriverHidesItsDeviceLink) {
  build_rdc({"--offload-new-driver"});
  if (IsSkipped()) return;
  const auto report =
      emit_project(application_.options(application_.snapshot_of("build/libapp.so", "gfx90a", "apply")));
  EXPECT_TRUE(report.capture_only);
  EXPECT_THAT(report.capture_only_reason, HasSubstr("clang-linker-wrapper"));
}

TEST_F(EmitRdc, FindsAStaticKernelInTheUnitThatItCameFrom) {
  build_rdc();
  if (IsSkipped()) return;
  const auto code = application_.code_object("build/libapp.so", "gfx90a");
  int statics = 0;
  for (const auto& kernel : codeobject::parse_code_object(code, "libapp.so").kernels) {
    if (kernel.demangled.find("only_here") == std::string::npos) continue;
    ++statics;
    auto options = application_.options(application_.snapshot_of("build/libapp.so", "gfx90a", kernel.name));
    options.rebuild_check = false;
    options.replace = true;
    const auto report = emit_project(options);
    ASSERT_TRUE(report.kernel.has_value()) << report.warnings.at(0);
    EXPECT_EQ(report.kernel->file,
              report.translation_unit->source.ends_with("kernel.hip") ? "src/src/kernel.hip" : "src/src/helper.hip");
  }
  EXPECT_EQ(statics, 2);
}

class EveryContainerOfClang19 : public Emit, public ::testing::WithParamInterface<Way> {};

TEST_P(EveryContainerOfClang19, RebuildsByteIdentical) {
  if (std::string(KERNCAP_TEST_CLANG_19).empty()) GTEST_SKIP() << "clang 19 is not installed";
  application_.write("include/common.h", rdc_common);
  application_.write("scale.hip",
                     "#include \"include/common.h\"\n__global__ void scale(float* p) { p[0] = 2; }\nvoid* use() { "
                     "return (void*)&scale; }\n");
  std::vector<std::string> argv{KERNCAP_TEST_CLANG_19, "-x",        "hip",    "--offload-arch=gfx90a",
                                "-nogpuinc",           "-nogpulib", "-O2",    "-c",
                                "scale.hip",           "-o",        "scale.o"};
  argv.insert(argv.end(), GetParam().flags.begin(), GetParam().flags.end());
  application_.compile(argv);
  auto options = application_.options(application_.snapshot_of("scale.o", "gfx90a", "scale("));
  options.find_kernel = false;
  const auto report = emit_project(options);
  ASSERT_FALSE(report.capture_only) << report.capture_only_reason;
  EXPECT_EQ(report.rebuild->outcome, RebuildOutcome::byte_identical) << report.rebuild->reason;
}

INSTANTIATE_TEST_SUITE_P(Flags, EveryContainerOfClang19,
                         ::testing::Values(Way{"plain", {}}, Way{"compressed", {"--offload-compress"}},
                                           Way{"new_driver", {"--offload-new-driver"}},
                                           Way{"device_lto", {"-foffload-lto"}},
                                           Way{"device_lto_new_driver", {"-foffload-lto", "--offload-new-driver"}},
                                           Way{"code_object_4", {"-mcode-object-version=4"}},
                                           Way{"coverage", {"-fprofile-instr-generate", "-fcoverage-mapping"}},
                                           Way{"device_only", {"--offload-device-only", "--no-gpu-bundle-output"}},
                                           Way{"save_temps", {"-save-temps"}}),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

TEST_F(Emit, NamesTheClockWhenASourceUsesIt) {
  application_.write("include/times.h", header);
  application_.write("src/scale.hip", std::string(source) +
                                          "__global__ void clock_kernel(char* p) { p[0] = __TIME__[threadIdx.x]; "
                                          "}\nvoid go(char* p) { clock_kernel<<<1, 1>>>(p); }\n");
  application_.compile(
      {KERNCAP_TEST_HIPCC_PATH, "--offload-arch=gfx90a", "-c", "src/scale.hip", "-o", "build_scale.o"});
  const auto snapshot = application_.snapshot_of("build_scale.o", "gfx90a", "scale<float>");
  const auto report = emit_project(application_.options(snapshot));
  if (report.rebuild->outcome == RebuildOutcome::byte_identical) GTEST_SKIP() << "both compiles ran within one second";
  EXPECT_THAT(report.rebuild->reason, HasSubstr("__TIME__"));
}

TEST_F(Emit, SaysWhichCompilerIsMissingWhenTheProjectIsConfigured) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.rebuild_check = options.find_kernel = false;
  const auto report = emit_project(options);
  std::string text = support::read_text_file(report.project / "CMakeLists.txt");
  const auto at = text.find("/bin/clang\"");
  ASSERT_NE(at, std::string::npos);
  support::write_file_atomically(report.project / "CMakeLists.txt",
                                 text.replace(at, 11, "/bin/clang-of-another-rocm\""), 0644);
  EXPECT_THAT(build_kernel(report.project), HasSubstr("is not on this machine"));
}

TEST_F(Emit, KeepsTheOtherArchitecturesWhenAsked) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.all_targets = true;
  options.find_kernel = false;
  const auto report = emit_project(options);
  EXPECT_EQ(report.rebuild->outcome, RebuildOutcome::byte_identical) << report.rebuild->reason;
  EXPECT_EQ(build_kernel(report.project), report.code_object);
  EXPECT_FALSE(std::filesystem::exists(report.project / "build/kernel-gfx1030.hsaco"));
  const auto listed =
      testing::run({"cmake", "--build", (report.project / "build").string(), "--target", "disassembly"});
  EXPECT_EQ(listed.exit_status, 0) << listed.output;
  EXPECT_THAT(support::read_text_file(report.project / "build/kernel.s"), HasSubstr("s_endpgm"));
  const auto built =
      testing::run({"cmake", "--build", (report.project / "build").string(), "--target", "kernel-gfx1030"});
  ASSERT_EQ(built.exit_status, 0) << built.output;
  EXPECT_EQ(support::sha256_hex_of_file(report.project / "build/kernel-gfx1030.hsaco"),
            support::sha256_hex(application_.code_object("build/scale.o", "gfx1030")));
}

TEST_F(Emit, GivesTheMachineCodeToRead) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  options.database.clear();
  const auto report = emit_project(options);
  const std::string text = support::read_text_file(report.project / "kernel.s");
  EXPECT_THAT(text, HasSubstr("VGPRs"));
  EXPECT_THAT(text, HasSubstr("s_endpgm"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("copy")));
}

TEST_F(Emit, ReportsInJson) {
  compile_application();
  auto options = application_.options(application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>"));
  const auto document = to_json(emit_project(options));
  EXPECT_EQ(document.at("rebuild_check").at("outcome"), "byte-identical");
  EXPECT_EQ(document.at("kernel").at("file"), "src/src/scale.hip");
}

// A helper that dies, lies or says nothing costs the definition, never the project, and is never taken for an answer.
TEST_F(Emit, SaysWhatBecameOfAKernelFinderThatFails) {
  compile_application();
  const auto snapshot = application_.snapshot_of("build/scale.o", "gfx90a", "scale<float>");
  const auto helpers = application_.folder() / "helpers";
  std::filesystem::create_directories(helpers);
  const std::pair<const char*, const char*> failures[] = {
      {"kill -KILL $$", "exit status 137"},
      {"exit 0", "kernel finder's answer"},
      {"echo '{\"file\": '", "kernel finder's answer"},
      {"cat >/dev/null; exit 4", "exit status 4"},
      {"echo '[]'", "kernel finder"},
  };
  for (const auto& [script, message] : failures) {
    support::write_file_atomically(helpers / "kerncap-find-kernel", std::string("#!/bin/sh\n") + script + "\n", 0755);
    auto options = application_.options(snapshot);
    options.helper_folder = helpers;
    options.rebuild_check = false;
    options.replace = true;
    const auto report = emit_project(options);
    EXPECT_FALSE(report.kernel.has_value()) << script;
    ASSERT_EQ(report.warnings.size(), 1u) << script;
    EXPECT_THAT(report.warnings[0], HasSubstr(message)) << script;
  }
}

}  // namespace
}  // namespace kerncap::emit
