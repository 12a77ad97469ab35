#include "wrapper/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
constexpr int cannot_start = 127;

// What the terminal sends goes to its whole foreground group, the compiler included: it must not come twice.
void forward(int signal_number, siginfo_t* information, void* /*context*/) {
  const int saved = errno;
  if (child_process > 0 && information->si_code <= 0) kill(child_process, signal_number);
  errno = saved;
}

}  // namespace

int execute(const std::string& program, const std::vector<std::string>& command, const Changes& changes) {
  const Vectors vectors(command, changes);
  // execvpe() also runs scripts without a first line "#!", as a shell would.
  execvpe(program.c_str(), vectors.arguments(), vectors.environment());
  return errno;
}

namespace {

// What the child needs, put where no register can lose it: it runs on our stack until exec.
struct ChildPlan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  sigset_t signals;  // as they were for us
  bool silent;
};

[[noreturn]] void become_compiler(const ChildPlan& plan, volatile int& error) {
  if (plan.silent) {
    const int nothing = open("/dev/null", O_RDWR);
    for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      if (nothing >= 0) dup2(nothing, descriptor);
    }
    if (nothing > STDERR_FILENO) close(nothing);
  }
  sigprocmask(SIG_SETMASK, &plan.signals, nullptr);
  execve(plan.program, plan.arguments, plan.environment);
  error = errno;
  _exit(cannot_start);
}

// vfork(2) and not posix_spawn(3): that one sets the action of each of the 64 signals, which exec does for us anyway.
__attribute__((noinline)) pid_t start_child(const ChildPlan& plan, volatile int& error) {
  const pid_t child = vfork();
  if (child == 0) become_compiler(plan, error);
  if (child < 0) error = errno;
  return child;
}

Outcome spawn_and_wait(const std::string& program, const std::vector<std::string>& command, const Changes& changes,
                       bool silent) {
  const Vectors vectors(command, changes);
  // A build tool may ignore SIGCHLD, and ignoring is inherited; then there would be no status to wait for.
  signal(SIGCHLD, SIG_DFL);

  // Between the start of the child and the moment we know its number no signal may get lost.
  ChildPlan plan = {.program = program.c_str(),
                    .arguments = vectors.arguments(),
                    .environment = vectors.environment(),
                    .signals = {},
                    .silent = silent};
  sigset_t forwarded;
  sigemptyset(&forwarded);
  for (int number : forwarded_signals) sigaddset(&forwarded, number);
  sigprocmask(SIG_BLOCK, &forwarded, &plan.signals);

  Outcome outcome;
  volatile int error = 0;
  const pid_t child = start_child(plan, error);
  outcome.start_error = error;
  if (outcome.start_error == 0) {
    child_process = child;
    struct sigaction action {};
    action.sa_sigaction = forward;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    for (int number : forwarded_signals) {
      struct sigaction current {};
      sigaction(number, nullptr, &current);
      if (current.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
    }
  }
  sigprocmask(SIG_SETMASK, &plan.signals, nullptr);
  while (child > 0 && waitpid(child, &outcome.status, 0) < 0) {
    if (errno != EINTR) {
      outcome.status = 1 << 8;
      break;
    }
  }
  child_process = 0;
  return outcome;
}

}  // namespace

Outcome run_and_wait(const std::string& program, const std::vector<std::string>& command, const Changes& changes) {
  return spawn_and_wait(program, command, changes, false);
}

Outcome run_silently(const std::vector<std::string>& command) { return spawn_and_wait(command[0], command, {}, true); }

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
