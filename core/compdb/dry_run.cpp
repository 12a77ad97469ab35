#include <set>

#include "core/compdb/assemble.h"
#include "core/compdb/file_system.h"
#include "core/compdb/header_scan.h"
#include "core/compdb/object_contents.h"
#include "core/compdb/operations.h"
#include "core/compdb/recorded_environment.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/process.h"

extern char** environ;

namespace kerncap::compdb {
namespace {

constexpr std::chrono::seconds patience{60};

bool refuse(std::string* reason, std::string why) {
  if (reason != nullptr) *reason = std::move(why);
  return false;
}

// The caller's environment with the steering variables as they were then.
std::map<std::string, std::optional<std::string>> environment_of(const Record& record) {
  std::map<std::string, std::optional<std::string>> changes;
  if (record.environment.empty()) return changes;  // imported: not known
  for (const auto& [name, value] : steering_variables(environ)) changes[name] = std::nullopt;
  for (const auto& [name, value] : record.environment) changes[name] = value;
  return changes;
}

support::ProcessResult run_quietly(const Record& record, std::vector<std::string> argv) {
  support::Command command;
  command.argv = std::move(argv);
  command.working_directory = record.directory;
  command.environment = environment_of(record);
  command.standard_output = support::Stream::null;
  command.standard_error = support::Stream::capture;
  command.standard_input = "";
  command.timeout = patience;
  return support::run(command);
}

void scan_passes(const Record& record, std::vector<LoggedJob>& jobs) {
  const support::TemporaryFolder scratch("kerncap-headers");
  unsigned number = 0;
  for (LoggedJob& job : jobs) {
    if (!is_front_end_job(job.argv)) continue;
    const std::filesystem::path log = scratch.path() / std::to_string(number++);
    if (!run_quietly(record, header_scan_command(job.argv, log.string())).succeeded()) continue;
    std::string text;
    if (read_file(log.string(), std::uint64_t{256} << 20, text)) job.headers = header_lines(text);
  }
}

// The number of a unit depends on every option, and "-###" is one: where the object tells the true one, it goes into
// the jobs.
void correct_cuid(Record& record) {
  std::set<std::string> told;
  for (const IndexedCodeObject& code_object : code_objects_in(record.output)) {
    told.insert(code_object.cuids.begin(), code_object.cuids.end());
  }
  if (told.size() != 1) return;
  for (Job& job : record.jobs) {
    for (std::string& argument : job.argv) {
      if (argument.starts_with("-cuid=")) argument = "-cuid=" + *told.begin();
    }
  }
}

}  // namespace

bool recover_jobs(Record& record, std::string* reason) {
  if (!record.jobs.empty()) return true;
  if (record.kind != RecordKind::translation_unit) return refuse(reason, "only compiles have jobs to recover");
  const std::string& family = record.compiler.family;
  if (family != "clang" && family != "hipcc" && family != "unknown") {
    return refuse(reason, "the compiler " + record.compiler.path + " cannot list its jobs the way clang does");
  }
  if (record.source == "-") return refuse(reason, "the source came from standard input");
  try {
    std::vector<std::string> argv = record.expanded_argv;
    if (argv.empty()) return refuse(reason, "the command is not known");
    if (!record.compiler.path.empty()) argv[0] = record.compiler.path;
    argv.insert(argv.begin() + 1, "-###");
    const support::ProcessResult dry = run_quietly(record, argv);
    bool failed = false;
    FinishedCall call;
    call.jobs = parse_dry_run(dry.standard_error, &failed);
    if (!dry.succeeded() || failed || call.jobs.empty()) {
      return refuse(reason, "the dry run of " + record.compiler.path + " failed in " + record.directory);
    }
    scan_passes(record, call.jobs);
    call.common = record;
    call.common.files.clear();
    call.common.passes.clear();
    call.line = parse_arguments(record.expanded_argv, family);
    for (Record& found : assemble_records(call)) {
      const bool same = found.kind == record.kind &&
                        absolute_path(found.directory, found.source) == absolute_path(record.directory, record.source);
      if (!same) continue;
      // What the output was when it was recorded stays; everything else the dry run knows better.
      found.output = record.output;
      found.output_size = record.output_size;
      found.output_mtime = record.output_mtime;
      found.output_hash = record.output_hash;
      record = std::move(found);
      correct_cuid(record);
      return true;
    }
    return refuse(reason, "the dry run does not compile " + record.source);
  } catch (const support::Error& error) {
    return refuse(reason, error.what());
  }
}

}  // namespace kerncap::compdb
