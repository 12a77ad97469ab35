// Running the compiler: as ourselves (exec), or as a child whose end we wait for.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kerncap::wrapper {

using Changes = std::vector<std::pair<std::string, std::string>>;  // variables to set for the child

// `program` is the absolute path, command[0] the name it is told.
// Replaces this process; returns only on failure, with an errno.
int execute(const std::string& program, const std::vector<std::string>& command, const Changes& changes);

struct Outcome {
  int start_error = 0;  // errno; 0 when the child ran
  int status = 0;       // as waitpid() gives it
};
// Starts the command with every descriptor inherited, hands signals on to it, and waits.
Outcome run_and_wait(const std::string& program, const std::vector<std::string>& command, const Changes& changes);

// The same without a voice: standard input, output and error are /dev/null.
Outcome run_silently(const std::vector<std::string>& command);

// 0..255, 128 + n for signal n.
int shell_status(int wait_status);

// Ends this process the way the child ended, by the same signal if it was one.
[[noreturn]] void end_like(int wait_status);

}  // namespace kerncap::wrapper
