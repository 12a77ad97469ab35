// Which files of some folders were saved: inotify, with what editors do around a save left out.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

namespace kerncap::replay {

class SourceWatch {
 public:
  // Folders are watched with all below them, also what is made later; files by their folder, also those that do not
  // exist yet. Throws Error{environment} when the system allows no more watches.
  explicit SourceWatch(const std::vector<std::filesystem::path>& paths);
  ~SourceWatch();
  SourceWatch(const SourceWatch&) = delete;
  SourceWatch& operator=(const SourceWatch&) = delete;

  // Waits until something was saved, and then until nothing more was for `quiet`; an editor writes a file in several
  // steps. Returns the paths; none when `cancel_fd` became readable first.
  std::set<std::filesystem::path> wait(int cancel_fd, std::chrono::milliseconds quiet);

 private:
  void watch_folder(const std::filesystem::path& folder, const std::filesystem::path& only);
  void watch_tree(const std::filesystem::path& folder);
  void drain(std::set<std::filesystem::path>& changed);

  struct Watched {
    std::filesystem::path folder;
    std::set<std::filesystem::path> only;  // empty: everything in it
  };
  int fd_ = -1;
  std::map<int, Watched> watched_;
};

}  // namespace kerncap::replay
