#include "wrapper/header_scan.h"

#include <unistd.h>

#include "core/compdb/file_system.h"
#include "core/compdb/header_scan.h"
#include "wrapper/run.h"

namespace kerncap::wrapper {
namespace {

constexpr std::uint64_t largest_header_log = 256U << 20;

}  // namespace

void scan_headers(std::vector<compdb::LoggedJob>& jobs, const std::string& directory, const std::string& log_path) {
  const std::string here = compdb::current_directory();
  if (chdir(directory.c_str()) != 0) return;
  for (compdb::LoggedJob& job : jobs) {
    if (!compdb::is_front_end_job(job.argv) || !job.headers.empty()) continue;
    if (truncate(log_path.c_str(), 0) != 0) break;
    std::string log;
    if (run_silently(compdb::header_scan_command(job.argv, log_path)).status != 0) continue;
    if (compdb::read_file(log_path, largest_header_log, log)) job.headers = compdb::header_lines(log);
  }
  if (chdir(here.c_str()) != 0) return;
}

}  // namespace kerncap::wrapper
