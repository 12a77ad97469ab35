// A small application, compiled for real under kerncap-cc, and a snapshot of one of its kernels, as the tests need
// them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/codeobject/code_object.h"
#include "core/snapshot/writer.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/process.h"
#include "emit/emit.h"

namespace kerncap::emit::testing {

namespace fs = std::filesystem;

struct Run {
  int exit_status = 0;
  std::string output;
};

inline Run run(std::vector<std::string> argv, const fs::path& directory = {},
               const std::map<std::string, std::string>& environment = {}) {
  support::Command command;
  command.argv = std::move(argv);
  command.working_directory = directory;
  for (const auto& [name, value] : environment) command.environment[name] = value;
  command.standard_output = support::Stream::capture;
  command.standard_error = support::Stream::capture;
  command.timeout = std::chrono::minutes(5);
  const auto result = support::run(command);
  return {result.exit_status, result.standard_output + result.standard_error};
}

class Application {
 public:
  Application() {
    // Two folders deep, so that the tree's mirror has something to strip.
    fs::create_directories(sources());
    fs::create_directories(database());
  }

  fs::path folder() const { return folder_.path(); }
  fs::path sources() const { return folder_.path() / "app"; }
  fs::path database() const { return folder_.path() / "db"; }

  void write(const std::string& name, const std::string& text) {
    const fs::path path = sources() / name;
    fs::create_directories(path.parent_path());
    support::write_file_atomically(path, text, 0644);
  }

  // Runs a compiler under the wrapper in app/ or a folder below.
  void compile(std::vector<std::string> argv, const std::string& directory = "") {
    argv.insert(argv.begin(), KERNCAP_TEST_CC);
    fs::create_directories(sources() / directory);
    const Run result = run(argv, sources() / directory, {{"KERNCAP_DB", database().string()}});
    ASSERT_EQ(result.exit_status, 0) << result.output;
  }

  std::vector<std::byte> code_object(const std::string& object, const std::string& target) const {
    support::MappedFile file(sources() / object);
    for (auto& found : codeobject::find_code_objects(file.bytes(), object))
      if (found.target == target && !found.is_bitcode) return found.bytes;
    ADD_FAILURE() << object << " has no code for " << target;
    return {};
  }

  // A snapshot of a dispatch of the kernel whose demangled name contains `name`.
  fs::path snapshot_of(const std::string& object, const std::string& target, const std::string& name) {
    const auto code = code_object(object, target);
    const auto parsed = codeobject::parse_code_object(code, object);
    snapshot::Manifest manifest;
    manifest.kerncap_version = "test";
    manifest.agents.emplace_back();
    manifest.agents[0].name = target.substr(0, target.find(':'));
    snapshot::Dispatch dispatch;
    for (const auto& kernel : parsed.kernels)
      if (kernel.demangled.find(name) != std::string::npos || kernel.name == name) dispatch.kernel = kernel;
    EXPECT_FALSE(dispatch.kernel.name.empty()) << "no kernel " << name;
    dispatch.kernel_symbol = dispatch.kernel.symbol;
    dispatch.kernel_demangled = dispatch.kernel.demangled;
    dispatch.code_object = support::sha256_hex(code);
    dispatch.queue_type = "multi";
    dispatch.grid = {256, 1, 1};
    dispatch.workgroup = {64, 1, 1};
    dispatch.has_after = true;
    snapshot::Region region;
    region.address = 0x7f0000000000;
    region.size = 4096;
    region.agent = 0;
    dispatch.regions = {region};
    const fs::path path = folder_.path() / ("snapshot" + std::to_string(++snapshots_) + ".kcap");
    snapshot::WriterOptions options;
    options.sync = false;
    snapshot::Writer writer(path, options);
    writer.begin_dispatch(dispatch.regions);
    writer.set_kernarg(0, std::vector<std::byte>(dispatch.kernel.kernarg_size));
    writer.add_code_object(dispatch.code_object, code);
    manifest.dispatches.push_back(dispatch);
    writer.commit(manifest);
    return path;
  }

  EmitOptions options(const fs::path& snapshot) const {
    EmitOptions options;
    options.snapshot = snapshot;
    options.database = database();
    options.output = folder_.path() / "project";
    options.data_folder = KERNCAP_TEST_DATA;
    options.helper_folder = KERNCAP_TEST_HELPERS;
    return options;
  }

 private:
  support::TemporaryFolder folder_;
  int snapshots_ = 0;
};

// Configures a project and builds its kernel; the digest of the result, or the output of what failed.
inline std::string build_kernel(const fs::path& project) {
  const fs::path build = project / "build";
  if (!fs::exists(build / "build.ninja")) {
    const Run configured =
        run({"cmake", "-S", project.string(), "-B", build.string(), "-G", "Ninja", "-DKERNCAP_BUILD_REPLAYER=OFF"});
    if (configured.exit_status != 0) return configured.output;
  }
  const Run built = run({"cmake", "--build", build.string(), "--target", "kernel"});
  if (built.exit_status != 0) return built.output;
  return support::sha256_hex_of_file(build / "kernel.hsaco");
}

}  // namespace kerncap::emit::testing
