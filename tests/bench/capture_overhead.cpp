// What the capture library costs an application whose kernels it does not want, and what profiling costs: the same
// storm of small launches plain, armed and profiled, in turn, several rounds. The figures are differences within a
// round: of the launching loop, of the whole program, and of its processor time, which a busy machine changes least.
// usage: capture_overhead [LAUNCHES] [ROUNDS]
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
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

double children_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Measured {
  double launch_us, wall, cpu;  // of the loop, a launch; of the whole program, seconds
};

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
    std::vector<Measured> runs;
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
      const double cpu = children_cpu_seconds();
      const auto start = std::chrono::steady_clock::now();
      const auto result = support::run(command);
      const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (!result.succeeded()) support::fail(support::ExitCode::application_failed, "the program failed ({})", v.name);
      v.runs.push_back({std::strtod(result.standard_output.c_str(), nullptr), wall, children_cpu_seconds() - cpu});
    }
  std::printf("%s launches, %d rounds\n", launches.c_str(), rounds);
  for (const Variant& v : variants) {
    const auto value = [&](double Measured::*member) {
      std::vector<double> values;
      for (const Measured& run : v.runs) values.push_back(run.*member);
      return median(values);
    };
    const auto difference = [&](double Measured::*member, bool percent) {
      std::vector<double> values;
      for (std::size_t r = 0; r < v.runs.size(); ++r) {
        const double plain = variants[0].runs[r].*member;
        values.push_back(percent ? 100 * (v.runs[r].*member / plain - 1) : v.runs[r].*member - plain);
      }
      return median(values);
    };
    std::printf(
        "%-24s %7.3f us a launch (%+6.3f us)   whole program %6.3f s (%+5.2f %%), processor time %6.3f s (%+5.2f %%)\n",
        v.name, value(&Measured::launch_us), difference(&Measured::launch_us, false), value(&Measured::wall),
        difference(&Measured::wall, true), value(&Measured::cpu), difference(&Measured::cpu, true));
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "capture_overhead: %s\n", error.what());
  return 3;
}
