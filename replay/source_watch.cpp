#include "replay/source_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t events = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE;

// Editors' swap and backup files: vim's .x.swp, 4913 and x~, emacs' .#x and #x#, and those of atomic saves (.x.tmp).
bool is_editors_own(const std::string& name) {
  return name.empty() || name.front() == '.' || name.front() == '#' || name.back() == '~' || name == "4913" ||
         name.ends_with(".swp") || name.ends_with(".tmp");
}

}  // namespace

SourceWatch::SourceWatch(const std::vector<fs::path>& paths) : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  if (fd_ < 0)
    support::fail(support::ExitCode::environment, "files cannot be watched (inotify): {}", std::strerror(errno));
  std::error_code ignored;
  for (const fs::path& path : paths) {
    if (fs::is_directory(path, ignored)) {
      watch_tree(path);
    } else if (fs::is_directory(path.parent_path(), ignored)) {
      watch_folder(path.parent_path(), path.filename());
    }
  }
}

SourceWatch::~SourceWatch() {
  if (fd_ >= 0) ::close(fd_);
}

void SourceWatch::watch_folder(const fs::path& folder, const fs::path& only) {
  const int id = ::inotify_add_watch(fd_, folder.c_str(), events | IN_ONLYDIR);
  if (id < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;  // gone again
    support::fail(support::ExitCode::environment,
                  "'{}' cannot be watched: {}; fs.inotify.max_user_watches may be too small", folder.string(),
                  std::strerror(errno));
  }
  Watched& watched = watched_[id];
  watched.folder = folder;
  if (!only.empty()) watched.only.insert(only);
}

void SourceWatch::watch_tree(const fs::path& folder) {
  watch_folder(folder, {});
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) watch_folder(it->path(), {});
  }
}

void SourceWatch::drain(std::set<fs::path>& changed) {
  alignas(inotify_event) std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) {
        changed.insert("(many files)");
        continue;
      }
      const auto found = watched_.find(event->wd);
      if (found == watched_.end() || event->len == 0) continue;
      const std::string name = event->name;
      const Watched watched = found->second;
      const fs::path path = watched.folder / name;
      if ((event->mask & IN_ISDIR) != 0) {
        if (watched.only.empty() && (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0) watch_tree(path);
        continue;
      }
      // A new file says more when it is closed.
      if ((event->mask & IN_CREATE) != 0 || is_editors_own(name)) continue;
      if (watched.only.empty() || watched.only.contains(name)) changed.insert(path);
    }
  }
}

std::set<fs::path> SourceWatch::wait(int cancel_fd, std::chrono::milliseconds quiet) {
  std::set<fs::path> changed;
  for (;;) {
    std::array<pollfd, 2> polled{{{fd_, POLLIN, 0}, {cancel_fd, POLLIN, 0}}};
    const int ready = ::poll(polled.data(), polled.size(), changed.empty() ? -1 : static_cast<int>(quiet.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (polled[1].revents != 0) return {};
    if (ready == 0) return changed;
    drain(changed);
  }
}

}  // namespace kerncap::replay
