// The one process runner: argv arrays only, never a shell.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kerncap::support {

enum class Stream {
  inherit,
  capture,
  null,
  standard_error,  // standard output goes where standard error goes
};

struct Command {
  std::vector<std::string> argv;                                  // argv[0] is looked up on PATH when it has no slash
  std::filesystem::path working_directory;                        // empty: the caller's
  std::map<std::string, std::optional<std::string>> environment;  // changes to the caller's; nullopt removes
  bool clear_environment = false;                                 // start from nothing instead of the caller's
  Stream standard_output = Stream::inherit;
  Stream standard_error = Stream::inherit;
  std::optional<std::string> standard_input;         // nullopt: inherit; otherwise this text
  std::optional<std::chrono::milliseconds> timeout;  // the whole process group is killed past it
  int cancel_fd = -1;  // with `timeout`: the same as soon as this descriptor can be read; nothing is read from it
};

struct ProcessResult {
  int exit_status = 0;  // what exit() was given; 128 + n when signal n ended it (as a shell says it)
  int signal = 0;       // 0 when it exited by itself
  bool timed_out = false;
  bool cancelled = false;  // by cancel_fd
  std::string standard_output;  // when captured
  std::string standard_error;
  std::chrono::nanoseconds wall_time{};
  bool succeeded() const { return exit_status == 0 && !timed_out && !cancelled; }
};

// Runs and waits. Throws Error{environment} when the program cannot be started (not found, not executable).
// A terminal's SIGINT/SIGQUIT reach the child by itself; the caller survives them until the child has ended.
ProcessResult run(const Command& command);

// Where PATH finds a program; nullopt when it does not. A name with a slash is returned when it is executable.
std::optional<std::filesystem::path> find_program(const std::string& name);

// "a b 'c d'": for showing a command to a person, quoted so that a shell would read it back; never executed by us.
std::string shell_quoted(const std::vector<std::string>& argv);

// The folder of the running program (from /proc/self/exe).
std::filesystem::path executable_folder();

}  // namespace kerncap::support
