#include "capture/ranges.h"

#include <fnmatch.h>

#include <algorithm>

namespace kerncap::capture {
namespace {

constexpr std::size_t most_names = 50, longest_name = 200;

// Which of this thread's open ranges are wanted. One process has one Ranges for each library, and each library its own
// copy of this.
struct ThreadStack {
  std::vector<bool> wanted;
  std::size_t open = 0;  // how many of them are
  bool used = false;
  ~ThreadStack() { ranges().thread_ends(open); }
};
ThreadStack& stack() {
  thread_local ThreadStack of_this_thread;
  return of_this_thread;
}

}  // namespace

Ranges& ranges() {
  static Ranges* const all = new Ranges;  // never destroyed: the application may mark ranges in its exit handlers
  return *all;
}

void Ranges::watch(std::string glob) {
  const std::lock_guard lock(mutex_);
  glob_ = std::move(glob);
}

bool Ranges::wanted(const char* name) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (names_.size() < most_names) {
      std::string shown(std::string_view(name).substr(0, longest_name));
      std::replace(shown.begin(), shown.end(), '\n', ' ');
      if (std::find(names_.begin(), names_.end(), shown) == names_.end()) names_.push_back(std::move(shown));
    }
    return !glob_.empty() && ::fnmatch(glob_.c_str(), name, 0) == 0;
  } catch (...) {
    return false;
  }
}

int Ranges::push(const char* name) noexcept {
  const bool is_wanted = wanted(name != nullptr ? name : "");
  ThreadStack& mine = stack();
  mine.used = true;
  try {
    mine.wanted.push_back(is_wanted);
  } catch (...) {
    return -1;
  }
  if (is_wanted) {
    ++mine.open;
    ++open_pushed_;
  }
  return static_cast<int>(mine.wanted.size()) - 1;
}

int Ranges::pop() noexcept {
  ThreadStack& mine = stack();
  if (mine.wanted.empty()) return -1;
  if (mine.wanted.back()) {
    --mine.open;
    --open_pushed_;
  }
  mine.wanted.pop_back();
  return static_cast<int>(mine.wanted.size());
}

void Ranges::thread_ends(std::size_t open) noexcept { open_pushed_ -= static_cast<std::int64_t>(open); }

void Ranges::start(std::uint64_t id, const char* name) noexcept {
  if (!wanted(name != nullptr ? name : "")) return;
  try {
    const std::lock_guard lock(mutex_);
    if (started_.insert(id).second) ++open_started_;
  } catch (...) {
  }
}

void Ranges::stop(std::uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  if (started_.erase(id) != 0) --open_started_;
}

bool Ranges::inside() const noexcept {
  if (open_started_.load() > 0) return true;
  const ThreadStack& mine = stack();
  return mine.used ? mine.open > 0 : open_pushed_.load() > 0;
}

std::vector<std::string> Ranges::names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

}  // namespace kerncap::capture
