#include "capture/session.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "capture/capturer.h"
#include "capture/companion.h"
#include "capture/profiler.h"
#include "capture/queues.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/progress.h"

namespace kerncap::capture {
namespace {

std::atomic<Session*> the_session{nullptr};

constexpr std::size_t most_idle_kernels =
    500;  // of those that were loaded and never dispatched; libraries have 10,000s

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\0', begin), all.size());
    out.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// A process that was replaced by exec has the same number: the earlier program's status is kept.
std::filesystem::path new_status_path(const std::filesystem::path& folder, pid_t process) {
  std::filesystem::path path = folder / fmt::format("status-{}.json", process);
  std::error_code ignored;
  for (int n = 1; std::filesystem::exists(path, ignored); ++n)
    path = folder / fmt::format("status-{}-{}.json", process, n);
  return path;
}

// A file beyond RLIMIT_FSIZE sends SIGXFSZ to the thread that writes, which ends a process by default. The
// application's threads must not meet that because of our files.
class WithoutSizeSignal {
 public:
  WithoutSizeSignal() {
    ::sigemptyset(&ours_);
    ::sigaddset(&ours_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  }
  ~WithoutSizeSignal() {
    const timespec at_once{};
    if (::sigismember(&before_, SIGXFSZ) == 0)
      while (::sigtimedwait(&ours_, nullptr, &at_once) == SIGXFSZ) {
      }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSizeSignal(const WithoutSizeSignal&) = delete;
  WithoutSizeSignal& operator=(const WithoutSizeSignal&) = delete;

 private:
  sigset_t ours_{}, before_{};
};

void name_kernel(const Config& config, KernelRecord& record) {
  constexpr std::string_view suffix = ".kd";
  std::string_view name = record.symbol;
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  const Companion& c = companion();
  record.demangled = c.demangle(name);
  // The runtime's own kernels for copies and fills are nobody's catch by accident.
  constexpr std::string_view internal = "__amd_rocclr_";
  if (name.starts_with(internal) && config.pattern.find(internal) == std::string::npos) return;
  record.matches = !config.pattern.empty() && (c.matches(config.pattern, name, record.demangled) ||
                                               c.matches(config.pattern, record.symbol, record.demangled));
}

}  // namespace

Session* session() noexcept { return the_session.load(std::memory_order_acquire); }
void set_session(Session* session) noexcept { the_session.store(session, std::memory_order_release); }

Session::Session(Config c)
    : config(std::move(c)),
      process(::getpid()),
      code([this](KernelRecord& record) { name_kernel(config, record); }, config.code_object),
      selection(config),
      status_path_(new_status_path(config.status_folder, process)) {
  status_.process = static_cast<std::uint64_t>(process);
  status_.command_line = command_line();
  if (config.mode == Mode::capture) {
    capturer = std::make_unique<Capturer>(*this);
    matching = true;
  } else {
    profiler = std::make_unique<Profiler>(*this);
    status_.state = StatusState::profiled;
  }
}

const Agents& Session::agents() {
  const std::lock_guard lock(agents_mutex_);
  if (!agents_) agents_.emplace();
  return *agents_;
}

void Session::refuse_what_is_too_large() {
  if (config.max_bytes == 0 || config.reachable_only) return;
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(memory_mutex);
    for (const Allocation& a : memory.list())
      if (a.kind != snapshot::RegionKind::managed) bytes += a.size;
  }
  if (bytes > config.max_bytes)
    support::fail(support::ExitCode::answer_is_no,
                  "the device can reach {} at this dispatch and at most {} may be captured; raise --max-bytes or "
                  "restrict the snapshot with --scope reachable",
                  support::human_bytes(bytes), support::human_bytes(config.max_bytes));
}

bool Session::claim() {
  if (claimed_) return true;
  const std::filesystem::path path = config.status_folder / "claim";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) {
    ::close(fd);
    return claimed_ = true;
  }
  matching = false;
  const int error = errno;
  update_status([&](Status& s) {
    s.state = error == EEXIST ? StatusState::passive : StatusState::failed;
    s.reason = error == EEXIST ? "another process of this command was the first to launch the kernel"
                               : fmt::format("cannot write '{}': {}", path.string(), std::strerror(error));
  });
  return false;
}

void Session::fail(const std::string& reason) noexcept {
  matching = false;
  try {
    update_status([&](Status& s) {
      s.state = StatusState::failed;
      s.reason = reason;
    });
  } catch (...) {
  }
}

void Session::lose_track() noexcept {
  lost_track_ = true;
  matching = false;
}

void Session::note(const std::string& text) noexcept {
  try {
    const std::lock_guard lock(status_mutex_);
    if (status_.notes.size() < 100) status_.notes.push_back(text);
  } catch (...) {
  }
}

void Session::publish() noexcept {
  try {
    const std::lock_guard one_at_a_time(publish_mutex_);
    Status status;
    {
      const std::lock_guard lock(status_mutex_);
      status = status_;
    }
    if (profiler != nullptr) {
      profiler->fill(status);
    } else {
      std::size_t idle = 0, launched_matches = 0;
      for (const KernelRecord* record : code.records()) {
        KernelStatus k;
        k.dispatches = record->dispatches.load(std::memory_order_relaxed);
        k.matches = record->matches;
        if (k.dispatches == 0 && !k.matches && ++idle > most_idle_kernels) continue;
        k.symbol = record->symbol;
        k.demangled = record->demangled;
        const auto launched = k.matches ? code.launched(*record) : std::vector<CodeRegistry::Launched>();
        if (launched.empty()) {
          k.matches = k.matches && k.dispatches == 0;  // launched, but not from the wanted code object
          status.kernels.push_back(std::move(k));
          continue;
        }
        for (const CodeRegistry::Launched& one : launched) {
          k.code_object = one.digest;
          k.dispatches = one.dispatches;
          status.kernels.push_back(k);
        }
        launched_matches += launched.size();
      }
      status.ambiguous = launched_matches > 1;
      selection.fill(status);
    }
    if (const std::string failure = code.failure(); !failure.empty()) {
      status.notes.push_back(failure);
      if (status.state == StatusState::armed && config.mode == Mode::capture) {
        status.state = StatusState::failed;
        status.reason = failure;
      }
    }
    if (lost_track_ && status.state != StatusState::captured) {
      status.state = StatusState::failed;
      status.reason = "there was not enough memory to keep track of the application's allocations";
    }
    const WithoutSizeSignal guard;
    support::write_file_atomically(status_path_, support::dump_json(to_json(status)));
  } catch (...) {
    // The folder is gone or full: the program that reads it says that it found nothing. The application runs on.
  }
}

void Session::runtime_restarted() {
  code.forget_loaded();
  finished_ = false;
  {
    const std::lock_guard lock(memory_mutex);
    memory.clear();
    vmem_pools.clear();
  }
  {
    const std::lock_guard lock(queues_mutex);
    queues.clear();
  }
  const std::lock_guard lock(agents_mutex_);
  agents_.reset();
}

void Session::finish() noexcept {
  if (finished_.exchange(true)) return;  // by OnUnload: nothing may be asked of the runtime any more
  try {
    if (capturer != nullptr) capturer->finish();
    if (profiler != nullptr) profiler->finish();
  } catch (const std::exception& error) {
    fail(error.what());
  }
  matching = false;
  publish();
}

}  // namespace kerncap::capture
