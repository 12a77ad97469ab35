// How the database behaves at the size of ROCm's own libraries: a synthetic log of N translation units, then the time
// and memory to open it, to answer from it, and to append to it with 64 writers at once.
//
//   database_scale [UNITS] [HEADERS A UNIT]
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/compdb/codec.h"
#include "core/compdb/database.h"
#include "core/compdb/frame.h"
#include "core/compdb/log_writer.h"
#include "core/compdb/operations.h"
#include "core/support/error.h"
#include "core/support/file.h"

namespace {

namespace fs = std::filesystem;
using namespace kerncap;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

compdb::Record synthetic_unit(unsigned number, unsigned headers, std::mt19937& random) {
  compdb::Record record;
  record.host = "bench";
  record.database = "/build/.kerncap";
  record.directory = "/build";
  record.started = 1'700'000'000'000'000'000 + number * std::uint64_t{1'000'000};
  record.source = "../src/module" + std::to_string(number % 100) + "/file" + std::to_string(number) + ".hip";
  record.output = "/build/CMakeFiles/lib.dir/file" + std::to_string(number) + ".hip.o";
  record.argv = record.expanded_argv = {"/usr/bin/hipcc", "-O3", "-DNDEBUG",   "--offload-arch=gfx90a", "-o",
                                        record.output,    "-c",  record.source};
  record.language = "hip";
  record.device_targets = {"gfx90a"};
  record.compiler = {
      .path = "/usr/bin/hipcc", .resolved = "/usr/bin/hipcc", .size = 1844, .mtime = 1, .family = "hipcc"};
  for (const char* target : {"gfx90a", "host"}) {
    compdb::Job job{.tool = compdb::Job::Tool::cc1,
                    .argv = {"/usr/lib/llvm-15/bin/clang", "-cc1"},
                    .target = target,
                    .output = "/tmp/x.o"};
    for (int i = 0; i < 100; ++i) job.argv.push_back("-some-driver-option-" + std::to_string(i));
    record.jobs.push_back(std::move(job));
    record.passes.push_back({.target = target, .files = {}});
  }
  for (unsigned i = 0; i <= headers; ++i) {
    compdb::SourceFile file;
    const unsigned header = random() % 20'000;
    // As clang opens them: the main file relative to the build folder, one header in two through "..".
    const std::string name = "library" + std::to_string(header % 50) + "/header" + std::to_string(header) + ".h";
    file.spelling =
        i == 0 ? record.source : (header % 2 == 0 ? "/usr/include/" : "/usr/lib/llvm-15/lib/../../../include/") + name;
    file.path = i == 0 ? "/src" + record.source.substr(6) : "/usr/include/" + name;
    file.size = header;
    file.mtime = header % 50;
    file.system = i != 0;
    record.files.push_back(std::move(file));
    for (compdb::Pass& pass : record.passes) pass.files.push_back(i);
  }
  return record;
}

std::uint64_t generate(const fs::path& folder, unsigned units, unsigned headers) {
  std::mt19937 random(1);
  fs::create_directories(folder / compdb::log_folder);
  std::ofstream log(folder / compdb::log_folder / "bench.kclog", std::ios::binary);
  for (unsigned i = 0; i < units; ++i) {
    log << compdb::make_frame(compdb::FrameType::record, compdb::encode_record(synthetic_unit(i, headers, random)));
  }
  log.close();
  return compdb::log_size(folder);
}

// Memory and processor time of this process: the times that others' load does not change.
struct Usage {
  double peak_mb = 0, cpu_ms = 0;
};
Usage usage_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return {static_cast<double>(usage.ru_maxrss) / 1024, ms(usage.ru_utime) + ms(usage.ru_stime)};
}

// In a process of its own, so that memory and caches are those of a query.
void query_in_child(const fs::path& folder, unsigned units, const char* label) {
  fmt::print("{:<28}", label);
  std::fflush(stdout);
  if (const pid_t child = ::fork(); child != 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return;
  }
  const auto start = Clock::now();
  const compdb::Database database(folder);
  const double opened = ms_since(start);
  const Usage after_open = usage_now();
  const auto first = Clock::now();
  const std::size_t found =
      database.find_output("/build/CMakeFiles/lib.dir/file" + std::to_string(units / 2) + ".hip.o").size();
  const double cold = ms_since(first);
  std::vector<double> warm;
  for (unsigned i = 0; i < 100; ++i) {
    const auto again = Clock::now();
    database.find_output("/build/CMakeFiles/lib.dir/file" + std::to_string(i * (units / 100)) + ".hip.o");
    warm.push_back(ms_since(again));
  }
  std::ranges::sort(warm);
  const auto header = Clock::now();
  const std::size_t reached = database.find_header("/usr/include/library7/header7.h").size();
  const double header_ms = ms_since(header);
  fmt::print(
      "open {:7.1f} ms (cpu {:7.1f} ms, peak {:4.0f} MB)  first {:5.2f} ms  then {:6.3f} ms  header {:6.2f} ms ({} "
      "units)  "
      "peak {:4.0f} MB  {}\n",
      opened, after_open.cpu_ms, after_open.peak_mb, cold, warm[50], header_ms, reached, usage_now().peak_mb,
      found == 1 ? "" : "WRONG");
  std::fflush(stdout);
  ::_exit(0);
}

// What a machine that has not looked at the database today finds: nothing of it in the page cache.
void forget_files(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    ::fsync(fd);  // what is not yet on the disk cannot be dropped
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

void append_with_writers(const fs::path& folder, unsigned writers, unsigned each) {
  int ends[2];
  if (::pipe(ends) != 0) return;
  for (unsigned writer = 0; writer < writers; ++writer) {
    if (::fork() != 0) continue;
    ::close(ends[0]);
    std::mt19937 random(writer);
    const compdb::Record record = synthetic_unit(writer, 40, random);
    for (unsigned i = 0; i < each; ++i) {
      const auto start = Clock::now();
      compdb::append_record(folder.string(), record);
      const double ms = ms_since(start);
      if (::write(ends[1], &ms, sizeof ms) != sizeof ms) ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::vector<double> times;
  for (double ms = 0; ::read(ends[0], &ms, sizeof ms) == sizeof ms;) times.push_back(ms);
  ::close(ends[0]);
  while (::wait(nullptr) > 0) {
  }
  std::ranges::sort(times);
  fmt::print("append, {:2} writers: median {:.2f} ms, p99 {:.2f} ms ({} records)\n", writers, times[times.size() / 2],
             times[times.size() * 99 / 100], times.size());
}

}  // namespace

int main(int argc, char** argv) try {
  const unsigned units = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 10'000;
  const unsigned headers = argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : 300;
  const support::TemporaryFolder scratch("kerncap-bench");
  const fs::path folder = scratch.path() / "db";
  compdb::create_database(folder);
  append_with_writers(folder, 1, 500);
  append_with_writers(folder, 64, 30);
  fs::remove_all(folder / compdb::log_folder);
  const auto start = Clock::now();
  const std::uint64_t bytes = generate(folder, units, headers);
  fmt::print("{} units, {} headers each: {} MB, {} bytes a unit, written in {:.0f} ms\n", units, headers, bytes >> 20,
             bytes / units, ms_since(start));
  query_in_child(folder, units, "without an index");
  query_in_child(folder, units, "with the index");
  query_in_child(folder, units, "with the index, again");
  forget_files(folder);
  query_in_child(folder, units, "files not in memory");
  std::mt19937 random(2);
  compdb::append_record(folder.string(), synthetic_unit(units, headers, random));
  query_in_child(folder, units, "after one more record");
  const auto compaction = Clock::now();
  const compdb::CompactReport compacted = compdb::compact(folder);
  fmt::print("compaction of {} records: {:.0f} ms\n", compacted.records_before, ms_since(compaction));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "database_scale: {}\n", error.what());
  return 3;
}
