#include <algorithm>
#include <exception>
#include <iostream>
#include <iterator>

#include "cli/program.h"
#include "cli/table.h"
#include "core/support/log.h"
#include "core/support/progress.h"
#include "kerncap_version.h"

namespace kerncap::cli {
namespace {

using support::ExitCode;

// "--softgpu" may stand without a value, and must then not swallow the next argument.
constexpr const char* flag_with_optional_value = "--softgpu";

constexpr const char* closing_help =
    "Exit codes: 0 done; 1 the answer is no; 2 wrong usage; 3 the environment lacks something; 4 an input is corrupt "
    "or\n"
    "unsupported; 5 the application itself failed.\n"
    "A first session:\n"
    "  kerncap build -- cmake --build build        record how everything is compiled\n"
    "  kerncap profile -- ./build/app              which kernels run, and for how long\n"
    "  kerncap extract -k my_kernel -o repro -- ./build/app\n"
    "  cd repro && cmake --preset default && cmake --build build && ctest --test-dir build\n";

int run(int argc, char** argv) {
  Program program;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes != arguments.end()) {
    program.application.assign(std::next(dashes), arguments.end());
    arguments.erase(dashes, arguments.end());
  }
  for (std::string& argument : arguments) {
    if (argument == flag_with_optional_value) argument += "=auto";
  }
  std::reverse(arguments.begin(), arguments.end());  // the order that CLI11 wants of a vector

  CLI::App& app = program.app;
  app.require_subcommand(1);
  app.set_version_flag("--version", "kerncap " KERNCAP_VERSION);
  app.set_help_all_flag("--help-all", "Help of every command");
  app.footer(closing_help);
  app.fallthrough();
  app.add_flag("--json", program.json, "Print the result as JSON instead of a table");
  app.add_flag("-q,--quiet", program.quiet, "No progress on standard error");
  app.add_flag("-v,--verbose", program.verbosity, "Say more; twice: debug output");
  for (const auto add : {add_doctor, add_build, add_db, add_profile, add_capture, add_inspect, add_emit, add_extract,
                         add_pack, add_replay, add_validate, add_bench, add_watch, add_serve, add_softgpu, add_completion, add_manual}) {
    add(program);
  }
  try {
    program.settings = load_settings(std::filesystem::current_path());
    app.parse(arguments);
  } catch (const CLI::Success& asked_for_help) {
    const int status = app.exit(asked_for_help);
    if (!std::cout.flush()) support::fail(ExitCode::environment, "cannot write the help: standard output is full or closed");
    return status;
  } catch (const CLI::ParseError& error) {
    const std::string command = app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name() + " ";
    fmt::print(stderr, "kerncap: error: {}; 'kerncap {}--help' explains the usage\n", error.what(), command);
    return static_cast<int>(ExitCode::usage);
  }
  support::start_logging("kerncap", program.verbosity);
  if (program.quiet) support::set_progress_mode(support::ProgressMode::off);
  return static_cast<int>(program.action());
}

}  // namespace

CLI::App& Program::add(const std::string& name, const std::string& summary, const std::string& examples) {
  CLI::App* command = app.add_subcommand(name, summary);
  command->fallthrough();
  if (!examples.empty()) command->footer("Examples:\n" + examples);
  return *command;
}

void Program::run_with(CLI::App& command, std::function<ExitCode()> chosen) {
  command.callback([this, chosen = std::move(chosen)] { action = chosen; });
}

const std::vector<std::string>& Program::required_application(const std::string& command) const {
  if (application.empty()) {
    support::fail(ExitCode::usage, "'{}' needs a command to run after '--', e.g. kerncap {} -- ./app --steps 10",
                  command, command);
  }
  return application;
}

}  // namespace kerncap::cli

int main(int argc, char** argv) {
  using kerncap::support::ExitCode;
  try {
    return kerncap::cli::run(argc, argv);
  } catch (const kerncap::support::Error& error) {
    fmt::print(stderr, "kerncap: error: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "kerncap: error: {}\n", error.what());
    return static_cast<int>(ExitCode::environment);
  }
}
