#include "core/compdb/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kerncap::compdb {

FileIdentity identify(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {.exists = true,
          .regular = S_ISREG(status.st_mode),
          .size = static_cast<std::uint64_t>(status.st_size),
          .mtime = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000U +
                   static_cast<std::uint64_t>(status.st_mtim.tv_nsec),
          .device = status.st_dev,
          .inode = status.st_ino};
}

bool read_file(const std::string& path, std::uint64_t limit, std::string& content) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return false;
  struct stat status {};
  bool good = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) <= limit;
  content.clear();
  if (good) content.resize(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (good && done < content.size()) {
    const ssize_t count = read(fd, content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) good = false;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  close(fd);
  content.resize(done);
  return good;
}

std::string absolute_path(std::string_view directory, std::string_view path) {
  std::string joined(path.starts_with('/') ? std::string_view() : directory);
  joined.push_back('/');
  joined += path;
  std::string result;
  std::size_t at = 0;
  while (at < joined.size()) {
    std::size_t end = joined.find('/', at);
    if (end == std::string::npos) end = joined.size();
    const std::string_view component = std::string_view(joined).substr(at, end - at);
    if (!component.empty() && component != ".") {
      result.push_back('/');
      result += component;
    }
    at = end + 1;
  }
  return result.empty() ? "/" : result;
}

std::string resolved_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  return real ? std::string(real.get()) : path;
}

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

std::string current_directory() {
  const std::unique_ptr<char, decltype(&free)> here(getcwd(nullptr, 0), &free);
  return here ? std::string(here.get()) : std::string("/");
}

std::uint64_t hash_bytes(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace kerncap::compdb
