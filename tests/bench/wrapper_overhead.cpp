// What recording costs a build: the same Ninja build of N units plain, with kerncap-cc, with bear and with ccache, in
// turn, several rounds. CPU time of the whole build (user + system, children included) is compared, because it moves
// less than wall time on a machine that does other things; wall time is printed beside it. The verdict is the median of
// the per-round ratios.
//
//   wrapper_overhead [UNITS] [ROUNDS] [JOBS] [KIND]      KIND: a part of a kind's name, e.g. C++
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/compdb/operations.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/process.h"

namespace {

namespace fs = std::filesystem;
using namespace kerncap;

struct Cost {
  double cpu_ms = 0, wall_ms = 0;
};

struct Kind {
  std::string name, compiler, suffix, flags;
  std::function<std::string(unsigned)> source;
};

struct Variant {
  std::string name, launcher;
  std::vector<std::string> prefix;  // in front of ninja
};

double milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

double cpu_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void write_tree(const fs::path& folder, const Kind& kind, const Variant& variant, unsigned units) {
  fs::create_directories(folder);
  std::string ninja = "rule cc\n  command = " + variant.launcher + " " + kind.compiler + " " + kind.flags +
                      " -MD -MF $out.d -c $in -o $out\n  depfile = $out.d\n  deps = gcc\n";
  for (unsigned i = 0; i < units; ++i) {
    const std::string name = "u" + std::to_string(i);
    support::write_file_atomically(folder / (name + kind.suffix), kind.source(i), 0644);
    ninja += "build " + name + ".o: cc " + name + kind.suffix + "\n";
  }
  support::write_file_atomically(folder / "build.ninja", ninja, 0644);
}

Cost build_once(const fs::path& folder, const Variant& variant, const fs::path& database, unsigned jobs) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".o") || name.ends_with(".d") || name.starts_with(".ninja") || name == "compile_commands.json")
      fs::remove(entry.path());
  }
  fs::remove_all(folder / "ccache");  // every round is a miss
  support::Command command;
  command.argv = variant.prefix;
  command.argv.insert(command.argv.end(), {"ninja", "-j" + std::to_string(jobs)});
  command.working_directory = folder;
  command.environment["KERNCAP_DB"] = database.string();
  command.environment["CCACHE_DIR"] = (folder / "ccache").string();
  command.standard_output = support::Stream::null;
  command.standard_error = support::Stream::capture;
  const double before = cpu_of_children();
  const support::ProcessResult result = support::run(command);
  if (!result.succeeded())
    support::fail(support::ExitCode::application_failed, "{} failed: {}", variant.name, result.standard_error);
  return {.cpu_ms = cpu_of_children() - before,
          .wall_ms = std::chrono::duration<double, std::milli>(result.wall_time).count()};
}

void compare(const Kind& kind, const std::vector<Variant>& variants, unsigned units, unsigned rounds, unsigned jobs) {
  const support::TemporaryFolder scratch("kerncap-bench");
  const fs::path database = scratch.path() / "db";
  compdb::create_database(database);
  std::vector<fs::path> folders;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    folders.push_back(scratch.path() / ("tree" + std::to_string(v)));
    write_tree(folders.back(), kind, variants[v], units);
  }
  std::vector<std::vector<Cost>> costs(variants.size());
  for (unsigned round = 0; round <= rounds; ++round) {
    for (std::size_t v = 0; v < variants.size(); ++v) {
      const Cost cost = build_once(folders[v], variants[v], database, jobs);
      if (round > 0) costs[v].push_back(cost);  // the first round fills the caches of the disk
    }
  }
  fmt::print("\n{} ({} units, {} rounds, -j{})\n{:<22}{:>14}{:>14}{:>10}{:>10}\n", kind.name, units, rounds, jobs, "",
             "CPU ms/unit", "wall ms/unit", "CPU", "wall");
  for (std::size_t v = 0; v < variants.size(); ++v) {
    std::vector<double> cpu, wall, cpu_ratio, wall_ratio;
    for (unsigned round = 0; round < rounds; ++round) {
      cpu.push_back(costs[v][round].cpu_ms / units);
      wall.push_back(costs[v][round].wall_ms / units);
      cpu_ratio.push_back(costs[v][round].cpu_ms / costs[0][round].cpu_ms);
      wall_ratio.push_back(costs[v][round].wall_ms / costs[0][round].wall_ms);
    }
    fmt::print("{:<22}{:>14.2f}{:>14.2f}{:>+9.1f}%{:>+9.1f}%\n", variants[v].name, median(cpu), median(wall),
               (median(cpu_ratio) - 1) * 100, (median(wall_ratio) - 1) * 100);
  }
  const compdb::Statistics statistics = compdb::Database(database).statistics();
  if (statistics.records != 0) fmt::print("stored: {} bytes a record\n", statistics.bytes / statistics.records);
  std::fflush(stdout);  // a later kind may run into somebody's time limit
}

}  // namespace

int main(int argc, char** argv) try {
  const auto number = [&](int at, unsigned otherwise) {
    return argc > at ? static_cast<unsigned>(std::strtoul(argv[at], nullptr, 10)) : otherwise;
  };
  const unsigned units = std::max(1U, number(1, 50)), rounds = std::max(1U, number(2, 5)),
                 jobs = std::max(1U, number(3, 2));
  const std::string only = argc > 4 ? argv[4] : "";

  std::vector<Variant> variants = {{"plain", "", {}}, {"kerncap-cc", KERNCAP_CC_PROGRAM, {}}};
  if (support::find_program("bear")) variants.push_back({"bear", "", {"bear", "--"}});
  if (support::find_program("ccache")) variants.push_back({"ccache (miss)", "ccache", {}});

  const std::vector<Kind> kinds = {
      {"trivial C, gcc", "gcc", ".c", "-O1",
       [](unsigned i) { return "int f" + std::to_string(i) + "(int x) { return x + 1; }\n"; }},
      {"trivial C, clang-15", "clang-15", ".c", "-O1",
       [](unsigned i) { return "int f" + std::to_string(i) + "(int x) { return x + 1; }\n"; }},
      {"C++, clang-15", "clang++-15", ".cpp", "-O2",
       [](unsigned i) {
         return "#include <map>\n#include <string>\n#include <vector>\n#include <algorithm>\nstd::map<std::string, "
                "int> m" +
                std::to_string(i) + ";\nint f" + std::to_string(i) +
                "(std::vector<std::string>& v) { std::sort(v.begin(), v.end()); for (auto& s : v) m" +
                std::to_string(i) + "[s]++; return static_cast<int>(m" + std::to_string(i) + ".size()); }\n";
       }},
      {"HIP, hipcc, one architecture", "hipcc", ".hip", "--offload-arch=gfx90a -O2",
       [](unsigned i) {
         return "#include <hip/hip_runtime.h>\n__global__ void k" + std::to_string(i) +
                "(int* p) { p[threadIdx.x] += " + std::to_string(i) + "; }\nvoid l" + std::to_string(i) + "() { k" +
                std::to_string(i) + "<<<1, 64>>>(nullptr); }\n";
       }},
  };
  for (const Kind& kind : kinds) {
    if (!only.empty() && kind.name.find(only) == std::string::npos) continue;
    if (support::find_program(kind.compiler)) compare(kind, variants, units, rounds, jobs);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "wrapper_overhead: {}\n", error.what());
  return 3;
}
