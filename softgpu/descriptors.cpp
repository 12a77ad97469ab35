#include "softgpu/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "softgpu/system_calls.h"

namespace kerncap::softgpu {
namespace {

// One bit per descriptor makes the common question cheap; the files themselves are behind a lock.
constexpr int most_descriptors = 1 << 16;
std::atomic<std::uint64_t> ours[most_descriptors / 64];

bool marked(int fd) noexcept {
  return fd >= 0 && fd < most_descriptors && (ours[fd / 64].load(std::memory_order_acquire) >> (fd % 64) & 1) != 0;
}
void mark(int fd) noexcept { ours[fd / 64].fetch_or(std::uint64_t{1} << (fd % 64)); }
void unmark(int fd) noexcept { ours[fd / 64].fetch_and(~(std::uint64_t{1} << (fd % 64))); }

struct Files {
  std::mutex mutex;
  std::map<int, std::shared_ptr<OpenFile>> by_descriptor;
  pid_t owner = raw::process_id();
};

// Never destroyed, because descriptors are closed by static destructors too.
Files& files() {
  static Files* const all = [] {
    auto* made = new Files;
    // A fork may happen while another thread holds the lock, so it is taken across.
    pthread_atfork([] { files().mutex.lock(); }, [] { files().mutex.unlock(); },
                   [] {
                     files().mutex.unlock();
                     files().owner = raw::process_id();
                   });
    return made;
  }();
  return *all;
}

}  // namespace

int open_descriptor(std::shared_ptr<OpenFile> file, bool close_on_exec) {
  const int fd = raw::memory_file("kerncap-gpu-node");
  if (fd < 0) return -1;
  if (fd >= most_descriptors) {
    raw::close(fd);
    errno = EMFILE;
    return -1;
  }
  if (!close_on_exec) fcntl(fd, F_SETFD, 0);
  file->inode = raw::inode_of(fd);
  Files& all = files();
  const std::lock_guard lock(all.mutex);
  all.by_descriptor[fd] = std::move(file);
  mark(fd);
  return fd;
}

std::shared_ptr<OpenFile> file_of(int fd) {
  if (!marked(fd)) return nullptr;
  Files& all = files();
  std::shared_ptr<OpenFile> file;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.by_descriptor.find(fd);
    if (found == all.by_descriptor.end()) return nullptr;
    file = found->second;
  }
  if (raw::inode_of(fd) == file->inode) return file;
  forget_descriptor(fd);
  return nullptr;
}

void copy_descriptor(int from, int to) {
  if (to < 0 || from == to) return;
  const auto file = file_of(from);
  if (file == nullptr || to >= most_descriptors) {
    forget_descriptor(to);
    return;
  }
  Files& all = files();
  const std::lock_guard lock(all.mutex);
  all.by_descriptor[to] = file;
  mark(to);
}

void forget_descriptor(int fd) {
  if (!marked(fd)) return;
  Files& all = files();
  // The child of vfork() shares this memory but not the descriptors: what it closes stays open here.
  if (all.owner != raw::process_id()) return;
  std::shared_ptr<OpenFile> file;
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_descriptor.find(fd);
  if (found == all.by_descriptor.end()) return;
  file = std::move(found->second);
  all.by_descriptor.erase(found);
  unmark(fd);
}

}  // namespace kerncap::softgpu
