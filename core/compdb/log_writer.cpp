#include "core/compdb/log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "core/compdb/codec.h"
#include "core/compdb/frame.h"

namespace kerncap::compdb {
namespace {

// File systems on which several hosts may append to one file without seeing each other's end of file: statfs(2).
constexpr long network_file_systems[] = {
    NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, 0xFF534D42 /* CIFS */,   0xFE534D42 /* SMB2 */, FUSE_SUPER_MAGIC,
    AFS_SUPER_MAGIC, V9FS_MAGIC,      0x0BD00BD0 /* Lustre */, 0x47504653 /* GPFS */, 0x19830326 /* BeeGFS */,
};

bool is_network_file_system(int fd) {
  struct statfs information {};
  if (fstatfs(fd, &information) != 0) return false;
  for (long type : network_file_systems) {
    if (information.f_type == type) return true;
  }
  return false;
}

bool write_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (written == 0) errno = ENOSPC;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

int append_fragment(const std::string& folder, const std::string& host, std::string_view frame) {
  const std::string fragments = folder + "/" + fragment_folder;
  if (mkdir(fragments.c_str(), 0777) != 0 && errno != EEXIST) return errno;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  char name[128];
  std::snprintf(name, sizeof name, "/%lld%09ld-%s-%d", static_cast<long long>(now.tv_sec), now.tv_nsec, host.c_str(),
                static_cast<int>(getpid()));
  const std::string final_name = fragments + name + log_suffix;
  const std::string temporary = final_name + ".tmp";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno;
  int failure = write_whole(fd, frame) ? 0 : errno;
  if (close(fd) != 0 && failure == 0) failure = errno;  // NFS reports a full disk here
  if (failure == 0 && rename(temporary.c_str(), final_name.c_str()) != 0) failure = errno;
  if (failure != 0) unlink(temporary.c_str());
  return failure;
}

// Opens the log for appending such that compaction, which renames it away, cannot overtake us: the shared lock is held
// until the write is done, and the name is looked at again under it. The lock never waits for other writers, only for
// a compaction that is reading the file, and a file system without locks is no reason to stop.
int open_log(const std::string& path) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno != EWOULDBLOCK) return fd;
    struct stat opened {
    }, named{};
    if (fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
        opened.st_dev == named.st_dev) {
      return fd;
    }
    close(fd);
  }
  errno = EBUSY;
  return -1;
}

}  // namespace

std::string log_host_name() {
  char name[65] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0' || name[0] == '.') return "localhost";
  for (char& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (c != '\0' && !plain) c = '_';
  }
  return name;
}

int append_record(const std::string& folder, const Record& record) {
  const std::string frame = make_frame(FrameType::record, encode_record(record));
  if (frame.size() > largest_payload) return EFBIG;
  const std::string host = log_host_name();
  const std::string logs = folder + "/" + log_folder;
  const std::string path = logs + "/" + host + log_suffix;
  int fd = open_log(path);
  if (fd < 0 && errno == ENOENT) {
    if (mkdir(logs.c_str(), 0777) != 0 && errno != EEXIST) return errno;
    fd = open_log(path);
  }
  if (fd < 0) return errno;
  int failure = 0;
  if (is_network_file_system(fd)) {
    failure = append_fragment(folder, host, frame);
  } else if (!write_whole(fd, frame)) {
    failure = errno;
  }
  if (close(fd) != 0 && failure == 0) failure = errno;
  return failure;
}

}  // namespace kerncap::compdb
