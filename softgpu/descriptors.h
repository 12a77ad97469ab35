// Which file descriptors of the process are ours.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "softgpu/drm.h"

namespace kerncap::softgpu {

enum class FileKind { kfd, drm, folder };

// An open file of ours. Behind each descriptor lies an empty memfd, whose inode tells whether the number still means
// this file: close_range() and raw system calls can take it away unseen.
struct OpenFile {
  FileKind kind = FileKind::kfd;
  Driver* driver = nullptr;  // of the process that opened it; a forked child must not use its parent's
  unsigned minor = 0;
  std::unique_ptr<DrmFile> drm;
  std::string path;  // of a folder
  std::uint64_t inode = 0;
};

// Makes a descriptor for `file`; -1 with errno when the system has none.
int open_descriptor(std::shared_ptr<OpenFile> file, bool close_on_exec);
// The file behind a descriptor; null for the great majority that is not ours. Costs one load for those.
std::shared_ptr<OpenFile> file_of(int fd);
void copy_descriptor(int from, int to);  // after dup()
void forget_descriptor(int fd);          // before close()

}  // namespace kerncap::softgpu
