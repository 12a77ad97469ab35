// What every command of the `kerncap` program shares: global flags, settings, and how a command registers itself.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <vector>

#include "cli/settings.h"
#include "core/support/error.h"

namespace kerncap::cli {

struct Program {
  CLI::App app{"Takes one GPU kernel out of an application and makes it a small project.", "kerncap"};
  Settings settings;
  bool json = false;   // --json: the result as JSON on standard output
  bool quiet = false;  // --quiet: no progress
  int verbosity = 0;   // -v, -vv

  // Everything after the first "--": the application or build command of build, profile, capture, extract, softgpu.
  std::vector<std::string> application;

  // The chosen command; set by CLI11's callback, called after parsing.
  std::function<support::ExitCode()> action;

  // Adds a sub-command whose flags the caller then declares.
  CLI::App& add(const std::string& name, const std::string& summary, const std::string& examples);
  void run_with(CLI::App& command, std::function<support::ExitCode()> chosen);

  // `application`, or Error{usage} saying that `command` needs "-- CMD...".
  const std::vector<std::string>& required_application(const std::string& command) const;
};

// One function a command, each in commands/<name>.cpp.
void add_doctor(Program& program);
void add_build(Program& program);
void add_db(Program& program);
void add_profile(Program& program);
void add_capture(Program& program);
void add_inspect(Program& program);
void add_emit(Program& program);
void add_extract(Program& program);
void add_pack(Program& program);  // and unpack
void add_replay(Program& program);
void add_validate(Program& program);
void add_bench(Program& program);
void add_watch(Program& program);
void add_serve(Program& program);
void add_softgpu(Program& program);
void add_completion(Program& program);
void add_manual(Program& program);

}  // namespace kerncap::cli
