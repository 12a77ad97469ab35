// Buffer objects: the memory behind device allocations and pinned host allocations of the driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kerncap::softgpu {

struct Device;

// One memfd, mapped once by us (the alias, readable and writable, that the page tables point to) and any number of
// times by the application. The file's inode is the identity of the buffer across descriptors and processes.
class Buffer {
 public:
  // VRAM counts against `device`'s memory; null when there is not enough left or the system refuses.
  static std::shared_ptr<Buffer> create(Device* device, std::uint64_t size, std::uint32_t flags);
  // From a descriptor that another process (or this one) exported; the caller keeps `fd`. Null when it is not ours.
  static std::shared_ptr<Buffer> import(Device* device, int fd);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::uint64_t size() const { return size_; }
  std::uint64_t inode() const { return inode_; }
  std::uint32_t flags() const { return flags_; }  // KFD_IOC_ALLOC_MEM_FLAGS_*
  int descriptor() const { return fd_; }
  std::byte* alias() const { return alias_; }
  Device* device() const { return device_; }
  unsigned device_index() const { return device_index_; }  // of the device that made it, maybe in another process

  // What mmap() on a DRM node takes as offset for this buffer; 0 until Allocations gives one. Under its lock.
  std::uint64_t cookie = 0;

 private:
  Buffer() = default;
  bool adopt(int fd, std::uint64_t size);

  Device* device_ = nullptr;
  std::uint64_t size_ = 0, inode_ = 0, charged_ = 0;
  std::uint32_t flags_ = 0;
  unsigned device_index_ = 0;
  int fd_ = -1;
  std::byte* alias_ = nullptr;
};

// Closes every buffer's descriptor without touching anything else; for the child of a fork, where only
// async-signal-safe calls are allowed.
void close_buffer_descriptors_after_fork() noexcept;

}  // namespace kerncap::softgpu
