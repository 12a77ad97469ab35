// kerncap-replay: runs a captured kernel again, on the application's own memory, and says whether the result is the
// same.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "core/support/error.h"
#include "replay/judge.h"
#include "replay/server.h"
#include "replay/watch.h"
#include "replay/worker.h"

int main(int argc, char** argv) {
  using namespace kerncap;
  try {
    const replay::Options options = replay::parse_options({argv + 1, argv + argc});
    if (options.help) {
      std::cout << replay::usage_text;
      return 0;
    }
    if (options.version) {
      std::cout << "kerncap-replay " KERNCAP_VERSION "\n";
      return 0;
    }
    if (options.worker_fd >= 0) return replay::run_worker(options);
    if (options.mode == replay::Mode::watch) return replay::watch(options);
    if (options.mode == replay::Mode::serve) return replay::serve(options, STDIN_FILENO, STDOUT_FILENO);
    const replay::Verdict verdict = replay::judge(options);
    std::cout << (options.json ? support::dump_json(replay::to_json(verdict)) : replay::to_text(verdict));
    if (!std::cout.flush()) {
      support::fail(support::ExitCode::environment, "cannot write the verdict: standard output is full or closed");
    }
    return static_cast<int>(replay::exit_code(verdict.outcome));
  } catch (const support::Error& error) {
    std::cerr << "kerncap-replay: error: " << error.what() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "kerncap-replay: error: " << error.what() << "\n";
    return static_cast<int>(support::ExitCode::environment);
  }
}
