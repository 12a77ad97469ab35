// A small build tree with a database beside it, for tests that run real compilers through kerncap-cc.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/compdb/database.h"
#include "core/compdb/operations.h"
#include "core/support/file.h"
#include "core/support/process.h"

namespace kerncap::wrapper {

inline const std::string program = KERNCAP_CC_PROGRAM;
inline const std::string masquerade_folder = KERNCAP_MASQUERADE_FOLDER;

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::optional<std::string>>;

#define KERNCAP_NEEDS(compiler) \
  if (!support::find_program(compiler)) GTEST_SKIP() << compiler << " is not installed"

class BuildTree {
 public:
  BuildTree() : folder_("kerncap wrapper") {  // a blank in every path
    std::filesystem::create_directory(path());
    std::filesystem::create_directory(database_path());
    compdb::create_database(database_path());
    write("k.h",
          "#ifdef __HIP_DEVICE_COMPILE__\n#include \"device_only.h\"\n#else\n#include \"host_only.h\"\n#endif\n");
    write("device_only.h", "#define VALUE 2\n");
    write("host_only.h", "#define VALUE 3\n");
    // What <<<>>> needs, without the weight of HIP's own headers: these tests compile dozens of units.
    write("mini_hip.h",
          "#define __global__ __attribute__((global))\n#define __host__ __attribute__((host))\n"
          "#define __device__ __attribute__((device))\n"
          "struct dim3 { unsigned x, y, z; __host__ __device__ constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned "
          "c = 1)"
          " : x(a), y(b), z(c) {} };\n"
          "extern \"C\" int __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, void* = nullptr);\n"
          "extern \"C\" int __hipPopCallConfiguration(dim3*, dim3*, unsigned long*, void**);\n"
          "extern \"C\" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);\n");
    write("a.hip",
          "#include \"mini_hip.h\"\n#include \"k.h\"\n__global__ void kernel_a(int* p) { *p += VALUE; }\n"
          "void launch_a() { kernel_a<<<1, 64>>>(nullptr); }\n");
    write("b.hip",
          "#include \"mini_hip.h\"\n__global__ void kernel_b(float* p) { *p *= 2; }\n"
          "void launch_b() { kernel_b<<<1, 64>>>(nullptr); }\n");
    write("main.hip",
          "#include \"mini_hip.h\"\nvoid launch_a();\nvoid launch_b();\nint main() { launch_a(); launch_b(); }\n");
    write("real.hip",
          "#include <hip/hip_runtime.h>\n__global__ void kernel_r(int* p) { p[threadIdx.x] += 1; }\n"
          "void launch_r() { kernel_r<<<1, 64>>>(nullptr); }\n");
    write("c.h", "#define SIX 6\n");
    write("c.c", "#include \"c.h\"\n#include <stddef.h>\nint c(void) { return SIX; }\n");
    write("d.cpp", "#include \"c.h\"\nint d() { return SIX; }\n");
    write("main.c", "int main(void) { return 0; }\n");
  }

  std::filesystem::path path() const { return folder_.path() / "b u i l d"; }
  std::filesystem::path database_path() const { return folder_.path() / "db"; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path() / name).parent_path());
    support::write_file_atomically(path() / name, text, 0644);
  }
  std::string read(const std::string& name) const { return support::read_text_file(path() / name); }
  bool exists(const std::string& name) const { return std::filesystem::exists(path() / name); }

  support::ProcessResult run(Words argv, Variables variables = {},
                             std::optional<std::string> input = std::nullopt) const {
    support::Command command;
    command.argv = std::move(argv);
    command.working_directory = path();
    command.environment = std::move(variables);
    command.environment.try_emplace("KERNCAP_DB", database_path().string());
    command.environment.try_emplace("KERNCAP_CC_SESSION", folder_.path().string());
    command.standard_output = support::Stream::capture;
    command.standard_error = support::Stream::capture;
    command.standard_input = input.value_or("");
    command.timeout = std::chrono::seconds(100);
    return support::run(command);
  }
  // Through kerncap-cc as a launcher; must succeed.
  void compile(Words argv, const Variables& variables = {}, std::optional<std::string> input = std::nullopt) const {
    argv.insert(argv.begin(), program);
    const support::ProcessResult result = run(argv, variables, std::move(input));
    ASSERT_EQ(result.exit_status, 0) << support::shell_quoted(argv) << "\n" << result.standard_error;
  }

  compdb::Database database() const { return compdb::Database(database_path()); }
  std::vector<compdb::Record> units() const { return of_kind(compdb::RecordKind::translation_unit); }
  std::vector<compdb::Record> links() const { return of_kind(compdb::RecordKind::link); }
  // The only unit; fails the test when there are more or none.
  compdb::Record unit() const {
    const std::vector<compdb::Record> all = units();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? compdb::Record() : all.front();
  }

 private:
  std::vector<compdb::Record> of_kind(compdb::RecordKind kind) const {
    std::vector<compdb::Record> records = database().records();
    std::erase_if(records, [&](const compdb::Record& record) { return record.kind != kind; });
    return records;
  }
  support::TemporaryFolder folder_;
};

inline Words targets_of_passes(const compdb::Record& record) {
  Words targets;
  for (const compdb::Pass& pass : record.passes) targets.push_back(pass.target);
  std::ranges::sort(targets);
  return targets;
}

// Names of the application's own files that a pass read, without folders.
inline Words own_files(const compdb::Record& record, const std::string& target) {
  Words names;
  for (const compdb::Pass& pass : record.passes) {
    if (pass.target != target) continue;
    for (std::uint32_t file : pass.files) {
      if (!record.files[file].system)
        names.push_back(std::filesystem::path(record.files[file].path).filename().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

inline std::size_t jobs_of(const compdb::Record& record, compdb::Job::Tool tool) {
  return static_cast<std::size_t>(std::ranges::count(record.jobs, tool, &compdb::Job::tool));
}

}  // namespace kerncap::wrapper
