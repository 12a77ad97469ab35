// Raw system calls. The library replaces open(), mmap() and their like for the whole process, so its own use of them
// must not come back to itself. All return -1 and set errno, as in libc.
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <cstdint>

namespace kerncap::softgpu::raw {

int open(const char* path, int flags, unsigned mode = 0);
int close(int fd);
int dup_above(int fd, int lowest);  // F_DUPFD_CLOEXEC
int memory_file(const char* name);  // memfd_create, close-on-exec
bool resize(int fd, std::uint64_t size);
void* map(void* address, std::size_t size, int protection, int flags, int fd, std::uint64_t offset);
int unmap(void* address, std::size_t size);
void advise(void* address, std::size_t size, int advice);
bool all_mapped(std::uint64_t address, std::uint64_t size);  // whole pages; looks only, and costs about a microsecond
std::uint64_t inode_of(int fd);                              // 0 when it has none
std::uint64_t size_of(int fd);
pid_t process_id();
void wait_on(const std::uint32_t* word, std::uint32_t expected, std::uint64_t nanoseconds);  // futex
void wake_all(std::uint32_t* word);

}  // namespace kerncap::softgpu::raw
