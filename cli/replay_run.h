// Starting kerncap-replay, which runs kernels in a process of its own: what replay, validate, bench and extract share.
#pragma once

#include "cli/devices.h"
#include "cli/program.h"
#include "replay/options.h"
#include "replay/verdict.h"

namespace kerncap::cli {

// Runs the replayer and returns its verdict. Throws Error for outcomes that are no answer about the kernel (refused,
// bad input), with the verdict's sentence.
replay::Verdict run_replay(const Program& program, replay::Options options, const Devices& devices);

// The same in place of this process, with its standard input and output: watch and serve. Throws Error{environment}.
[[noreturn]] void become_replay(const Program& program, replay::Options options, const Devices& devices);

// The flags that replay, validate and bench share.
struct ReplayFlags {
  replay::Options options;
  std::string input, code_object, html;
  std::optional<std::uint64_t> timeout_seconds;
  bool captured_inputs_only = false;
  Devices devices;

  void add_flags(CLI::App& command);
  void add_session_flags(CLI::App& command);  // without those that choose a code object
  replay::Options resolved(const Program& program) const;
};

// Prints and turns the outcome into the exit code.
// `html`: a file that gets the verdict as a page, with all arguments; empty: none.
support::ExitCode print_verdict(const Program& program, replay::Verdict verdict, const std::string& html, bool all_parts);

}  // namespace kerncap::cli
