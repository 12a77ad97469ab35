// Replaced libc functions: ioctl and mappings; and what happens at fork.
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "softgpu/buffer.h"
#include "softgpu/control.h"
#include "softgpu/descriptors.h"
#include "softgpu/interpose.h"
#include "softgpu/kfd_abi.h"
#include "softgpu/shared_usage.h"

using namespace kerncap::softgpu;  // NOLINT: the functions below must be global

namespace {

Next<int(int, unsigned long, ...)> next_ioctl("ioctl");
Next<void*(void*, size_t, int, int, int, off_t)> next_mmap("mmap");
Next<int(void*, size_t)> next_munmap("munmap");

// The driver's answer to a file that was opened before a fork, by another process as it sees it.
bool foreign(const OpenFile& file) { return file.driver != Driver::get(); }

int call(const OpenFile& file, unsigned long request, void* arguments) {
  if (foreign(file)) return -EBADF;
  const unsigned number = _IOC_NR(request);
  if (file.kind == FileKind::kfd)
    return _IOC_TYPE(request) == abi::ioctl_type ? file.driver->kfd(number, arguments) : -ENOTTY;
  if (file.kind == FileKind::drm) return _IOC_TYPE(request) == 'd' ? file.drm->call(request, arguments) : -ENOTTY;
  return -ENOTTY;
}

// Pages that leave the address space must leave the page tables of the GPUs too; only when a driver exists already.
void pages_go_away(void* address, size_t size) {
  Driver* driver = Driver::existing();
  if (driver == nullptr || size == 0) return;
  const auto start = reinterpret_cast<std::uint64_t>(address) & ~(AddressSpace::page_size - 1);
  driver->allocations.host_unmapped(start, (size + AddressSpace::page_size - 1) & ~(AddressSpace::page_size - 1),
                                    driver->devices);
}

void* map_any(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0 && (flags & MAP_ANONYMOUS) == 0) {
    const auto file = guarded(std::shared_ptr<OpenFile>(), [&] { return file_of(fd); });
    if (file != nullptr) {
      if (foreign(*file) || file->kind == FileKind::folder) {
        errno = EBADF;
        return MAP_FAILED;
      }
      return guarded(MAP_FAILED, [&] {
        const auto place = static_cast<std::uint64_t>(offset);
        return file->kind == FileKind::kfd ? file->driver->map_kfd(address, size, protection, flags, place)
                                           : file->driver->map_drm(address, size, protection, flags, place);
      });
    }
  }
  // Before libdl can be asked, and for whoever calls us from inside malloc.
  if (next_mmap.get() == nullptr) {
    return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, fd, offset));
  }
  return next_mmap(address, size, protection, flags, fd, offset);
}

// The first process of a tree of processes names the machine whose devices they share. Inherited by the environment,
// and not one for the whole computer, because a GPU that strangers' test runs had to share would make each of them fail
// by chance.
void name_machine() {
  const char* devices = std::getenv("KERNCAP_SOFTGPU_ARCH");
  if (devices == nullptr || *devices == '\0' || std::getenv("KERNCAP_SOFTGPU_MACHINE") != nullptr) return;
  char name[48];
  std::snprintf(name, sizeof name, "%d-%llx", static_cast<int>(getpid()),
                static_cast<unsigned long long>(system_nanoseconds()));
  setenv("KERNCAP_SOFTGPU_MACHINE", name, 1);
}

// Resolved before threads exist: dlsym() must not be called first inside a signal handler or an allocator.
[[gnu::constructor]] void prepare() {
  next_ioctl.get();
  next_mmap.get();
  next_munmap.get();
  pthread_atfork(nullptr, nullptr, [] {
    Driver::forget_after_fork();
    close_buffer_descriptors_after_fork();
    SharedUsage::close_after_fork();
  });
  name_machine();
}

}  // namespace

KERNCAP_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const int result = guarded(-ENOMEM, [&] {
    const auto file = file_of(fd);
    return file == nullptr ? 1 : call(*file, request, argument);
  });
  if (result == 1) return next_ioctl(fd, request, argument);
  if (result >= 0) return 0;
  errno = -result;
  return -1;
}

KERNCAP_EXPORT int kerncap_softgpu_control(const kerncap::softgpu::Control* wanted) noexcept {
  return kerncap::softgpu::set_controls(wanted);
}

KERNCAP_EXPORT void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  return map_any(address, size, protection, flags, fd, offset);
}
KERNCAP_EXPORT void* mmap64(void* address, size_t size, int protection, int flags, int fd, off64_t offset) noexcept {
  return map_any(address, size, protection, flags, fd, offset);
}

KERNCAP_EXPORT int munmap(void* address, size_t size) noexcept {
  guarded(0, [&] {
    pages_go_away(address, size);
    return 0;
  });
  return next_munmap.get() == nullptr ? static_cast<int>(syscall(SYS_munmap, address, size))
                                      : next_munmap(address, size);
}
