// How fast a snapshot is written, beside what the machine can do at most: copying memory and writing to the same disk,
// measured in the same run. usage: snapshot_throughput [MIB] [FOLDER]
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "core/snapshot/reader.h"
#include "core/snapshot/writer.h"
#include "core/support/file.h"

namespace {

namespace fs = std::filesystem;
using namespace kerncap;
using namespace kerncap::snapshot;
using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

std::uint64_t folder_bytes(const fs::path& folder) {
  std::uint64_t sum = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) sum += entry.file_size();
  return sum;
}

long peak_rss_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

double copy_rate(const std::vector<std::byte>& source) {
  std::vector<std::byte> target(4 << 20);
  std::memset(target.data(), 1, target.size());
  const auto start = Clock::now();
  for (std::size_t at = 0; at + target.size() <= source.size(); at += target.size())
    std::memcpy(target.data(), source.data() + at, target.size());
  return static_cast<double>(source.size()) / seconds(start);
}

double disk_rate(const fs::path& folder, const std::vector<std::byte>& source) {
  const fs::path path = folder / "plain";
  const auto start = Clock::now();
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  for (std::size_t at = 0; at < source.size(); at += 1 << 20)
    if (::write(fd, source.data() + at, std::min<std::size_t>(1 << 20, source.size() - at)) < 0) std::exit(3);
  ::fsync(fd);
  ::close(fd);
  const double rate = static_cast<double>(source.size()) / seconds(start);
  fs::remove(path);
  return rate;
}

void one(const char* name, const fs::path& folder, const std::vector<std::byte>& data, int level) {
  const fs::path path = folder / "s.kcap";
  std::vector<Region> regions(1);
  regions[0].address = 0x10000;
  regions[0].size = data.size();
  const long rss = peak_rss_kib();
  const auto start = Clock::now();
  {
    Writer writer(path, {.compression_level = level});
    const auto d = writer.begin_dispatch(regions);
    constexpr std::size_t piece = 4 << 20;
    for (std::size_t at = 0; at < data.size(); at += piece)
      writer.put(d, 0, State::before, at, std::span(data).subspan(at, std::min(piece, data.size() - at)), {});
    writer.drain();
    Manifest m;
    m.agents.emplace_back();
    m.dispatches.emplace_back();
    m.dispatches[0].code_object = std::string(64, 'a');
    m.dispatches[0].regions = regions;
    writer.commit(m);
  }
  const double time = seconds(start);
  const std::uint64_t stored = folder_bytes(path);
  const auto opening = Clock::now();
  const Reader reader(path);
  const double open_ms = seconds(opening) * 1e3;
  const auto reading = Clock::now();
  std::vector<std::byte> buffer(4 << 20);
  for (std::size_t at = 0; at < data.size(); at += buffer.size())
    reader.read(0, 0, State::before, at, std::span(buffer).first(std::min(buffer.size(), data.size() - at)));
  std::printf("%-28s write %6.0f MB/s   stored %6.2f %%   extra memory %5.1f MiB   open %5.2f ms   read %6.0f MB/s\n",
              name, static_cast<double>(data.size()) / time / 1e6,
              100.0 * static_cast<double>(stored) / static_cast<double>(data.size()),
              static_cast<double>(peak_rss_kib() - rss) / 1024.0, open_ms,
              static_cast<double>(data.size()) / seconds(reading) / 1e6);
  fs::remove_all(path);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t size = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1024) << 20;
  const support::TemporaryFolder temporary;
  const fs::path folder = argc > 2 ? fs::path(argv[2]) : temporary.path();
  std::vector<std::byte> data(size);
  std::mt19937_64 generator(1);
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    const std::uint64_t value = generator();
    std::memcpy(data.data() + i, &value, 8);
  }
  std::printf("%zu MiB, %u cores\n", size >> 20, static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN)));
  std::printf("%-28s       %6.0f MB/s\n", "copying memory", copy_rate(data) / 1e6);
  std::printf("%-28s       %6.0f MB/s\n", "writing a plain file + fsync", disk_rate(folder, data) / 1e6);
  one("random", folder, data, 1);
  one("random, no compression", folder, data, 0);
  float* floats = reinterpret_cast<float*>(data.data());
  for (std::size_t i = 0; i < size / 4; ++i)
    floats[i] = static_cast<float>(i % 4096) * 0.5f + static_cast<float>(i >> 20);
  one("floats on a grid", folder, data, 1);
  std::memset(data.data() + size / 50, 0, size - size / 50);
  one("98 % zeros", folder, data, 1);
  return 0;
}
