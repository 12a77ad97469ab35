// Replaced libc functions: opening, describing and duplicating files.
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "softgpu/descriptors.h"
#include "softgpu/interpose.h"
#include "softgpu/report.h"
#include "softgpu/system_calls.h"

namespace kerncap::softgpu {
namespace {

constexpr unsigned drm_major = 226, kfd_major = 511;

int fail_with(int error) {
  errno = error;
  return -1;
}

int text_descriptor(const std::string& text, bool close_on_exec) {
  const int fd = raw::memory_file("kerncap-gpu-file");
  if (fd < 0) return -1;
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || lseek(fd, 0, SEEK_SET) != 0) {
    raw::close(fd);
    return fail_with(EIO);
  }
  if (!close_on_exec) fcntl(fd, F_SETFD, 0);
  return fd;
}

void describe(const TreeNode& node, struct stat* status) {
  *status = {};
  status->st_nlink = 1;
  status->st_dev = makedev(0, 0xff);  // an anonymous file system of its own
  status->st_ino = node.inode;
  status->st_blksize = 4096;
  switch (node.kind) {
    case NodeKind::kfd_device:
      status->st_mode = S_IFCHR | 0666;
      status->st_rdev = makedev(kfd_major, 0);
      break;
    case NodeKind::drm_device:
      status->st_mode = S_IFCHR | 0666;
      status->st_rdev = makedev(drm_major, node.minor);
      break;
    case NodeKind::text:
      status->st_mode = S_IFREG | 0444;
      status->st_size = 4096;
      break;
    case NodeKind::link:
      status->st_mode = S_IFLNK | 0777;
      break;
    case NodeKind::folder:
      status->st_mode = S_IFDIR | 0555;
      break;
  }
}

int describe_path(Driver& driver, const char* path, bool follow, struct stat* status) {
  const TreeNode* node = follow ? driver.tree.find(path) : driver.tree.find_link(VirtualTree::normalise(path));
  if (node == nullptr && !follow) node = driver.tree.find(path);
  if (node == nullptr) return fail_with(ENOENT);
  describe(*node, status);
  return 0;
}

// 0 when the descriptor is one of ours, else 1.
int describe_descriptor(int fd, struct stat* status) {
  const auto file = file_of(fd);
  if (file == nullptr) return 1;
  TreeNode node;
  node.kind = file->kind == FileKind::kfd   ? NodeKind::kfd_device
              : file->kind == FileKind::drm ? NodeKind::drm_device
                                            : NodeKind::folder;
  node.minor = file->minor;
  describe(node, status);
  status->st_ino = file->inode;
  return 0;
}

constexpr const char* fopen_modes = "rwa";

void convert(const struct stat& from, struct statx* to) {
  *to = {};
  to->stx_mask = STATX_BASIC_STATS;
  to->stx_mode = static_cast<unsigned short>(from.st_mode);
  to->stx_nlink = static_cast<unsigned>(from.st_nlink);
  to->stx_ino = from.st_ino;
  to->stx_size = static_cast<unsigned long long>(from.st_size);
  to->stx_blksize = static_cast<unsigned>(from.st_blksize);
  to->stx_dev_major = major(from.st_dev);
  to->stx_dev_minor = minor(from.st_dev);
  to->stx_rdev_major = major(from.st_rdev);
  to->stx_rdev_minor = minor(from.st_rdev);
}

}  // namespace

std::string path_in_folder(int folder, const char* path) {
  if (path == nullptr || *path == '/') return {};
  const auto file = file_of(folder);
  if (file == nullptr || file->kind != FileKind::folder) return {};
  return file->path + "/" + path;
}

int open_node(Driver& driver, const char* path, int flags) {
  std::string resolved;
  const TreeNode* node = driver.tree.find(path, &resolved);
  trace("open %s: %s", path, node == nullptr ? "absent" : "ours");
  if (node == nullptr) return fail_with(ENOENT);
  const bool close_on_exec = (flags & O_CLOEXEC) != 0;
  if (node->kind == NodeKind::text) {
    if ((flags & O_DIRECTORY) != 0) return fail_with(ENOTDIR);
    return (flags & O_ACCMODE) == O_RDONLY ? text_descriptor(node->text, close_on_exec) : fail_with(EACCES);
  }
  auto file = std::make_shared<OpenFile>();
  file->driver = &driver;
  file->path = resolved;
  switch (node->kind) {
    case NodeKind::kfd_device:
      file->kind = FileKind::kfd;
      break;
    case NodeKind::drm_device: {
      Device* device = driver.device_of_minor(node->minor);
      if (device == nullptr) return fail_with(ENODEV);
      file->kind = FileKind::drm;
      file->minor = node->minor;
      file->drm = std::make_unique<DrmFile>(driver, *device, node->minor);
      break;
    }
    default:
      if ((flags & O_ACCMODE) != O_RDONLY) return fail_with(EISDIR);
      file->kind = FileKind::folder;
      break;
  }
  if (file->kind != FileKind::folder && (flags & O_DIRECTORY) != 0) return fail_with(ENOTDIR);
  return open_descriptor(std::move(file), close_on_exec);
}

}  // namespace kerncap::softgpu

using namespace kerncap::softgpu;  // NOLINT: the functions below must be global

namespace {

Next<int(int, const char*, int, ...)> next_openat("openat");
Next<FILE*(const char*, const char*)> next_fopen("fopen");
Next<int(const char*, int)> next_access("access");
Next<int(int, const char*, int, int)> next_faccessat("faccessat");
Next<ssize_t(const char*, char*, size_t)> next_readlink("readlink");
Next<ssize_t(int, const char*, char*, size_t)> next_readlinkat("readlinkat");
Next<char*(const char*, char*)> next_realpath("realpath");
Next<char*(const char*, char*, size_t)> next_realpath_chk("__realpath_chk");
Next<int(int, const char*, struct stat*, int)> next_fstatat("fstatat");
Next<int(int, const char*, int, unsigned, struct statx*)> next_statx("statx");
Next<ssize_t(const char*, const char*, void*, size_t)> next_getxattr("getxattr");
Next<ssize_t(const char*, const char*, void*, size_t)> next_lgetxattr("lgetxattr");
Next<int(int)> next_close("close");
Next<int(int)> next_dup("dup");
Next<int(int, int)> next_dup2("dup2");
Next<int(int, int, int)> next_dup3("dup3");
Next<int(int, int, ...)> next_fcntl("fcntl");

int open_any(int folder, const char* path, int flags, mode_t mode) {
  return guarded(-1, [&] {
    if (Driver* driver = owner_of(path)) return open_node(*driver, path, flags);
    if (folder != AT_FDCWD) {
      const std::string joined = path_in_folder(folder, path);
      if (!joined.empty()) {
        if (Driver* driver = Driver::get()) return open_node(*driver, joined.c_str(), flags);
      }
    }
    return next_openat(folder, path, flags, mode);
  });
}

bool needs_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

FILE* fopen_any(const char* path, const char* mode) {
  Driver* driver = owner_of(path);
  if (driver == nullptr) return next_fopen(path, mode);
  return guarded(static_cast<FILE*>(nullptr), [&]() -> FILE* {
    if (mode == nullptr || std::strchr(fopen_modes, *mode) == nullptr) {
      errno = EINVAL;
      return nullptr;
    }
    int flags = *mode == 'r' && std::strchr(mode, '+') == nullptr ? O_RDONLY : O_RDWR;
    if (std::strchr(mode, 'e') != nullptr) flags |= O_CLOEXEC;
    const int fd = open_node(*driver, path, flags);
    return fd < 0 ? nullptr : fdopen(fd, mode);
  });
}

int access_any(int folder, const char* path, int mode, int flags) {
  Driver* driver = owner_of(path);
  if (driver == nullptr)
    return folder == AT_FDCWD && flags == 0 ? next_access(path, mode) : next_faccessat(folder, path, mode, flags);
  return guarded(-1, [&] {
    const TreeNode* node = driver->tree.find(path);
    if (node != nullptr &&
        ((mode & W_OK) == 0 || node->kind == NodeKind::kfd_device || node->kind == NodeKind::drm_device))
      return 0;
    errno = node == nullptr ? ENOENT : EACCES;
    return -1;
  });
}

ssize_t readlink_in(Driver& driver, const char* path, char* buffer, size_t size) {
  return guarded(static_cast<ssize_t>(-1), [&]() -> ssize_t {
    const TreeNode* node = driver.tree.find_link(VirtualTree::normalise(path));
    std::string resolved;
    if (node == nullptr && driver.tree.find(path, &resolved) != nullptr) node = driver.tree.find_link(resolved);
    if (node == nullptr || node->kind != NodeKind::link) {
      errno = node == nullptr ? ENOENT : EINVAL;
      return -1;
    }
    const size_t length = std::min(size, node->text.size());
    std::memcpy(buffer, node->text.data(), length);
    return static_cast<ssize_t>(length);
  });
}

char* realpath_in(Driver& driver, const char* path, char* resolved) {
  return guarded(static_cast<char*>(nullptr), [&]() -> char* {
    std::string real;
    if (driver.tree.find(path, &real) == nullptr || real.size() >= PATH_MAX) {
      errno = ENOENT;
      return nullptr;
    }
    return resolved == nullptr ? strdup(real.c_str()) : std::strcpy(resolved, real.c_str());
  });
}

// 0 or -1 when the file is ours, 1 when it is not.
int stat_ours(int folder, const char* path, struct stat* status, int flags) {
  return guarded(-1, [&] {
    if (path != nullptr && *path == '\0' && (flags & AT_EMPTY_PATH) != 0) return describe_descriptor(folder, status);
    const bool follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
    if (Driver* driver = owner_of(path)) return describe_path(*driver, path, follow, status);
    if (folder == AT_FDCWD) return 1;
    const std::string joined = path_in_folder(folder, path);
    Driver* driver = joined.empty() ? nullptr : Driver::get();
    return driver == nullptr ? 1 : describe_path(*driver, joined.c_str(), follow, status);
  });
}

int stat_any(int folder, const char* path, struct stat* status, int flags) {
  const int found = stat_ours(folder, path, status, flags);
  return found == 1 ? next_fstatat(folder, path, status, flags) : found;
}

int fstat_any(int fd, struct stat* status) { return stat_any(fd, "", status, AT_EMPTY_PATH); }

// The 64-bit forms have the same layout on x86-64 and AArch64.
struct stat* plain(struct stat64* status) {
  static_assert(sizeof(struct stat) == sizeof(struct stat64));
  return reinterpret_cast<struct stat*>(status);
}

}  // namespace

#define KERNCAP_OPEN(name)                                    \
  KERNCAP_EXPORT int name(const char* path, int flags, ...) { \
    mode_t mode = 0;                                          \
    if (needs_mode(flags)) {                                  \
      va_list arguments;                                      \
      va_start(arguments, flags);                             \
      mode = va_arg(arguments, mode_t);                       \
      va_end(arguments);                                      \
    }                                                         \
    return open_any(AT_FDCWD, path, flags, mode);             \
  }
#define KERNCAP_OPENAT(name)                                              \
  KERNCAP_EXPORT int name(int folder, const char* path, int flags, ...) { \
    mode_t mode = 0;                                                      \
    if (needs_mode(flags)) {                                              \
      va_list arguments;                                                  \
      va_start(arguments, flags);                                         \
      mode = va_arg(arguments, mode_t);                                   \
      va_end(arguments);                                                  \
    }                                                                     \
    return open_any(folder, path, flags, mode);                           \
  }
KERNCAP_OPEN(open)
KERNCAP_OPEN(open64)
KERNCAP_OPENAT(openat)
KERNCAP_OPENAT(openat64)
KERNCAP_EXPORT int __open_2(const char* path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
KERNCAP_EXPORT int __open64_2(const char* path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
KERNCAP_EXPORT int __openat_2(int folder, const char* path, int flags) { return open_any(folder, path, flags, 0); }
KERNCAP_EXPORT int __openat64_2(int folder, const char* path, int flags) { return open_any(folder, path, flags, 0); }

KERNCAP_EXPORT FILE* fopen(const char* path, const char* mode) { return fopen_any(path, mode); }
KERNCAP_EXPORT FILE* fopen64(const char* path, const char* mode) { return fopen_any(path, mode); }

KERNCAP_EXPORT int access(const char* path, int mode) noexcept { return access_any(AT_FDCWD, path, mode, 0); }
KERNCAP_EXPORT int faccessat(int folder, const char* path, int mode, int flags) noexcept {
  return access_any(folder, path, mode, flags);
}

KERNCAP_EXPORT ssize_t readlink(const char* path, char* buffer, size_t size) noexcept {
  Driver* driver = owner_of(path);
  return driver == nullptr ? next_readlink(path, buffer, size) : readlink_in(*driver, path, buffer, size);
}
KERNCAP_EXPORT ssize_t readlinkat(int folder, const char* path, char* buffer, size_t size) noexcept {
  Driver* driver = owner_of(path);
  return driver == nullptr ? next_readlinkat(folder, path, buffer, size) : readlink_in(*driver, path, buffer, size);
}
KERNCAP_EXPORT char* realpath(const char* path, char* resolved) noexcept {
  Driver* driver = owner_of(path);
  return driver == nullptr ? next_realpath(path, resolved) : realpath_in(*driver, path, resolved);
}
KERNCAP_EXPORT char* __realpath_chk(const char* path, char* resolved, size_t size) noexcept {
  Driver* driver = owner_of(path);
  return driver == nullptr ? next_realpath_chk(path, resolved, size) : realpath_in(*driver, path, resolved);
}

KERNCAP_EXPORT int stat(const char* path, struct stat* status) noexcept { return stat_any(AT_FDCWD, path, status, 0); }
KERNCAP_EXPORT int lstat(const char* path, struct stat* status) noexcept {
  return stat_any(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
KERNCAP_EXPORT int fstat(int fd, struct stat* status) noexcept { return fstat_any(fd, status); }
KERNCAP_EXPORT int fstatat(int folder, const char* path, struct stat* status, int flags) noexcept {
  return stat_any(folder, path, status, flags);
}
KERNCAP_EXPORT int stat64(const char* path, struct stat64* status) noexcept {
  return stat_any(AT_FDCWD, path, plain(status), 0);
}
KERNCAP_EXPORT int lstat64(const char* path, struct stat64* status) noexcept {
  return stat_any(AT_FDCWD, path, plain(status), AT_SYMLINK_NOFOLLOW);
}
KERNCAP_EXPORT int fstat64(int fd, struct stat64* status) noexcept { return fstat_any(fd, plain(status)); }
KERNCAP_EXPORT int fstatat64(int folder, const char* path, struct stat64* status, int flags) noexcept {
  return stat_any(folder, path, plain(status), flags);
}
KERNCAP_EXPORT int statx(int folder, const char* path, int flags, unsigned mask, struct statx* result) noexcept {
  struct stat status;
  const int found = stat_ours(folder, path, &status, flags);
  if (found == 1) return next_statx(folder, path, flags, mask, result);
  if (found == 0) convert(status, result);
  return found;
}
// `ls -l` asks for security contexts and access lists.
KERNCAP_EXPORT ssize_t getxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  return owner_of(path) == nullptr ? next_getxattr(path, name, value, size) : fail_with(ENOTSUP);
}
KERNCAP_EXPORT ssize_t lgetxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  return owner_of(path) == nullptr ? next_lgetxattr(path, name, value, size) : fail_with(ENOTSUP);
}
// Programs linked against a glibc older than 2.33 call these instead.
KERNCAP_EXPORT int __xstat(int, const char* path, struct stat* status) { return stat_any(AT_FDCWD, path, status, 0); }
KERNCAP_EXPORT int __lxstat(int, const char* path, struct stat* status) {
  return stat_any(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
KERNCAP_EXPORT int __fxstat(int, int fd, struct stat* status) { return fstat_any(fd, status); }
KERNCAP_EXPORT int __xstat64(int, const char* path, struct stat64* status) {
  return stat_any(AT_FDCWD, path, plain(status), 0);
}
KERNCAP_EXPORT int __lxstat64(int, const char* path, struct stat64* status) {
  return stat_any(AT_FDCWD, path, plain(status), AT_SYMLINK_NOFOLLOW);
}
KERNCAP_EXPORT int __fxstat64(int, int fd, struct stat64* status) { return fstat_any(fd, plain(status)); }

KERNCAP_EXPORT int close(int fd) {
  guarded(0, [&] {
    forget_descriptor(fd);
    return 0;
  });
  return next_close(fd);
}

namespace {

int copied(int from, int to) {
  return guarded(to, [&] {
    copy_descriptor(from, to);
    return to;
  });
}

}  // namespace

KERNCAP_EXPORT int dup(int fd) noexcept { return copied(fd, next_dup(fd)); }
KERNCAP_EXPORT int dup2(int fd, int to) noexcept { return copied(fd, next_dup2(fd, to)); }
KERNCAP_EXPORT int dup3(int fd, int to, int flags) noexcept { return copied(fd, next_dup3(fd, to, flags)); }

#define KERNCAP_FCNTL(name)                                                   \
  KERNCAP_EXPORT int name(int fd, int command, ...) {                         \
    va_list arguments;                                                        \
    va_start(arguments, command);                                             \
    void* argument = va_arg(arguments, void*);                                \
    va_end(arguments);                                                        \
    const int result = next_fcntl(fd, command, argument);                     \
    const bool duplicated = command == F_DUPFD || command == F_DUPFD_CLOEXEC; \
    return duplicated ? copied(fd, result) : result;                          \
  }
KERNCAP_FCNTL(fcntl)
KERNCAP_FCNTL(fcntl64)
