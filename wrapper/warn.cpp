#include "wrapper/warn.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/compdb/file_system.h"

namespace kerncap::wrapper {
namespace {

constexpr std::uint64_t silence_ns = 600'000'000'000;  // a build that runs longer than 10 minutes may hear it again

std::string marker_path(const std::string& database) {
  const char* folder = std::getenv("TMPDIR");
  // `kerncap build` names its session; elsewhere the terminal's session stands for the build.
  const char* session = std::getenv("KERNCAP_CC_SESSION");
  const std::string what =
      database + "\n" + (session != nullptr ? std::string(session) : std::to_string(static_cast<long>(getsid(0))));
  char name[64];
  std::snprintf(name, sizeof name, "/kerncap-cc-warned-%u-%016llx", static_cast<unsigned>(getuid()),
                static_cast<unsigned long long>(compdb::hash_bytes(what)));
  return std::string(folder != nullptr && folder[0] != '\0' ? folder : "/tmp") + name;
}

}  // namespace

void say(const std::string& message) {
  const std::string line = "kerncap-cc: " + message + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // nobody listens: nothing to do about it
}

void warn_once(const std::string& database, const std::string& message) {
  const std::string marker = marker_path(database);
  const int fd = open(marker.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0) {
    close(fd);
  } else {
    const compdb::FileIdentity old = compdb::identify(marker);
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    const auto now_ns =
        static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
    if (old.exists && now_ns < old.mtime + silence_ns) return;
    utimensat(AT_FDCWD, marker.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }
  say("warning: " + message);
}

}  // namespace kerncap::wrapper
