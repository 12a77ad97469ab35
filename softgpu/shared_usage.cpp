#include "softgpu/shared_usage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "softgpu/system_calls.h"

namespace kerncap::softgpu {
namespace {

constexpr std::uint64_t page = 4096;
constexpr int lowest_descriptor = 512;  // away from the numbers that applications reason about
constexpr const char* file_name = "kerncap-gpu-usage";
constexpr std::size_t longest_machine = 48;

// Of the process's one driver; tests make more of these, and close them themselves.
std::atomic<int> to_close[2] = {-1, -1};

int moved_up(int fd) {
  const int moved = raw::dup_above(fd, lowest_descriptor);
  if (moved < 0) return fd;
  raw::close(fd);
  return moved;
}

bool is_usage_file(const char* path) {
  char target[64];
  const ssize_t length = readlink(path, target, sizeof target - 1);
  if (length <= 0) return false;
  target[length] = '\0';
  return std::strstr(target, file_name) != nullptr;
}

}  // namespace

SharedUsage::SharedUsage(const std::string& machine) {
  if (machine.empty()) return;
  stem_ = "kerncap-softgpu/" + std::to_string(getuid()) + "/" + machine.substr(0, longest_machine) + "/";
  file_ = raw::memory_file(file_name);
  if (file_ < 0) return;
  file_ = moved_up(file_);
  void* mapped =
      raw::resize(file_, page) ? raw::map(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0) : MAP_FAILED;
  if (mapped == MAP_FAILED) return;
  numbers_ = static_cast<Numbers*>(mapped);  // zeros

  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return;
  socket_ = moved_up(socket_);
  const std::string name = stem_ + std::to_string(raw::process_id()) + "/" + std::to_string(file_);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof address.sun_path - 1));
  // A name that is taken is ours from before: the numbers are then not seen by others, which is no reason to fail.
  (void)bind(socket_, reinterpret_cast<const sockaddr*>(&address),
             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
  to_close[0] = file_;
  to_close[1] = socket_;
}

SharedUsage::~SharedUsage() {
  if (numbers_ != &private_) raw::unmap(numbers_, page);
  for (const int fd : {file_, socket_})
    if (fd >= 0) raw::close(fd);
  for (auto& fd : to_close)
    if (fd == file_ || fd == socket_) fd = -1;
}

void SharedUsage::close_after_fork() noexcept {
  for (auto& fd : to_close) {
    if (const int number = fd.exchange(-1); number >= 0) raw::close(number);
  }
}

std::uint64_t SharedUsage::others(unsigned device) const noexcept {
  if (stem_.empty() || device >= most_devices) return 0;
  std::FILE* sockets = fopen("/proc/net/unix", "re");
  if (sockets == nullptr) return 0;
  std::uint64_t sum = 0;
  char line[512];
  while (std::fgets(line, sizeof line, sockets) != nullptr) {
    const char* name = std::strchr(line, '@');  // how the kernel shows the zero byte of an abstract name
    if (name == nullptr || std::strncmp(name + 1, stem_.c_str(), stem_.size()) != 0) continue;
    int process = 0, descriptor = 0;
    if (std::sscanf(name + 1 + stem_.size(), "%d/%d", &process, &descriptor) != 2) continue;
    if (process == raw::process_id() && descriptor == file_) continue;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", process, descriptor);
    if (!is_usage_file(path)) continue;
    const int fd = raw::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    std::uint64_t bytes = 0;
    if (pread(fd, &bytes, sizeof bytes, static_cast<off_t>(device * sizeof bytes)) == sizeof bytes) sum += bytes;
    raw::close(fd);
  }
  std::fclose(sockets);
  return sum;
}

}  // namespace kerncap::softgpu
