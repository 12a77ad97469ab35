// kerncap-cc: runs a compiler exactly as it was asked to, and notes what it did.
//
// Whatever goes wrong on our side (no database, full disk, a log that cannot be read) the compile goes on and its
// result and exit status are the compiler's own. The order below is the order of things that may end our part early.
#include <errno.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "wrapper/bail_out.h"
#include "wrapper/compiler.h"
#include "wrapper/record_call.h"
#include "wrapper/run.h"
#include "wrapper/warn.h"

namespace kerncap::wrapper {
namespace {

// Set for everything below a recorded compile: a compiler driver that is found by one of our names there is part of it.
constexpr const char* active_variable = "KERNCAP_CC_ACTIVE";
constexpr int deepest_recursion = 16;
constexpr int cannot_start = 127;  // as shells say it

int recursion_depth() {
  const char* active = std::getenv(active_variable);
  return active != nullptr ? std::atoi(active) : 0;
}

[[noreturn]] void run_unrecorded(const Target& target, const Changes& changes) {
  const int error = execute(target.program, target.command, changes);
  say("error: cannot run '" + target.program + "': " + std::strerror(error));
  _exit(error == ENOENT ? cannot_start : 126);
}

int main_of(const std::vector<std::string>& argv) {
  const Target target = find_target(argv);
  if (!target.error.empty()) {
    say("error: " + target.error);
    return cannot_start;
  }
  const int depth = recursion_depth();
  if (depth >= deepest_recursion) {
    say("error: '" + target.command[0] +
        "' leads back to kerncap-cc again and again; name the real compiler by its full path");
    return cannot_start;
  }
  Changes changes = {{active_variable, std::to_string(depth + 1)}};
  if (depth > 0) run_unrecorded(target, changes);

  std::vector<char*> plainly;
  for (const std::string& argument : target.command) plainly.push_back(const_cast<char*>(argument.c_str()));
  plainly.push_back(nullptr);
  bail_out_into(target.program.c_str(), plainly.data());

  CallRecorder recorder(target);
  if (!recorder.wanted()) run_unrecorded(target, {});
  if (target.masquerading) changes.emplace_back("PATH", target.search_path);
  recorder.prepare(changes);
  Outcome outcome = run_and_wait(target.program, target.command, changes);
  // An argument list at the system's limit has no room for our variables: then without them, and without the log.
  if (outcome.start_error == E2BIG) outcome = run_and_wait(target.program, target.command, {});
  if (outcome.start_error != 0) run_unrecorded(target, {});
  bail_out_with(outcome.status);
  recorder.finish(shell_status(outcome.status));
  end_like(outcome.status);
}

}  // namespace
}  // namespace kerncap::wrapper

int main(int argc, char** argv) { return kerncap::wrapper::main_of({argv, argv + argc}); }
