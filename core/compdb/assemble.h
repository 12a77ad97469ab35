// From one finished compiler call to its records: which jobs belong to which translation unit, which to the link, which
// target each pass was for, and which files each pass read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/compdb/arguments.h"
#include "core/compdb/driver_log.h"
#include "core/compdb/record.h"

namespace kerncap::compdb {

// A compiler call as it was seen from outside. `common` holds what all of its records share: argv, expanded_argv,
// directory, environment, compiler, host, times and exit status.
struct FinishedCall {
  Record common;
  CommandLine line;                       // of common.expanded_argv
  std::vector<LoggedJob> jobs;            // empty for a compiler that keeps no log, and when a compiler cache answered
  std::vector<std::string> dependencies;  // files of the depfile that the call wrote, main file included
  std::vector<std::string> dependencies_on_modules;  // names, of the depfile
  bool jobs_expected = false;  // the compiler keeps a log: no jobs means that a cache answered, or that it failed early
  bool passes_interleaved = false;  // the driver ran passes side by side (-parallel-jobs): headers cannot be told apart
};

std::vector<Record> assemble_records(const FinishedCall& call);

// What a job is and for which target, from its command alone. Also used by the importers.
Job describe_job(std::vector<std::string> argv);

// Fills in output_size, output_mtime and, for objects, output_hash from the disk.
void identify_output(Record& record);

}  // namespace kerncap::compdb
