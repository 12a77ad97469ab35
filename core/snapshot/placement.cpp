#include "core/snapshot/placement.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::snapshot {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (fd_ < 0) fail(ExitCode::environment, "cannot open '{}': {}", path.string(), std::strerror(errno));
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }  // a full disk may show only here

 private:
  int fd_;
};

void copy_bytes(int from, int to, const fs::path& name) {
  for (bool in_kernel = true;;) {
    ssize_t got = in_kernel ? ::copy_file_range(from, nullptr, to, nullptr, std::size_t{1} << 30, 0) : -1;
    if (in_kernel && got < 0 && errno != EINTR && errno != ENOSPC && errno != EDQUOT && errno != EIO) {
      in_kernel = false;  // not between these file systems; both positions are where they were
    }
    if (!in_kernel) {
      static constexpr std::size_t size = 1 << 20;
      static thread_local char buffer[size];
      got = ::read(from, buffer, size);
      if (got > 0) support::write_all(to, std::as_bytes(std::span(buffer, static_cast<std::size_t>(got))), name.string());
    }
    if (got == 0) return;
    if (got < 0 && errno != EINTR)
      fail(ExitCode::environment, "cannot write '{}': {}", name.string(), std::strerror(errno));
  }
}

void copy_regular_file(const fs::path& from, const fs::path& to) {
  const Descriptor source(from, O_RDONLY | O_NOFOLLOW);
  struct stat status {};
  if (::fstat(source.get(), &status) != 0 || !S_ISREG(status.st_mode))
    fail(ExitCode::bad_input, "'{}' is not a regular file", from.string());
  Descriptor target(to, O_WRONLY | O_CREAT | O_EXCL);
  if (::ioctl(target.get(), FICLONE, source.get()) != 0) copy_bytes(source.get(), target.get(), to);
  if (!target.close()) fail(ExitCode::environment, "cannot write '{}': {}", to.string(), std::strerror(errno));
}

void make_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0)
    fail(ExitCode::environment, "cannot make the folder '{}': {}", path.string(), std::strerror(errno));
}

}  // namespace

void place(const fs::path& from, const fs::path& to, Transfer transfer) {
  std::error_code error;
  const fs::path source = fs::canonical(from, error);  // a project may have a link in the snapshot's place
  if (error) fail(ExitCode::environment, "cannot read '{}': {}", from.string(), error.message());
  if (transfer == Transfer::take) {
    if (::renameat2(AT_FDCWD, source.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
    if (errno != EXDEV && errno != EINVAL && errno != EPERM)
      fail(ExitCode::environment, "cannot move the snapshot to '{}': {}", to.string(), std::strerror(errno));
  }
  make_folder(to);
  // The iterator's paths begin with `source`; folders come before what is in them. Links are not followed.
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source)) {
    const fs::path target = to / entry.path().lexically_relative(source);
    if (entry.is_directory() && !entry.is_symlink())
      make_folder(target);
    else
      copy_regular_file(entry.path(), target);
  }
  if (transfer == Transfer::take) fs::remove_all(source, error);  // a leftover is no harm
}

}  // namespace kerncap::snapshot
