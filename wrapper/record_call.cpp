#include "wrapper/record_call.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/compdb/blob_store.h"
#include "core/compdb/depfile.h"
#include "core/compdb/file_system.h"
#include "core/compdb/folder.h"
#include "core/compdb/log_writer.h"
#include "core/compdb/recorded_environment.h"
#include "core/compdb/response_file.h"
#include "wrapper/header_scan.h"
#include "wrapper/warn.h"

extern char** environ;

namespace kerncap::wrapper {
namespace {

using compdb::absolute_path;
using compdb::Action;
using compdb::Record;

constexpr std::uint64_t largest_driver_log = 256U << 20;
constexpr std::uint64_t largest_depfile = 64U << 20;

// The user's own use of clang's logs comes first: ours would divert it.
constexpr auto logging_variables =
    std::to_array<const char*>({"CC_PRINT_OPTIONS", "CC_PRINT_OPTIONS_FILE", "CC_PRINT_HEADERS",
                                "CC_PRINT_HEADERS_FILE", "CC_PRINT_HEADERS_FORMAT", "CC_PRINT_HEADERS_FILTERING"});

// With these the driver shows its commands or headers to the user, who must go on seeing them: clang writes them to its
// log instead when it has one. CMake reads the implicit link folders of a compiler from there.
constexpr auto shown_to_the_user = std::to_array<std::string_view>({"-v", "--verbose", "-H", "--trace-includes"});

bool shows_its_work(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    for (const std::string_view option : shown_to_the_user) {
      if (argument == option) return true;
    }
  }
  return false;
}

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

// Build systems compile small programs while they configure: CMake (try_compile, the identification of the compiler),
// Meson (in its own folder) and autoconf (conftest.c, conftest.cpp, ...).
bool is_configure_check(const std::string& directory, const compdb::CommandLine& line) {
  const auto is_conftest = [](const auto& source) { return compdb::base_name(source.path).starts_with("conftest."); };
  if (directory.find("/meson-private") != std::string::npos) return true;
  if (!line.sources.empty() && std::ranges::all_of(line.sources, is_conftest)) return true;
  const std::size_t at = directory.find("/CMakeFiles/");
  if (at == std::string::npos) return false;
  const std::string_view rest = std::string_view(directory).substr(at + 12);
  return rest.starts_with("CMakeScratch") || rest.starts_with("CMakeTmp") ||
         rest.find("/CompilerId") != std::string_view::npos;
}

compdb::Compiler describe_compiler(const Target& target) {
  compdb::Compiler compiler;
  compiler.path = target.compiler_path;
  compiler.resolved = compdb::resolved_path(target.compiler_path);
  const compdb::FileIdentity file = compdb::identify(compiler.resolved);
  compiler.size = file.size;
  compiler.mtime = file.mtime;
  compiler.family = compdb::compiler_family(target.command[target.compiler]);
  if (compiler.family == "unknown") compiler.family = compdb::compiler_family(compiler.resolved);
  return compiler;
}

// An empty file of our own; memory rather than a disk where the user has no wish, because it lives for one compile.
std::string make_log() {
  const char* wish = std::getenv("TMPDIR");
  const bool wished = wish != nullptr && wish[0] != '\0';
  for (const char* folder : {wished ? wish : "/dev/shm", "/tmp"}) {
    std::string path = folder[0] == '/' ? folder : absolute_path(compdb::current_directory(), folder);
    path += "/kerncap-cc-XXXXXX";
    const int fd = mkostemp(path.data(), O_CLOEXEC);
    if (fd < 0) continue;
    close(fd);
    return path;
  }
  return {};
}

bool compiles_or_links(Action action) { return action != Action::query && action != Action::preprocess; }

}  // namespace

CallRecorder::CallRecorder(const Target& target) : target_(target) {
  const std::string here = compdb::current_directory();
  database_ = compdb::find_database_folder(here);
  if (database_.empty()) return;
  Record& common = call_.common;
  common.argv.assign(target.command.begin() + static_cast<std::ptrdiff_t>(target.compiler), target.command.end());
  common.expanded_argv = compdb::expand_response_files(common.argv, here);
  common.compiler = describe_compiler(target);
  call_.line = compdb::parse_arguments(common.expanded_argv, common.compiler.family);
  wanted_ = compiles_or_links(call_.line.action);
  if (!wanted_) return;
  common.directory = call_.line.working_directory.empty() ? here : absolute_path(here, call_.line.working_directory);
  common.host = compdb::log_host_name();
  common.database = database_;
  common.configure_check = is_configure_check(here, call_.line);
}

CallRecorder::~CallRecorder() {
  if (!log_path_.empty()) unlink(log_path_.c_str());
}

void CallRecorder::prepare(Changes& changes) {
  call_.common.environment = compdb::steering_variables(environ);
  for (auto& [name, value] : call_.common.environment) {
    if (name == "PATH") value = target_.search_path;
  }
  call_.common.started = now_ns();
  const std::string& family = call_.common.compiler.family;
  if (family == "gcc" || family == "nvcc") return;
  for (const char* variable : logging_variables) {
    if (std::getenv(variable) != nullptr) return;
  }
  if (shows_its_work(call_.common.expanded_argv)) return;  // the jobs are recovered by a dry run when they are needed
  // A log that clang cannot open fails the compile, so it is made, empty, before the compiler is told of it.
  log_path_ = make_log();
  if (log_path_.empty()) return;
  changes.emplace_back("CC_PRINT_OPTIONS", "1");
  changes.emplace_back("CC_PRINT_OPTIONS_FILE", log_path_);
  // The header log makes clang treat system headers as dependencies (-sys-header-deps), which would put them into the
  // file that -MMD writes as well: then the passes are looked at afterwards instead.
  const char* appended = std::getenv("HIPCC_COMPILE_FLAGS_APPEND");
  logs_headers_ = !call_.line.user_headers_only && (appended == nullptr || std::strstr(appended, "-MMD") == nullptr);
  if (logs_headers_) {
    changes.emplace_back("CC_PRINT_HEADERS", "1");
    changes.emplace_back("CC_PRINT_HEADERS_FILE", log_path_);
  }
}

void CallRecorder::read_log() {
  std::string log;
  if (log_path_.empty() || !compdb::read_file(log_path_, largest_driver_log, log)) return;
  call_.jobs = compdb::parse_driver_log(log);
  for (compdb::LoggedJob& job : call_.jobs) compdb::remove_logging_options(job.argv, log_path_);
  compdb::Compiler& compiler = call_.common.compiler;
  if (!call_.jobs.empty() && compiler.family == "unknown") compiler.family = "clang";
  call_.jobs_expected = compiler.family == "clang" || compiler.family == "hipcc";
  for (const std::string& argument : call_.common.expanded_argv) {
    if (argument.starts_with("-parallel-jobs")) call_.passes_interleaved = true;
  }
}

void CallRecorder::read_depfile() {
  if (call_.line.dependency_file.empty()) return;
  const std::string path = absolute_path(call_.common.directory, call_.line.dependency_file);
  std::string text;
  const compdb::FileIdentity file = compdb::identify(path);
  constexpr std::uint64_t clock_tick = 10'000'000;  // file times are those of the last timer tick
  if (file.mtime + clock_tick < call_.common.started || !compdb::read_file(path, largest_depfile, text)) return;
  compdb::Dependencies read = compdb::parse_depfile(text);
  call_.dependencies = std::move(read.files);
  call_.dependencies_on_modules = std::move(read.modules);
}

void CallRecorder::finish(int exit_status) {
  call_.common.wall = now_ns() - call_.common.started;
  call_.common.exit_status = exit_status;
  read_log();
  if (exit_status == 0) {
    read_depfile();
    if (!call_.jobs.empty() && !logs_headers_) scan_headers(call_.jobs, call_.common.directory, log_path_);
  }
  // Here and not in the destructor alone: main() ends without unwinding.
  if (!log_path_.empty()) unlink(log_path_.c_str());
  log_path_.clear();
  const bool archive = exit_status == 0 && compdb::archives_sources(database_);
  for (Record& record : compdb::assemble_records(call_)) {
    if (const int error = archive ? compdb::archive_sources(database_, record.files) : 0; error != 0) {
      warn_once(database_, "sources are not archived in " + database_ + ": " + std::strerror(error));
    }
    if (const int error = compdb::append_record(database_, record); error != 0) {
      warn_once(database_,
                "compiles are not recorded: cannot write to the database " + database_ + ": " + std::strerror(error));
      return;
    }
  }
}

}  // namespace kerncap::wrapper
