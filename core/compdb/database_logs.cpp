#include "core/compdb/database_logs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/compdb/file_system.h"
#include "core/compdb/log_reader.h"
#include "core/support/error.h"

namespace kerncap::compdb {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;

DatabaseLogs::DatabaseLogs(const fs::path& folder) {
  constexpr int attempts = 20;
  for (int attempt = 0;; ++attempt) {
    bool all = true;
    for (const fs::path& path : log_files(folder)) {
      const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0 && errno != ENOENT) {
        const int error = errno;
        close_all();
        fail(ExitCode::bad_input, "cannot read {}: {}", path.string(), std::strerror(error));
      }
      struct stat status {};
      if (fd < 0 || ::fstat(fd, &status) != 0) {
        if (fd >= 0) ::close(fd);
        all = false;  // a compaction has removed it: its records are in another log that we have not seen yet
        break;
      }
      logs_.push_back({.name = path.lexically_relative(folder).string(),
                       .fd = fd,
                       .length = static_cast<std::uint64_t>(status.st_size),
                       .inode = status.st_ino});
    }
    if (all) return;
    close_all();
    if (attempt == attempts) fail(ExitCode::bad_input, "the logs in {} vanish while they are read", folder.string());
  }
}

DatabaseLogs::~DatabaseLogs() { close_all(); }

void DatabaseLogs::close_all() {
  for (const Log& log : logs_) ::close(log.fd);
  logs_.clear();
}

bool DatabaseLogs::read_bytes(std::size_t log, std::uint64_t offset, std::size_t size, std::string& bytes) const {
  bytes.resize(size);
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::pread(logs_[log].fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

std::uint64_t DatabaseLogs::fingerprint(std::size_t log, std::uint64_t consumed) const {
  constexpr std::uint64_t edge = 64;
  const auto size = static_cast<std::size_t>(std::min(edge, consumed));
  std::string first, last;
  if (!read_bytes(log, 0, size, first) || !read_bytes(log, consumed - size, size, last)) return 0;
  return hash_bytes(first) * 31 + hash_bytes(last);
}

bool DatabaseLogs::read_frame(const RecordLocation& location, std::string& bytes, Frame& frame) const {
  return location.size != 0 && location.log < size() && location.size <= length(location.log) &&
         location.offset <= length(location.log) - location.size &&
         read_bytes(location.log, location.offset, location.size, bytes) && frame_at(bytes, 0, frame);
}

bool DatabaseLogs::read(const RecordLocation& location, Record& record) const {
  std::string bytes;
  Frame frame;
  return read_frame(location, bytes, frame) && read_record(frame, record, nullptr);
}

bool DatabaseLogs::skim(const RecordLocation& location, RecordSkimmer& skimmer, std::string& bytes) const {
  Frame frame;
  return read_frame(location, bytes, frame) && skimmer.read(frame);
}

DatabaseLogs::Mapping::Mapping(const DatabaseLogs& logs, std::size_t log)
    : size_(static_cast<std::size_t>(logs.length(log))) {
  if (size_ == 0) return;
  data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, logs.logs_[log].fd, 0);
  if (data_ == MAP_FAILED) fail(ExitCode::environment, "cannot map {}: {}", logs.name(log), std::strerror(errno));
  ::madvise(data_, size_, MADV_SEQUENTIAL);
}

DatabaseLogs::Mapping::~Mapping() {
  if (size_ != 0) ::munmap(data_, size_);
}

void DatabaseLogs::Mapping::forget_up_to(std::uint64_t offset) {
  const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t end = std::min<std::uint64_t>(offset, size_) / page * page;
  if (end <= forgotten_) return;
  ::madvise(static_cast<char*>(data_) + forgotten_, end - forgotten_, MADV_DONTNEED);
  forgotten_ = end;
}

}  // namespace kerncap::compdb
