#include "softgpu/system_calls.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace kerncap::softgpu::raw {

int open(const char* path, int flags, unsigned mode) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int close(int fd) { return static_cast<int>(syscall(SYS_close, fd)); }
int dup_above(int fd, int lowest) { return static_cast<int>(syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest)); }
int memory_file(const char* name) { return static_cast<int>(syscall(SYS_memfd_create, name, MFD_CLOEXEC)); }
bool resize(int fd, std::uint64_t size) { return syscall(SYS_ftruncate, fd, size) == 0; }

void* map(void* address, std::size_t size, int protection, int flags, int fd, std::uint64_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}
int unmap(void* address, std::size_t size) { return static_cast<int>(syscall(SYS_munmap, address, size)); }
void advise(void* address, std::size_t size, int advice) { syscall(SYS_madvise, address, size, advice); }

// MS_ASYNC has done nothing since Linux 2.6.19 but to say ENOMEM where nothing is mapped.
bool all_mapped(std::uint64_t address, std::uint64_t size) { return syscall(SYS_msync, address, size, MS_ASYNC) == 0; }

// fstat by its own number: glibc's wrapper is one of the functions that are replaced.
std::uint64_t inode_of(int fd) {
  struct stat status;
  return syscall(SYS_fstat, fd, &status) == 0 ? status.st_ino : 0;
}
std::uint64_t size_of(int fd) {
  struct stat status;
  return syscall(SYS_fstat, fd, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}
pid_t process_id() { return static_cast<pid_t>(syscall(SYS_getpid)); }

void wait_on(const std::uint32_t* word, std::uint32_t expected, std::uint64_t nanoseconds) {
  const timespec timeout{static_cast<time_t>(nanoseconds / 1'000'000'000),
                         static_cast<long>(nanoseconds % 1'000'000'000)};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}
void wake_all(std::uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace kerncap::softgpu::raw
