// Programs that an application compiled while it ran, compiled again through the hipRTC of this machine.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/support/error.h"
#include "core/support/json.h"
#include "emit/application_for_test.h"

namespace kerncap::emit {
namespace {

using testing::Application;
using testing::build_kernel;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using testing::run;

constexpr const char* header = "template <class T> __device__ T times(T a, T b) { return a * b; }\n";
constexpr const char* source =
    "#include \"math/times.h\"\n"
    "template <class T> __global__ void scale(T* data, T factor, int n) {\n"
    "  int i = threadIdx.x;\n"
    "  if (i < n) data[i] = times(data[i], factor) * LEVEL;\n"
    "}\n"
    "extern \"C\" __global__ void plain(float* data) { data[threadIdx.x] += 1; }\n";

class RuntimeProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    void* library = ::dlopen("libamdhip64.so.5", RTLD_LAZY);
    if (library == nullptr) library = ::dlopen("libhiprtc.so", RTLD_LAZY);
    if (library == nullptr || ::dlsym(library, "hiprtcCompileProgram") == nullptr)
      GTEST_SKIP() << "no hipRTC is installed";
    Dl_info info{};
    ::dladdr(::dlsym(library, "hiprtcCompileProgram"), &info);
    library_ = info.dli_fname;
    compile();
  }

  // What the application would have got, by the project's own tool, and the snapshot with what the capture keeps.
  void compile() {
    const auto folder = application_.folder() / "program";
    support::write_file_atomically(make(folder) / "source.cu", source, 0644);
    support::write_file_atomically(make(folder / "math") / "times.h", header, 0644);
    support::write_file_atomically(
        folder / "job",
        "name source.cu\nsource source.cu\nheader math/times.h\tmath/times.h\noption -DLEVEL=2\noption -O2\n"
        "option --offload-arch=gfx90a\nname-expression scale<float>\nlibrary " +
            library_ + "\n",
        0644);
    const auto built =
        run({"c++", "-std=c++17", std::string(KERNCAP_TEST_DATA) + "/templates/hiprtc/compile_program.cpp", "-o",
             (folder / "compile").string(), "-ldl"});
    ASSERT_EQ(built.exit_status, 0) << built.output;
    const auto compiled = run({(folder / "compile").string(), (folder / "job").string(), folder.string(),
                               (make(application_.sources()) / "code").string()});
    ASSERT_EQ(compiled.exit_status, 0) << compiled.output;
  }

  static std::filesystem::path make(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    return folder;
  }

  std::filesystem::path snapshot(const std::string& kernel, const char* name = "source.cu") {
    const auto path = application_.snapshot_of("code", "gfx90a", kernel);
    const auto digest = support::sha256_hex_of_file(application_.sources() / "code");
    const auto folder = make(path / "runtime-compiled" / digest);
    support::write_file_atomically(folder / "source", source, 0600);
    support::write_file_atomically(folder / "header.0", header, 0600);
    support::write_file_atomically(folder / "program.json",
                                   support::dump_json({{"schema", "kerncap.hiprtc/1"},
                                                       {"name", name},
                                                       {"include_names", {"math/times.h"}},
                                                       {"options", {"-DLEVEL=2", "-O2"}},
                                                       {"name_expressions", {"scale<float>"}},
                                                       {"library", library_}}),
                                   0600);
    return path;
  }

  std::filesystem::path description_in(const std::filesystem::path& snapshot) {
    const auto digest = support::sha256_hex_of_file(application_.sources() / "code");
    return snapshot / "runtime-compiled" / digest / "program.json";
  }

  EmitOptions options(const std::filesystem::path& snapshot) {
    auto options = application_.options(snapshot);
    options.database.clear();
    return options;
  }

  Application application_;
  std::string library_;
};

TEST_F(RuntimeProgram, IsAProjectThatRebuildsTheCapturedCode) {
  const auto report = emit_project(options(snapshot("scale<float>")));
  EXPECT_FALSE(report.capture_only);
  EXPECT_TRUE(report.runtime_compiled);
  ASSERT_TRUE(report.rebuild.has_value());
  EXPECT_EQ(report.rebuild->outcome, RebuildOutcome::byte_identical) << report.rebuild->reason;
  EXPECT_THAT(report.files, Contains(Field(&BundledFile::project_path, "src/math/times.h")));
  EXPECT_EQ(support::read_text_file(report.project / "src/source.cu"), source);
}

TEST_F(RuntimeProgram, IsFoundInItsText) {
  auto chosen = options(snapshot("plain"));
  chosen.rebuild_check = false;
  const auto report = emit_project(chosen);
  ASSERT_TRUE(report.kernel.has_value()) << report.warnings.at(0);
  EXPECT_EQ(report.kernel->file, "src/source.cu");
  EXPECT_EQ(report.kernel->first_line, 6u);
  EXPECT_EQ(report.kernel->parameters.at(0).element, "f32");
}

TEST_F(RuntimeProgram, LoadsNoLibraryThatASnapshotBrings) {
  const auto path = snapshot("plain");
  const auto trap = path / "libamdhip64.so", sprung = path / "sprung";
  support::write_file_atomically(path / "trap.cpp",
                                 "#include <stdio.h>\n__attribute__((constructor)) static void f() { fclose(fopen(\"" +
                                     sprung.string() + "\", \"w\")); }\n",
                                 0600);
  ASSERT_EQ(run({"c++", "-shared", "-fPIC", (path / "trap.cpp").string(), "-o", trap.string()}).exit_status, 0);
  const auto description = description_in(path);
  auto program = support::read_json_file(description);
  program["library"] = trap.string();
  support::write_file_atomically(description, support::dump_json(program), 0600);
  const auto report = emit_project(options(path));
  EXPECT_FALSE(std::filesystem::exists(sprung));
  EXPECT_EQ(report.rebuild->outcome, RebuildOutcome::byte_identical) << report.rebuild->reason;
}

TEST_F(RuntimeProgram, RefusesOptionsThatLoadCode) {
  const auto path = snapshot("plain");
  const auto description = description_in(path);
  auto program = support::read_json_file(description);
  for (const char* option : {"-fplugin=/x.so", "-fpass-plugin=/x.so", "-load"}) {
    program["options"] = {"-O2", option};
    support::write_file_atomically(description, support::dump_json(program), 0600);
    EXPECT_THROW(emit_project(options(path)), support::Error) << option;
  }
}

TEST_F(RuntimeProgram, FollowsEditsOfSourceAndHeader) {
  auto chosen = options(snapshot("plain"));
  chosen.rebuild_check = false;
  const auto report = emit_project(chosen);
  EXPECT_EQ(build_kernel(report.project), report.code_object);
  support::write_file_atomically(report.project / "src/math/times.h",
                                 "template <class T> __device__ T times(T a, T b) { return a + b; }\n", 0644);
  const auto edited = build_kernel(report.project);
  EXPECT_EQ(edited.size(), 64u) << edited;
  EXPECT_NE(edited, report.code_object);
  support::write_file_atomically(report.project / "src/math/times.h", "this is no C++\n", 0644);
  EXPECT_THAT(build_kernel(report.project), HasSubstr("error:"));
}

TEST_F(RuntimeProgram, KeepsItsFilesInsideTheProjectWhateverTheyAreCalled) {
  auto chosen = options(snapshot("plain", "../../../etc/evil name;$(x)\t"));
  chosen.find_kernel = false;
  const auto report = emit_project(chosen);
  EXPECT_EQ(report.files.at(0).project_path, "src/etc/evil_name___x__");
  EXPECT_TRUE(std::filesystem::exists(report.project / "src/etc/evil_name___x__"));
}

TEST_F(RuntimeProgram, IsRefusedWhenDamaged) {
  const auto path = snapshot("plain");
  const auto digest = support::sha256_hex_of_file(application_.sources() / "code");
  support::write_file_atomically(path / "runtime-compiled" / digest / "program.json", "{\"name\": 3}", 0600);
  EXPECT_THROW(emit_project(options(path)), support::Error);
}

}  // namespace
}  // namespace kerncap::emit
