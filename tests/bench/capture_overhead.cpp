// What the capture library costs an application whose kernels it does not want, and what profiling costs: the same
// storm of small launches plain, armed and profiled, in turn, several rounds. usage: capture_overhead [LAUNCHES]
// [ROUNDS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "capture/config.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/process.h"

namespace {

namespace fs = std::filesystem;
using namespace kerncap;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string launches = argc > 1 ? argv[1] : "100000";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  const support::TemporaryFolder folder;
  const fs::path program = folder.path() / "launch_storm", libraries = KERNCAP_BENCH_LIBRARIES;
  support::Command compile;
  compile.argv = {"hipcc", "-O2", "--offload-arch=gfx90a", KERNCAP_BENCH_SOURCE, "-o", program.string()};
  compile.standard_error = support::Stream::null;
  if (!support::run(compile).succeeded())
    support::fail(support::ExitCode::environment, "hipcc could not compile the program");

  struct Variant {
    const char* name;
    bool library;
    capture::Mode mode;
    std::vector<double> microseconds;
  };
  Variant variants[] = {{"plain", false, capture::Mode::capture, {}},
                        {"armed, nothing matches", true, capture::Mode::capture, {}},
                        {"profile", true, capture::Mode::profile, {}}};
  for (int round = 0; round < rounds; ++round)
    for (Variant& v : variants) {
      capture::Config config;
      config.mode = v.mode;
      config.pattern = "no_such_kernel";
      config.status_folder = folder.path() / "status";
      config.output = folder.path() / "out.kcap";
      fs::create_directory(config.status_folder);
      support::write_file_atomically(folder.path() / "config.json", support::dump_json(to_json(config)));
      support::Command command;
      command.argv = {program.string(), launches};
      if (!fs::exists("/dev/kfd")) {
        command.environment["LD_PRELOAD"] = (libraries / "libkerncap-softgpu.so").string();
        command.environment["KERNCAP_SOFTGPU_ARCH"] = "gfx90a";
      }
      if (v.library) {
        command.environment["HSA_TOOLS_LIB"] = (libraries / "libkerncap-capture.so").string();
        command.environment[capture::config_variable] = (folder.path() / "config.json").string();
      }
      command.standard_output = support::Stream::capture;
      command.standard_error = support::Stream::null;
      const auto result = support::run(command);
      if (!result.succeeded()) support::fail(support::ExitCode::application_failed, "the program failed ({})", v.name);
      v.microseconds.push_back(std::strtod(result.standard_output.c_str(), nullptr));
    }
  std::printf("%s launches, %d rounds\n", launches.c_str(), rounds);
  for (const Variant& v : variants) {
    std::vector<double> differences;
    for (int r = 0; r < rounds; ++r) differences.push_back(v.microseconds[r] - variants[0].microseconds[r]);
    std::printf("%-24s %8.3f us a launch   %+7.3f us against plain (median of the rounds' differences)\n", v.name,
                median(v.microseconds), median(differences));
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "capture_overhead: %s\n", error.what());
  return 3;
}
