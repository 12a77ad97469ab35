// Compaction while writers write. A live log is renamed ("sealed") and locked exclusively, which waits for the writers
// that have it open under their shared locks; later writers notice that the name leads elsewhere and make a new log
// (log_writer.cpp). What is worth keeping of all sealed logs and fragments goes into one new sealed log that appears by
// rename; only then the old ones are removed. A crash in between leaves records twice, which changes nothing.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <unordered_map>

#include "core/compdb/codec.h"
#include "core/compdb/database_logs.h"
#include "core/compdb/frame.h"
#include "core/compdb/log_writer.h"
#include "core/compdb/operations.h"
#include "core/compdb/record_rank.h"
#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::compdb {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;

class Lock {
 public:
  explicit Lock(const fs::path& file) : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail(ExitCode::environment, "cannot open {}: {}", file.string(), std::strerror(errno));
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      ::close(fd_);
      fail(ExitCode::environment, "another compaction of {} is running", file.parent_path().string());
    }
  }
  ~Lock() { ::close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int fd_;
};

constexpr const char* sealed_mark = ".sealed";

bool is_sealed(const fs::path& log) { return log.stem().extension() == sealed_mark; }

fs::path sealed_name(const fs::path& logs) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return logs / (log_host_name() + "." + std::to_string(ns) + sealed_mark + log_suffix);
}

// Only this host's live log: the others' writers cannot be waited for on every file system.
void seal_live_log(const fs::path& logs) {
  const fs::path live = logs / (log_host_name() + log_suffix);
  const int fd = ::open(live.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const fs::path sealed = sealed_name(logs);
  if (::rename(live.c_str(), sealed.c_str()) != 0) {
    const int error = errno;
    ::close(fd);
    fail(ExitCode::environment, "cannot rename {}: {}", live.string(), std::strerror(error));
  }
  ::flock(fd, LOCK_EX);  // a file system without locks has no concurrent writers to wait for here either
  ::close(fd);
}

// A record in a log that is read, by its place: all records of a large build do not fit into memory.
struct Place {
  RecordRank rank;
  RecordLocation location;
  std::vector<RecordLocation> jobs;  // where a compiler cache answered: the record that has the jobs, if there is one
};

// The newest good record of each key, in the order in which the keys first appeared.
std::vector<Place> newest(std::vector<Place> all) {
  std::ranges::stable_sort(all, {}, [](const Place& place) { return place.rank.finished; });
  std::unordered_map<std::uint64_t, std::size_t> by_key;
  std::vector<Place> kept;
  for (Place& place : all) {
    const auto [position, fresh] = by_key.try_emplace(place.rank.key, kept.size());
    if (fresh) {
      kept.push_back(std::move(place));
      continue;
    }
    Place& earlier = kept[position->second];
    if (!replaces(place.rank, earlier.rank)) continue;
    if (takes_jobs_of(place.rank, earlier.rank)) {
      place.jobs = earlier.rank.cached ? std::move(earlier.jobs) : std::vector{earlier.location};
    }
    earlier = std::move(place);
  }
  return kept;
}

// The frame to keep of a record: as it is, or anew where it takes the jobs of an earlier one.
bool frame_to_keep(const DatabaseLogs& logs, const Place& place, std::string& bytes) {
  Frame frame;
  if (place.jobs.empty()) return logs.read_frame(place.location, bytes, frame);
  Record record, earlier;
  if (!logs.read(place.location, record)) return false;
  if (logs.read(place.jobs.front(), earlier)) take_jobs(record, std::move(earlier));
  bytes = make_frame(FrameType::record, encode_record(record));
  return true;
}

std::uint64_t remove_unused_blobs(const fs::path& folder, const std::set<std::string, std::less<>>& used) {
  std::uint64_t removed = 0;
  std::error_code error;
  const auto an_hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (fs::directory_iterator entry(folder / blob_folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    // A blob is written before the record that names it.
    if (used.contains(entry->path().filename().string()) || entry->last_write_time(ignored) > an_hour_ago) continue;
    if (fs::remove(entry->path(), ignored)) ++removed;
  }
  return removed;
}

}  // namespace

CompactReport compact(const fs::path& folder) {
  const Lock lock(folder / "compact.lock");
  CompactReport report;
  seal_live_log(folder / log_folder);

  // Open, so that what other writers and an earlier reader see of these files no longer matters.
  const DatabaseLogs logs(folder);
  std::set<std::string> inputs;
  std::vector<Place> all;
  RecordSkimmer skimmer;
  for (std::uint32_t log = 0; log < logs.size(); ++log) {
    const fs::path path = folder / logs.name(log);
    report.bytes_before += logs.length(log);
    if (is_sealed(path) || path.parent_path().filename() == fragment_folder) inputs.insert(path.string());
    DatabaseLogs::Mapping mapping(logs, log);
    scan_frames(mapping.bytes(), 0, [&](const Frame& frame) {
      if (!skimmer.read(frame)) return;
      all.push_back({rank_of(skimmer), {frame.offset, log, static_cast<std::uint32_t>(frame.size)}, {}});
      mapping.forget_up_to(frame.offset);
    });
  }
  report.records_before = all.size();
  const std::vector<Place> kept = newest(std::move(all));
  report.records_after = kept.size();
  if (inputs.empty() && kept.empty())
    return report;  // nothing was recorded yet: there may not even be a folder of logs

  std::set<std::string, std::less<>> used_blobs;
  std::error_code ignored;
  fs::create_directory(folder / log_folder, ignored);  // all records may lie in fragments; writing says what is wrong
  support::AtomicFile compacted(sealed_name(folder / log_folder), 0644);
  std::string bytes;
  for (const Place& place : kept) {
    Frame frame;
    if (!frame_to_keep(logs, place, bytes) || !frame_at(bytes, 0, frame) || !skimmer.read(frame)) {
      fail(ExitCode::environment, "a log in {} changed while it was compacted", folder.string());
    }
    compacted.write(bytes);
    for (const RecordView::File& file : skimmer.record().files) {
      if (const std::string_view digest = skimmer.text(file.digest); !digest.empty()) used_blobs.emplace(digest);
    }
  }
  compacted.commit();
  for (const std::string& input : inputs) {
    std::error_code error;
    fs::remove(input, error);  // what cannot be removed is read twice, and compacted next time
  }
  report.blobs_removed = remove_unused_blobs(folder, used_blobs);
  report.bytes_after = log_size(folder);
  return report;
}

}  // namespace kerncap::compdb
