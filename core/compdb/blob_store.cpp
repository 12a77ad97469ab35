#include "core/compdb/blob_store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/compdb/file_system.h"
#include "core/compdb/log_writer.h"
#include "core/support/sha256.h"

namespace kerncap::compdb {
namespace {

constexpr std::uint64_t largest_source = 64U << 20;

// Written beside its name and renamed: a blob under its digest is always whole. Two writers of one blob write the same.
int store(const std::string& blobs, const std::string& digest, std::string_view content) {
  const std::string path = blobs + "/" + digest;
  if (identify(path).size == content.size() && access(path.c_str(), F_OK) == 0) return 0;
  const std::string temporary = path + "." + std::to_string(static_cast<long>(getpid())) + ".tmp";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return errno;
  int failure = 0;
  while (!content.empty() && failure == 0) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno != EINTR) failure = errno;
    if (written == 0) failure = ENOSPC;
    if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (close(fd) != 0 && failure == 0) failure = errno;
  if (failure == 0 && rename(temporary.c_str(), path.c_str()) != 0) failure = errno;
  if (failure != 0) unlink(temporary.c_str());
  return failure;
}

}  // namespace

bool archives_sources(const std::string& folder) {
  const char* wish = std::getenv("KERNCAP_SOURCES");
  if (wish != nullptr && wish[0] != '\0') return std::string_view(wish) == "archive";
  return access((folder + "/ARCHIVE").c_str(), F_OK) == 0;
}

int archive_sources(const std::string& folder, std::vector<SourceFile>& files) {
  const std::string blobs = folder + "/" + blob_folder;
  if (mkdir(blobs.c_str(), 0777) != 0 && errno != EEXIST) return errno;
  int failure = 0;
  std::string content;
  for (SourceFile& file : files) {
    if (file.system || !read_file(file.path, largest_source, content) || hash_bytes(content) != file.hash) continue;
    const std::string digest = support::sha256_hex(content);
    const int error = store(blobs, digest, content);
    if (error == 0) file.digest = digest;
    if (failure == 0) failure = error;
  }
  return failure;
}

}  // namespace kerncap::compdb
