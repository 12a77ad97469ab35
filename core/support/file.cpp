#include "core/support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/support/error.h"
#include "core/support/hash.h"

namespace kerncap::support {
namespace {

std::filesystem::path temporary_sibling(const std::filesystem::path& path) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) random = static_cast<std::uint64_t>(::getpid());
  return path.parent_path() / fmt::format(".{}.{}-{:016x}.tmp", path.filename().string(), ::getpid(), random);
}

// A trailing slash or dot would make the "sibling" a child.
std::filesystem::path normalised(std::filesystem::path path) {
  path = std::filesystem::absolute(path).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path;
}

void sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

void make_private_folder(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    fail(ExitCode::environment, "cannot create the folder '{}': {}", path.string(), std::strerror(errno));
  }
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path, std::uint64_t limit) {
  const MappedFile file(path);
  if (file.bytes().size() > limit) {
    fail(ExitCode::bad_input, "'{}' is larger than the {} bytes that are accepted here", path.string(), limit);
  }
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

AtomicFile::AtomicFile(std::filesystem::path path, unsigned mode) : path_(normalised(std::move(path))) {
  temporary_ = temporary_sibling(path_);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd_ < 0) fail(ExitCode::environment, "cannot write '{}': {}", path_.string(), std::strerror(errno));
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> data) { write_all(fd_, data, path_.string()); }
void AtomicFile::write(std::string_view text) { write(bytes_of(text)); }

void AtomicFile::commit() {
  // Delayed allocation reports a full disk only here.
  if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail(ExitCode::environment, "cannot write '{}': {}", path_.string(), std::strerror(errno));
  }
  ::close(fd_);
  fd_ = -1;
  sync_folder(path_.parent_path());
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text, unsigned mode) {
  AtomicFile file(path, mode);
  file.write(text);
  file.commit();
}

AtomicFolder::AtomicFolder(std::filesystem::path final_path, bool replace)
    : final_(normalised(std::move(final_path))), replace_(replace) {
  std::error_code ignored;
  if (!replace_ && std::filesystem::exists(std::filesystem::symlink_status(final_, ignored))) {
    fail(ExitCode::usage, "'{}' exists already; choose another name or pass --force to replace it", final_.string());
  }
  temporary_ = temporary_sibling(final_);
  make_private_folder(temporary_);
}

AtomicFolder::~AtomicFolder() {
  if (committed_) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
}

void AtomicFolder::commit() {
  put_in_place(temporary_, final_, replace_);
  committed_ = true;
}

void put_in_place(const std::filesystem::path& from, const std::filesystem::path& to, bool replace) {
  const auto rename_with = [&](unsigned flags) {
    return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0;
  };
  if (!rename_with(RENAME_NOREPLACE)) {
    if (errno == EEXIST && !replace) {
      fail(ExitCode::usage, "'{}' exists already; choose another name or pass --force to replace it", to.string());
    }
    if (errno != EEXIST || !rename_with(RENAME_EXCHANGE)) {
      fail(ExitCode::environment, "cannot put '{}' in place: {}", to.string(), std::strerror(errno));
    }
    std::error_code ignored;
    std::filesystem::remove_all(from, ignored);  // now the old content
  }
  sync_folder(to.parent_path());
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(ExitCode::bad_input, "cannot read '{}': {}", path.string(), std::strerror(errno));
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    fail(ExitCode::bad_input, "cannot read '{}': not a regular file", path.string());
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) {
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED) {
      const int error = errno;
      ::close(fd);
      fail(ExitCode::bad_input, "cannot map '{}': {}", path.string(), std::strerror(error));
    }
    data_ = static_cast<const std::byte*>(mapped);
  }
  ::close(fd);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

TemporaryFolder::TemporaryFolder(std::string_view prefix) {
  const std::filesystem::path base = std::filesystem::temp_directory_path();
  std::string pattern = (base / fmt::format("{}-XXXXXX", prefix)).string();
  if (::mkdtemp(pattern.data()) == nullptr) {  // mode 0700
    fail(ExitCode::environment, "cannot create a temporary folder in '{}': {}", base.string(), std::strerror(errno));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool is_safe_relative_path(std::string_view relative) {
  if (relative.empty() || relative.front() == '/' || relative.find('\0') != std::string_view::npos) return false;
  while (!relative.empty()) {
    const std::size_t slash = relative.find('/');
    const std::string_view part = relative.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    relative.remove_prefix(slash + 1);
  }
  return false;  // a trailing slash
}

void write_all(int fd, std::span<const std::byte> data, std::string_view what) {
  while (!data.empty()) {
    const ssize_t wrote = ::write(fd, data.data(), data.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail(ExitCode::environment, "cannot write '{}': {}", what, std::strerror(errno));
    data = data.subspan(static_cast<std::size_t>(wrote));
  }
}

}  // namespace kerncap::support
