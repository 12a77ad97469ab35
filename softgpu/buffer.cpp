#include "softgpu/buffer.h"

#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "softgpu/device.h"
#include "softgpu/system_calls.h"

namespace kerncap::softgpu {
namespace {

// Buffers keep a descriptor each, away from the low numbers that applications reason about.
constexpr int lowest_descriptor = 512;
constexpr int most_descriptors = 1 << 16;
std::atomic<std::uint64_t> open_descriptors[most_descriptors / 64];

void remember_descriptor(int fd) noexcept {
  if (fd < most_descriptors) open_descriptors[fd / 64].fetch_or(std::uint64_t{1} << (fd % 64));
}
void forget_descriptor(int fd) noexcept {
  if (fd < most_descriptors) open_descriptors[fd / 64].fetch_and(~(std::uint64_t{1} << (fd % 64)));
}

// Moves a new descriptor up; raises the soft limit of open files when it is reached, because a real driver's buffers
// need none.
int move_up(int fd) {
  if (fd < 0) return fd;
  int moved = raw::dup_above(fd, lowest_descriptor);
  if (moved < 0) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
      limit.rlim_cur = limit.rlim_max;
      setrlimit(RLIMIT_NOFILE, &limit);
      moved = raw::dup_above(fd, lowest_descriptor);
    }
  }
  if (moved < 0) return fd;
  raw::close(fd);
  return moved;
}

// Our own view of buffers lies in a part of the address space that mmap() does not choose by itself. The addresses that
// the application gets for its memory then do not depend on ours, so the same history gives the same addresses.
constexpr std::uint64_t aliases_begin = 0x4b0000000000, aliases_end = 0x600000000000;
constexpr std::uint64_t alias_alignment = std::uint64_t{1} << 21;  // lets the system use huge pages
std::atomic<std::uint64_t> next_alias{aliases_begin};

void* map_alias(std::uint64_t size, int fd) {
  const std::uint64_t room = (size + 2 * alias_alignment - 1) & ~(alias_alignment - 1);  // a gap behind each
  constexpr int flags = MAP_SHARED | MAP_NORESERVE;
  for (unsigned tries = 0; tries < 64; ++tries) {
    const std::uint64_t at = next_alias.fetch_add(room);
    if (at + room > aliases_end) {
      next_alias.store(aliases_begin);  // around again, past those that are still there
      continue;
    }
    void* mapped =
        raw::map(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, fd, 0);
    if (mapped != MAP_FAILED) return mapped;
  }
  return raw::map(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0);
}

// The name tells an importer in another process what it got: /proc/self/fd/N -> "/memfd:kerncap-gpu:FLAGS:DEVICE".
constexpr const char* name_stem = "kerncap-gpu:";

bool parse_name(int fd, std::uint32_t* flags, unsigned* device) {
  char path[64], target[256];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(path, target, sizeof target - 1);
  if (length <= 0) return false;
  target[length] = '\0';
  const char* stem = std::strstr(target, name_stem);
  if (stem == nullptr) return false;
  return std::sscanf(stem + std::strlen(name_stem), "%x:%u", flags, device) == 2;
}

}  // namespace

void close_buffer_descriptors_after_fork() noexcept {
  for (int word = 0; word < most_descriptors / 64; ++word) {
    std::uint64_t bits = open_descriptors[word].exchange(0);
    for (; bits != 0; bits &= bits - 1) raw::close(word * 64 + __builtin_ctzll(bits));
  }
}

bool Buffer::adopt(int fd, std::uint64_t size) {
  fd_ = fd;
  size_ = size;
  inode_ = raw::inode_of(fd);
  remember_descriptor(fd);
  void* mapped = map_alias(size, fd);
  if (mapped == MAP_FAILED) return false;
  alias_ = static_cast<std::byte*>(mapped);
  raw::advise(alias_, size, MADV_DONTFORK);
  raw::advise(alias_, size, MADV_DONTDUMP);
  return true;
}

std::shared_ptr<Buffer> Buffer::create(Device* device, std::uint64_t size, std::uint32_t flags) {
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->device_ = device;
  buffer->flags_ = flags;
  if (flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) {
    if (!device->charge(size)) return nullptr;
    buffer->charged_ = size;
  }
  char name[64];
  buffer->device_index_ = device->index;
  std::snprintf(name, sizeof name, "%s%08x:%u", name_stem, flags, device->index);
  const int fd = move_up(raw::memory_file(name));
  if (fd < 0) return nullptr;
  if (!raw::resize(fd, size)) {
    raw::close(fd);
    return nullptr;
  }
  return buffer->adopt(fd, size) ? buffer : nullptr;
}

std::shared_ptr<Buffer> Buffer::import(Device* device, int fd) {
  std::uint32_t flags = 0;
  unsigned index = 0;
  const std::uint64_t size = raw::size_of(fd);
  if (size == 0 || size % 4096 != 0 || !parse_name(fd, &flags, &index)) {
    errno = EINVAL;
    return nullptr;
  }
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->device_ = device;
  buffer->flags_ = flags;
  buffer->device_index_ = index;
  const int own = raw::dup_above(fd, lowest_descriptor);
  if (own < 0) return nullptr;
  return buffer->adopt(own, size) ? buffer : nullptr;
}

Buffer::~Buffer() {
  if (alias_ != nullptr) raw::unmap(alias_, size_);
  if (fd_ >= 0) {
    forget_descriptor(fd_);
    raw::close(fd_);
  }
  if (charged_ != 0) device_->release(charged_);
}

}  // namespace kerncap::softgpu
