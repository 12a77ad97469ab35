#include "core/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <thread>

#include "core/support/error.h"
#include "core/support/file.h"

extern char** environ;

namespace kerncap::support {
namespace {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read_end, write_end;
  void open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      fail(ExitCode::environment, "cannot make a pipe: {}", std::strerror(errno));
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
};

std::vector<std::string> child_environment(const Command& command) {
  std::map<std::string, std::string> variables;
  if (!command.clear_environment) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      const std::size_t equals = text.find('=');
      if (equals != std::string_view::npos)
        variables.insert_or_assign(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
    }
  }
  for (const auto& [name, value] : command.environment) {
    if (value) {
      variables.insert_or_assign(name, *value);
    } else {
      variables.erase(name);
    }
  }
  std::vector<std::string> result;
  result.reserve(variables.size());
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers_of(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// A terminal sends SIGINT and SIGQUIT to the whole foreground group: the child decides, we wait for it. SIGPIPE would
// end us when a child closes its standard input early. Whoever started us with SIGCHLD ignored would have the kernel
// forget how a child ended (wait(2), ERRORS: ECHILD), so that a killed one could not be told from a good one.
class SignalsHeld {
 public:
  SignalsHeld() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    for (std::size_t i = 0; i < signals_.size(); ++i) ::sigaction(signals_[i], &ignore, &saved_[i]);
    ::sigaction(SIGCHLD, nullptr, &saved_child_);
    if (forgets_children(saved_child_)) {
      struct sigaction standard {};
      standard.sa_handler = SIG_DFL;
      ::sigaction(SIGCHLD, &standard, nullptr);
    }
  }
  ~SignalsHeld() {
    for (std::size_t i = 0; i < signals_.size(); ++i) ::sigaction(signals_[i], &saved_[i], nullptr);
    if (forgets_children(saved_child_)) ::sigaction(SIGCHLD, &saved_child_, nullptr);
  }
  // The child must start with the dispositions that we had, not with "ignore".
  void set_defaults(posix_spawnattr_t* attributes) const {
    sigset_t defaults;
    ::sigemptyset(&defaults);
    for (std::size_t i = 0; i < signals_.size(); ++i) {
      if (saved_[i].sa_handler != SIG_IGN) ::sigaddset(&defaults, signals_[i]);
    }
    ::posix_spawnattr_setsigdefault(attributes, &defaults);
  }

 private:
  static bool forgets_children(const struct sigaction& action) {
    return action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0;
  }

  static constexpr std::array<int, 3> signals_{SIGINT, SIGQUIT, SIGPIPE};
  std::array<struct sigaction, 3> saved_{};
  struct sigaction saved_child_ {};
};

int remaining_milliseconds(const std::optional<std::chrono::steady_clock::time_point>& deadline) {
  if (!deadline) return -1;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<long long>(left, INT_MAX - 1)) + 1;
}

std::optional<std::filesystem::path> find_program_on(std::string_view path, const std::string& name) {
  const auto executable = [](const std::filesystem::path& candidate) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(candidate, ignored) && ::access(candidate.c_str(), X_OK) == 0;
  };
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string::npos) {
    if (executable(name)) return name;
    return std::nullopt;
  }
  while (true) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    const std::filesystem::path candidate = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (executable(candidate)) return candidate;
    if (colon == std::string_view::npos) return std::nullopt;
    path.remove_prefix(colon + 1);
  }
}

}  // namespace

ProcessResult run(const Command& command) {
  if (command.argv.empty()) fail(ExitCode::usage, "no command was given to run");
  // A changed PATH decides which program is meant, as it would in a shell.
  const auto changed_path = command.environment.find("PATH");
  const auto program = changed_path != command.environment.end() && changed_path->second
                           ? find_program_on(*changed_path->second, command.argv.front())
                           : find_program(command.argv.front());
  if (!program) {
    fail(ExitCode::environment, "cannot run '{}': no such program{}", command.argv.front(),
         command.argv.front().find('/') == std::string::npos ? " on PATH" : "");
  }
  // posix_spawn has no portable "change directory"; glibc 2.29 and later have this one.
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  struct Cleanup {
    posix_spawn_file_actions_t* a;
    posix_spawnattr_t* b;
    ~Cleanup() {
      ::posix_spawn_file_actions_destroy(a);
      ::posix_spawnattr_destroy(b);
    }
  } cleanup{&actions, &attributes};

  Pipe out, err, in;
  const auto redirect = [&](Stream stream, Pipe& pipe, int fd) {
    if (stream == Stream::capture) {
      pipe.open();
      ::posix_spawn_file_actions_adddup2(&actions, pipe.write_end.get(), fd);
    } else if (stream == Stream::null) {
      ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
    } else if (stream == Stream::standard_error && fd != STDERR_FILENO) {
      ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, fd);
    }
  };
  redirect(command.standard_output, out, STDOUT_FILENO);
  redirect(command.standard_error, err, STDERR_FILENO);
  if (command.standard_input) {
    in.open();
    ::posix_spawn_file_actions_adddup2(&actions, in.read_end.get(), STDIN_FILENO);
  }
  if (!command.working_directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions, command.working_directory.c_str());
  }

  SignalsHeld held;
  held.set_defaults(&attributes);
  short flags = POSIX_SPAWN_SETSIGDEF;
  if (command.timeout) {  // a group of its own, so that a time-out ends the grandchildren too
    flags |= POSIX_SPAWN_SETPGROUP;
    ::posix_spawnattr_setpgroup(&attributes, 0);
  }
  ::posix_spawnattr_setflags(&attributes, flags);

  std::vector<std::string> arguments = command.argv, variables = child_environment(command);
  const std::vector<char*> argv = pointers_of(arguments), environment = pointers_of(variables);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = -1;
  const int spawned = ::posix_spawn(&child, program->c_str(), &actions, &attributes, argv.data(), environment.data());
  if (spawned != 0) {
    fail(ExitCode::environment, "cannot run '{}'{}: {}", command.argv.front(),
         command.working_directory.empty() ? "" : " in '" + command.working_directory.string() + "'",
         std::strerror(spawned));
  }
  out.write_end.reset();
  err.write_end.reset();
  in.read_end.reset();

  std::optional<std::chrono::steady_clock::time_point> deadline;
  if (command.timeout) deadline = start + *command.timeout;

  ProcessResult result;
  std::thread feeder;  // a child that reads slowly must not block our reading of its output
  if (command.standard_input) {
    feeder = std::thread([&] {
      std::string_view rest = *command.standard_input;
      while (!rest.empty()) {
        const ssize_t wrote = ::write(in.write_end.get(), rest.data(), rest.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) break;  // the child closed it: its choice
        rest.remove_prefix(static_cast<std::size_t>(wrote));
      }
      in.write_end.reset();
    });
  }
  const auto end_by_force = [&](bool& why) {
    why = true;
    ::kill(-child, SIGKILL);
    deadline.reset();
  };
  const int cancel_fd = command.timeout ? command.cancel_fd : -1;
  std::array<char, 65536> buffer;
  while (out.read_end.get() >= 0 || err.read_end.get() >= 0) {
    std::array<pollfd, 3> polled{{{out.read_end.get(), POLLIN, 0},
                                  {err.read_end.get(), POLLIN, 0},
                                  {result.cancelled ? -1 : cancel_fd, POLLIN, 0}}};
    const int ready = ::poll(polled.data(), polled.size(), remaining_milliseconds(deadline));
    if (ready == 0) end_by_force(result.timed_out);
    if (ready <= 0) continue;
    if (polled[2].revents != 0) end_by_force(result.cancelled);
    const auto drain = [&](const pollfd& entry, Pipe& pipe, std::string& text) {
      if (entry.fd < 0 || entry.revents == 0) return;
      const ssize_t got = ::read(entry.fd, buffer.data(), buffer.size());
      if (got > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        pipe.read_end.reset();
      }
    };
    drain(polled[0], out, result.standard_output);
    drain(polled[1], err, result.standard_error);
  }
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, deadline ? WNOHANG : 0);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) {  // somebody else in this process waited for it
      if (feeder.joinable()) feeder.join();
      fail(ExitCode::environment, "cannot learn how '{}' ended: {}", command.argv.front(), std::strerror(ECHILD));
    }
    if (ended == 0) {
      if (remaining_milliseconds(deadline) == 0) {
        end_by_force(result.timed_out);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
  }
  if (feeder.joinable()) feeder.join();
  result.wall_time = std::chrono::steady_clock::now() - start;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.exit_status = 128 + result.signal;
  } else {
    result.exit_status = WEXITSTATUS(status);
  }
  return result;
}

std::optional<std::filesystem::path> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  return find_program_on(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin", name);
}

std::string shell_quoted(const std::vector<std::string>& argv) {
  static constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  std::string result;
  for (const std::string& argument : argv) {
    if (!result.empty()) result += ' ';
    if (!argument.empty() && argument.find_first_not_of(plain) == std::string::npos) {
      result += argument;
      continue;
    }
    result += '\'';
    for (const char c : argument) {
      if (c == '\'') {
        result += "'\\''";
      } else {
        result += c;
      }
    }
    result += '\'';
  }
  return result;
}

std::filesystem::path executable_folder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) fail(ExitCode::environment, "cannot read /proc/self/exe: {}", error.message());
  return self.parent_path();
}

}  // namespace kerncap::support
