// Running an application with the capture library inside: what profile, capture and extract share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/config.h"
#include "capture/status.h"
#include "cli/devices.h"
#include "cli/program.h"
#include "core/support/process.h"

namespace kerncap::cli {

struct CapturedRun {
  support::ProcessResult application;
  std::vector<capture::Status> statuses;  // one a process that loaded the library
};

// Runs `application` with `config`, whose status folder is chosen here, and shows the progress that the library
// reports. The application's streams are the caller's; with --json its standard output goes to standard error, so that
// the result stands alone. Throws Error{environment} when the application cannot be started.
CapturedRun run_captured(const Program& program, capture::Config config, const std::vector<std::string>& application,
                         const Environment& devices);

// "exit code 7" | "SIGSEGV (signal 11)".
std::string describe_end(const support::ProcessResult& result);

// The flags that choose a dispatch: the same for capture and extract.
struct CaptureOptions {
  std::string kernel, dispatches = "0", output, process, code_object, scope = "everything";
  std::string profile, grid, block, range;
  double after_ms = 0, before_ms = 0;
  std::uint64_t max_bytes = 0;
  bool force = false;
  Devices devices;

  void add_flags(CLI::App& command, const std::string& output_help);
};

struct CaptureOutcome {
  std::filesystem::path snapshot;
  capture::Status status;  // of the process that captured
  support::ProcessResult application;
};

// Takes the snapshot, or throws: {answer_is_no} the kernel was not seen or is ambiguous, {application_failed} the
// application ended badly before it, {environment} the library did not load or the capture failed.
CaptureOutcome take_snapshot(const Program& program, const std::string& command, const CaptureOptions& options,
                             const std::filesystem::path& output, bool replace);

}  // namespace kerncap::cli
