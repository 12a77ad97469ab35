#include "core/compdb/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "core/compdb/file_system.h"

namespace kerncap::compdb {
namespace {

constexpr const char* version_file = "/VERSION";
constexpr std::string_view version_text = "1 kerncap compilation database\n";

}  // namespace

std::string find_database_folder(const std::string& start) {
  if (const char* named = getenv(database_variable); named != nullptr && named[0] != '\0') {
    return absolute_path(current_directory(), named);
  }
  std::string folder = absolute_path(current_directory(), start);
  for (;;) {
    const std::string candidate = (folder == "/" ? "" : folder) + "/" + database_folder_name;
    if (access((candidate + version_file).c_str(), F_OK) == 0) return candidate;
    if (folder == "/") return {};
    folder = folder_of(folder);
  }
}

int create_database_folder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return errno;
  const std::string path = folder + version_file;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno == EEXIST ? 0 : errno;
  const ssize_t written = write(fd, version_text.data(), version_text.size());
  int failure = written == static_cast<ssize_t>(version_text.size()) ? 0 : (written < 0 ? errno : ENOSPC);
  if (close(fd) != 0 && failure == 0) failure = errno;
  if (failure != 0) unlink(path.c_str());
  return failure;
}

unsigned database_version(const std::string& folder) {
  std::string text;
  if (!read_file(folder + version_file, 4096, text)) return 1;
  return static_cast<unsigned>(strtoul(text.c_str(), nullptr, 10));
}

}  // namespace kerncap::compdb
