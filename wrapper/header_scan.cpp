#include "wrapper/header_scan.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "core/compdb/file_system.h"
#include "wrapper/run.h"

namespace kerncap::wrapper {
namespace {

constexpr std::uint64_t largest_header_log = 256U << 20;

// What a front-end job would write besides its result; each takes a value.
constexpr std::string_view outputs[] = {
    "-o", "-dependency-file", "-MT", "-serialize-diagnostic-file", "-header-include-file", "-dwarf-debug-flags"};

std::vector<std::string> preprocessing_only(const std::vector<std::string>& job, const std::string& log_path) {
  std::vector<std::string> command;
  for (std::size_t i = 0; i < job.size(); ++i) {
    if (std::ranges::find(outputs, job[i]) != std::end(outputs)) {
      ++i;
    } else {
      command.push_back(job[i]);
    }
  }
  // The last action wins; right after "-cc1", the input stays last.
  command.insert(command.begin() + 2, {"-header-include-file", log_path, "-sys-header-deps"});
  command.emplace_back("-Eonly");
  return command;
}

}  // namespace

void scan_headers(std::vector<compdb::LoggedJob>& jobs, const std::string& directory, const std::string& log_path) {
  const std::string here = compdb::current_directory();
  if (chdir(directory.c_str()) != 0) return;
  for (compdb::LoggedJob& job : jobs) {
    if (job.argv.size() < 3 || job.argv[1] != "-cc1" || !job.headers.empty()) continue;
    if (truncate(log_path.c_str(), 0) != 0) break;
    std::string log;
    if (run_silently(preprocessing_only(job.argv, log_path)).status != 0) continue;
    if (!compdb::read_file(log_path, largest_header_log, log)) continue;
    std::size_t at = 0;
    while (at < log.size()) {
      const std::size_t end = std::min(log.find('\n', at), log.size());
      if (end > at) job.headers.push_back(log.substr(at, end - at));
      at = end + 1;
    }
  }
  if (chdir(here.c_str()) != 0) return;
}

}  // namespace kerncap::wrapper
