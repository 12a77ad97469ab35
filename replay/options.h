// The options of kerncap-replay: parsed by the program, written back as a command line by whoever starts it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "replay/project.h"

namespace kerncap::replay {

enum class Mode {
  replay,    // run it, say how long it took
  validate,  // run it, compare memory with the application's own result
  bench,     // time it, checked; with `versus`, against another code object
  watch,     // a project: rebuild and validate on every save (watch.h)
  serve,     // requests on standard input, answers on standard output (server.h)
};
const char* to_string(Mode mode);

struct Options {
  Mode mode = Mode::validate;
  std::filesystem::path input;  // snapshot or project
  std::uint64_t dispatch = 0;   // position in the snapshot
  std::optional<std::filesystem::path>
      code_object;        // a candidate; none: the project's rebuilt one, else the captured one
  bool captured = false;  // the captured one even where the project has a rebuilt one
  std::string versus;     // bench: "captured" or a code object file; empty: none
  std::optional<std::filesystem::path> kernel_json;
  std::vector<std::string> tolerances;        // rules as add_rule() takes them
  std::uint64_t iterations = 0;               // replay, validate: runs (0: 1); bench: at most this many (0: default)
  std::chrono::milliseconds timeout{60'000};  // for one dispatch
  double seconds = 20;                        // bench: wall time
  double threshold = 0.01;                    // bench: relative differences up to this are "same"
  bool cold = false;                          // bench: flush the caches before every run
  bool changed_inputs = true;                 // a candidate that matches is tried on changed inputs too
  bool json = false;
  bool verbose = false;           // pass the runtime's own messages through
  bool all_parts = false;         // list arguments without differences too
  int worker_fd = -1;             // internal: this process is the one that runs the kernel
  bool await_candidates = false;  // internal: it gets its code objects by commands
  bool help = false, version = false;
};

// Throws Error{usage}.
Options parse_options(const std::vector<std::string>& arguments);

// The inverse: program first. Internal options are left out.
std::vector<std::string> command_line(const Options& options, const std::string& program);

extern const char* const usage_text;

}  // namespace kerncap::replay
