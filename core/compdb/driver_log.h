// The log that clang's driver keeps of itself when CC_PRINT_OPTIONS and CC_PRINT_HEADERS name the same file: each job
// as it starts, followed by the headers of that front-end pass.
//
//   [Logging clang options]
//    (in-process)                             (clang 16 and later, where it applies)
//    "/usr/lib/llvm-15/bin/clang" "-cc1" ...  (quoted: \ before " \ and $; arguments may hold newlines)
//   /usr/include/a.h                          (one line for each header that this job opened)
//
// One file for both is what tells which pass opened a header: clang appends, and runs one job after the other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kerncap::compdb {

struct LoggedJob {
  std::vector<std::string> argv;
  std::vector<std::string> headers;  // as opened, in order, with repetitions
};

// Never fails: what cannot be read is left out.
std::vector<LoggedJob> parse_driver_log(std::string_view log);

// The commands that `clang -###` prints on standard error; same quoting, no headers. `failed` (may be null) is set when
// the text holds an error line.
std::vector<LoggedJob> parse_dry_run(std::string_view text, bool* failed);

// Removes from a job what the log itself added to it ("-header-include-file FILE" and its companions), so that it is
// the command that the driver would have run by itself.
void remove_logging_options(std::vector<std::string>& argv, std::string_view log_path);

}  // namespace kerncap::compdb
