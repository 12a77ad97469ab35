// The recorded compiler jobs of one device target, made ready to run again somewhere else: what they read from each
// other and where they write is replaced by placeholders, and what only writes reports is left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/compdb/record.h"

namespace kerncap::emit {

// Replaced by absolute paths when an emitted project is configured. They stand for folders without a final slash.
inline constexpr std::string_view build_placeholder = "@KERNCAP_BUILD@";  // where steps write
inline constexpr std::string_view work_placeholder =
    "@KERNCAP_WORK@";  // stands for the root folder "/" of the recorded working directory
inline constexpr std::string_view source_placeholder = "@KERNCAP_SOURCE@";  // the project's folder

struct Step {
  compdb::Job::Tool tool = compdb::Job::Tool::other;
  std::string name;                    // "1-compile"
  std::string program;                 // as recorded, absolute
  std::vector<std::string> leading;    // arguments that must stay on the command line ("-cc1", "-flavor" "gnu")
  std::vector<std::string> arguments;  // the rest, with placeholders
  std::vector<std::string> inputs;     // outputs of earlier steps, file names in the build folder
  std::string output;                  // file name in the build folder
  std::string directory;               // recorded working directory
  bool front_end = false;              // reads sources, so it gets the overlay
  std::size_t unit = 0;                // position of its translation unit
};

struct DeviceJobs {
  std::vector<Step> steps;  // in order; the last one writes the code object
  std::string impossible;   // why the jobs cannot be run again; empty when they can
};

// `target` as in Record::device_targets; `output` is the file name for the code object ("kernel.hsaco"); `prefix`
// begins the steps' names.
DeviceJobs device_jobs(const compdb::Record& record, std::string_view target, const std::string& output,
                       const std::string& prefix = "");

// The jobs of a relocatable-device-code link: `link` holds the device link, `units` the translation units whose objects
// it takes.
struct RdcUnit {
  const compdb::Record* record = nullptr;
  std::string name;  // unique, usable in file names
};
DeviceJobs rdc_jobs(const compdb::Record& link, const std::vector<RdcUnit>& units, std::string_view target,
                    const std::string& output);

// One argument in a response file, GNU quoting (llvm::cl::TokenizeGNUCommandLine).
std::string response_file_line(std::string_view argument);

}  // namespace kerncap::emit
