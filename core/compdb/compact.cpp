// Compaction while writers write. A live log is renamed ("sealed") and locked exclusively, which waits for the writers
// that have it open under their shared locks; later writers notice that the name leads elsewhere and make a new log
// (log_writer.cpp). What is worth keeping of all sealed logs and fragments goes into one new sealed log that appears by
// rename; only then the old ones are removed. A crash in between leaves records twice, which changes nothing.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>

#include "core/compdb/codec.h"
#include "core/compdb/frame.h"
#include "core/compdb/log_reader.h"
#include "core/compdb/log_writer.h"
#include "core/compdb/operations.h"
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

std::uint64_t remove_unused_blobs(const fs::path& folder, const std::set<std::string>& used) {
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

  std::set<std::string> inputs;
  std::vector<Record> all;
  for_each_log(
      folder,
      [&] {
        inputs.clear();
        all.clear();
        report = {};
      },
      [&](const fs::path& path, std::string_view log) {
        report.bytes_before += log.size();
        if (is_sealed(path) || path.parent_path().filename() == fragment_folder) inputs.insert(path.string());
        scan_frames(log, 0, [&](const Frame& frame) {
          Record record;
          if (read_record(frame, record, nullptr)) all.push_back(std::move(record));
        });
      });
  report.records_before = all.size();
  const std::vector<Record> kept = newest_records(std::move(all), nullptr);
  report.records_after = kept.size();

  if (inputs.empty() && kept.empty())
    return report;  // nothing was recorded yet: there may not even be a folder of logs
  std::set<std::string> used_blobs;
  std::error_code ignored;
  fs::create_directory(folder / log_folder, ignored);  // all records may lie in fragments; writing says what is wrong
  support::AtomicFile compacted(sealed_name(folder / log_folder), 0644);
  for (const Record& record : kept) {
    const std::string frame = make_frame(FrameType::record, encode_record(record));
    compacted.write(frame);
    for (const SourceFile& file : record.files) {
      if (!file.digest.empty()) used_blobs.insert(file.digest);
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
