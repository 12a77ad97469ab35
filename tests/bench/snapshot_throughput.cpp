// How fast a snapshot is written and how much memory that takes, beside what the machine can do at most: copying memory
// and writing to the same disk, both measured in the same run, in turn with it. usage: snapshot_throughput [MIB]
// [FOLDER] [ROUNDS]
//
// Each variant runs in a process of its own; extra memory is the growth of its peak resident set (VmHWM) beyond the
// data.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/snapshot/reader.h"
#include "core/snapshot/writer.h"
#include "core/support/file.h"

namespace {

namespace fs = std::filesystem;
using namespace kerncap;
using namespace kerncap::snapshot;
using Clock = std::chrono::steady_clock;

constexpr std::size_t piece = 4 << 20;  // as the capture library's buffers
constexpr std::size_t pieces_in_flight = 8;

double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

double cpu_seconds() {  // of all threads
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::uint64_t folder_bytes(const fs::path& folder) {
  std::uint64_t sum = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) sum += entry.file_size();
  return sum;
}

double memory_mib(const char* key) {  // of /proc/self/status
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::strtod(line.c_str() + std::strlen(key) + 1, nullptr) / 1024;
  return 0;
}

void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

// In a child process, so that its memory is its own; gives back the numbers that `measure` returns.
std::vector<double> in_child(const std::function<std::vector<double>()>& measure) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(3);
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 3;
    try {
      const std::vector<double> values = measure();
      const std::size_t size = values.size() * sizeof(double);
      status = ::write(ends[1], values.data(), size) == static_cast<ssize_t>(size) ? 0 : 3;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "snapshot_throughput: %s\n", error.what());
    }
    ::_exit(status);
  }
  ::close(ends[1]);
  double values[8];
  const ssize_t got = ::read(ends[0], values, sizeof values);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0 || got < 0) std::exit(3);
  return {values, values + static_cast<std::size_t>(got) / sizeof(double)};
}

double copy_rate(const std::vector<std::byte>& source) {
  std::vector<std::byte> target(piece);
  std::memset(target.data(), 1, target.size());
  const auto start = Clock::now();
  for (std::size_t at = 0; at + target.size() <= source.size(); at += target.size())
    std::memcpy(target.data(), source.data() + at, target.size());
  return static_cast<double>(source.size()) / seconds(start);
}

// Which way is the fastest depends on the disk: through the page cache, the same with the kernel told early to begin
// writing (what the snapshot writer does), and past the page cache.
enum class Way { cached, early, direct };
double disk_rate(const fs::path& folder, const std::vector<std::byte>& source, Way way) {
  const fs::path path = folder / "plain";
  void* buffer = nullptr;
  if (::posix_memalign(&buffer, 4096, piece) != 0) std::exit(3);
  const int fd =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (way == Way::direct ? O_DIRECT : 0), 0600);
  if (fd < 0) {
    std::free(buffer);
    return 0;  // the file system has no direct writes
  }
  const auto start = Clock::now();
  for (std::size_t at = 0; at < source.size(); at += piece) {
    const std::size_t size = std::min(piece, source.size() - at);
    std::memcpy(buffer, source.data() + at, size);
    if (::write(fd, buffer, size) < 0) std::exit(3);
    if (way == Way::early && at / piece % 2 == 1) ::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
  }
  ::fsync(fd);
  const double rate = static_cast<double>(source.size()) / seconds(start);
  ::close(fd);
  fs::remove(path);
  std::free(buffer);
  return rate;
}

// write MB/s, stored share, extra MiB, open ms, read MB/s, processor ns for each KiB while writing
std::vector<double> write_snapshot(const fs::path& folder, const std::vector<std::byte>& data, int level) {
  const fs::path path = folder / "s.kcap";
  std::vector<Region> regions(1);
  regions[0].address = 0x10000;
  regions[0].size = data.size();
  reset_peak();
  const double resident = memory_mib("VmRSS:");
  const double cpu_before = cpu_seconds();
  const auto start = Clock::now();
  {
    Writer writer(path, {.compression_level = level});
    const auto d = writer.begin_dispatch(regions);
    // Through as many buffers as the capture library has; this copy stands for the one from the device.
    std::vector<std::vector<std::byte>> buffers(pieces_in_flight, std::vector<std::byte>(piece));
    std::vector<std::atomic<bool>> busy(pieces_in_flight);
    std::size_t next = 0;
    for (std::size_t at = 0; at < data.size(); at += piece, next = (next + 1) % pieces_in_flight) {
      while (busy[next].load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
      const std::size_t size = std::min(piece, data.size() - at);
      std::memcpy(buffers[next].data(), data.data() + at, size);
      busy[next] = true;
      writer.put(d, 0, State::before, at, std::span(buffers[next]).first(size), [&busy, next] { busy[next] = false; });
    }
    writer.drain();
    Manifest m;
    m.agents.emplace_back();
    m.dispatches.emplace_back();
    m.dispatches[0].code_object = std::string(64, 'a');
    m.dispatches[0].regions = regions;
    writer.commit(m);
  }
  const double time = seconds(start);
  const double cpu = cpu_seconds() - cpu_before;
  const double extra = memory_mib("VmHWM:") - resident;
  const std::uint64_t stored = folder_bytes(path);
  const auto opening = Clock::now();
  const Reader reader(path);
  const double open_ms = seconds(opening) * 1e3;
  const auto reading = Clock::now();
  std::vector<std::byte> buffer(piece);
  for (std::size_t at = 0; at < data.size(); at += buffer.size())
    reader.read(0, 0, State::before, at, std::span(buffer).first(std::min(buffer.size(), data.size() - at)));
  const double read_rate = static_cast<double>(data.size()) / seconds(reading);
  fs::remove_all(path);
  return {static_cast<double>(data.size()) / time,
          100.0 * static_cast<double>(stored) / static_cast<double>(data.size()),
          extra,
          open_ms,
          read_rate,
          cpu * 1e9 / (static_cast<double>(data.size()) / 1024)};
}

void compare(const char* name, const fs::path& folder, const std::vector<std::byte>& data, int level, int rounds) {
  std::vector<double> shares, rates, extras;
  std::vector<double> last;
  double copy = 0, disk = 0;
  for (int round = 0; round < rounds; ++round) {
    copy = copy_rate(data);
    disk = disk_rate(folder, data, Way::early);
    last = in_child([&] { return write_snapshot(folder, data, level); });
    rates.push_back(last[0]);
    // Storage moves only what is stored; the slower of the two is the limit.
    const double limit = std::min(copy, disk / std::max(last[1] / 100, 1e-6));
    shares.push_back(100 * last[0] / limit);
    extras.push_back(last[2]);
  }
  std::printf(
      "%-24s write %6.0f MB/s = %4.0f %% of the slower of copy %6.0f and disk %6.0f MB/s   stored %6.2f %%   "
      "extra memory %5.1f MiB   open %5.2f ms   read %6.0f MB/s   processor %4.0f ns a KiB\n",
      name, median(rates) / 1e6, median(shares), copy / 1e6, disk / 1e6, last[1], median(extras), last[3],
      last[4] / 1e6, last[5]);
}

// Extra memory for a snapshot far larger than this machine's: the same 64 MiB over and over with a counter in each
// chunk, so that every chunk is distinct, into a store that compresses well.
void large(const fs::path& folder, std::uint64_t gib) {
  const std::vector<double> seen = in_child([&] {
    const fs::path path = folder / "large.kcap";
    std::vector<Region> regions(1);
    regions[0].address = 0x10000;
    regions[0].size = gib << 30;
    std::vector<std::byte> data(64 << 20);
    reset_peak();
    const double resident = memory_mib("VmRSS:");
    Writer writer(path, {.sync = false});
    const auto d = writer.begin_dispatch(regions);
    std::uint64_t number = 0;
    for (std::uint64_t at = 0; at < regions[0].size; at += data.size()) {
      for (std::size_t chunk = 0; chunk < data.size(); chunk += chunk_size)
        std::memcpy(&data[chunk], &++number, sizeof number);
      writer.put(d, 0, State::before, at, data, {});
      writer.drain();
    }
    Manifest m;
    m.agents.emplace_back();
    m.dispatches.emplace_back();
    m.dispatches[0].code_object = std::string(64, 'a');
    m.dispatches[0].regions = regions;
    writer.commit(m);
    const double extra = memory_mib("VmHWM:") - resident;
    const double stored = static_cast<double>(folder_bytes(path));
    const auto opening = Clock::now();
    const Reader reader(path);
    const double open_ms = seconds(opening) * 1e3;
    fs::remove_all(path);
    return std::vector<double>{extra, stored, open_ms};
  });
  std::printf("%4llu GiB of distinct chunks: extra memory %5.1f MiB, %.0f MiB stored, open %5.1f ms\n",
              static_cast<unsigned long long>(gib), seen[0], seen[1] / (1 << 20), seen[2]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t size = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1024) << 20;
  const support::TemporaryFolder temporary;
  const fs::path folder = argc > 2 ? fs::path(argv[2]) : temporary.path();
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 3;
  std::vector<std::byte> data(size);
  std::mt19937_64 generator(1);
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    const std::uint64_t value = generator();
    std::memcpy(data.data() + i, &value, 8);
  }
  std::printf("%zu MiB, %u cores, medians of %d rounds\n", size >> 20,
              static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN)), rounds);
  std::vector<double> cached, early, direct;
  for (int round = 0; round < rounds; ++round) {
    cached.push_back(disk_rate(folder, data, Way::cached));
    early.push_back(disk_rate(folder, data, Way::early));
    direct.push_back(disk_rate(folder, data, Way::direct));
  }
  std::printf("%-24s page cache %6.0f MB/s, written back early %6.0f MB/s, O_DIRECT %6.0f MB/s; all with fsync\n",
              "plain file", median(cached) / 1e6, median(early) / 1e6, median(direct) / 1e6);
  compare("random", folder, data, 1, rounds);
  compare("random, no compression", folder, data, 0, rounds);
  float* floats = reinterpret_cast<float*>(data.data());
  for (std::size_t i = 0; i < size / 4; ++i)
    floats[i] = static_cast<float>(i % 4096) * 0.5f + static_cast<float>(i >> 20);
  compare("floats on a grid", folder, data, 1, rounds);
  std::memset(data.data() + size / 50, 0, size - size / 50);
  compare("98 % zeros", folder, data, 1, rounds);
  large(folder, std::max<std::uint64_t>(1, size >> 28));
  return 0;
}
