#include "wrapper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

extern char** environ;

namespace kerncap::wrapper {
namespace {

// The argument and environment arrays of exec(3), over strings that outlive it.
class Vectors {
 public:
  Vectors(const std::vector<std::string>& command, const Changes& changes) {
    for (const std::string& argument : command) arguments_.push_back(const_cast<char*>(argument.c_str()));
    arguments_.push_back(nullptr);
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (!is_changed(*entry, changes)) environment_.push_back(*entry);
    }
    own_.reserve(changes.size());
    for (const auto& [name, value] : changes) {
      environment_.push_back(own_.emplace_back(name + "=" + value).data());
    }
    environment_.push_back(nullptr);
  }
  char* const* arguments() const { return arguments_.data(); }
  char* const* environment() const { return environment_.data(); }

 private:
  static bool is_changed(std::string_view entry, const Changes& changes) {
    for (const auto& [name, value] : changes) {
      if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) return true;
    }
    return false;
  }
  std::vector<std::string> own_;
  std::vector<char*> arguments_, environment_;
};

constexpr int forwarded_signals[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
volatile sig_atomic_t child_process = 0;

void forward(int signal_number) {
  const int saved = errno;
  if (child_process > 0) kill(child_process, signal_number);
  errno = saved;
}

}  // namespace

int execute(const std::string& program, const std::vector<std::string>& command, const Changes& changes) {
  const Vectors vectors(command, changes);
  // execvpe() also runs scripts without a first line "#!", as a shell would.
  execvpe(program.c_str(), vectors.arguments(), vectors.environment());
  return errno;
}

static Outcome spawn_and_wait(const std::string& program, const std::vector<std::string>& command,
                              const Changes& changes, const posix_spawn_file_actions_t* actions) {
  const Vectors vectors(command, changes);
  // A build tool may ignore SIGCHLD, and ignoring is inherited; then there would be no status to wait for.
  signal(SIGCHLD, SIG_DFL);

  // Between the start of the child and the moment we know its number no signal may get lost.
  sigset_t all, before;
  sigemptyset(&all);
  for (int number : forwarded_signals) sigaddset(&all, number);
  sigprocmask(SIG_BLOCK, &all, &before);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &before);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  Outcome outcome;
  outcome.start_error =
      posix_spawn(&child, program.c_str(), actions, &attributes, vectors.arguments(), vectors.environment());
  posix_spawnattr_destroy(&attributes);
  if (outcome.start_error == 0) {
    child_process = child;
    struct sigaction action {};
    action.sa_handler = forward;
    action.sa_flags = SA_RESTART;
    for (int number : forwarded_signals) {
      struct sigaction current {};
      sigaction(number, nullptr, &current);
      if (current.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
    }
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (outcome.start_error != 0) return outcome;
  while (waitpid(child, &outcome.status, 0) < 0) {
    if (errno != EINTR) {
      outcome.status = 1 << 8;
      break;
    }
  }
  child_process = 0;
  return outcome;
}

Outcome run_and_wait(const std::string& program, const std::vector<std::string>& command, const Changes& changes) {
  return spawn_and_wait(program, command, changes, nullptr);
}

Outcome run_silently(const std::vector<std::string>& command) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0);
  }
  const Outcome outcome = spawn_and_wait(command[0], command, {}, &actions);
  posix_spawn_file_actions_destroy(&actions);
  return outcome;
}

int shell_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void end_like(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    const rlimit no_core = {0, 0};  // the compiler has left one already, if any
    setrlimit(RLIMIT_CORE, &no_core);
    signal(number, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    raise(number);
  }
  _exit(shell_status(wait_status));
}

}  // namespace kerncap::wrapper
