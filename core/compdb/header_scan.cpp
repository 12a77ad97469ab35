#include "core/compdb/header_scan.h"

#include <algorithm>

namespace kerncap::compdb {
namespace {

// What a front-end job would write besides its result; each takes a value.
constexpr std::string_view outputs[] = {"-o", "-dependency-file", "-MT", "-serialize-diagnostic-file",
                                        "-header-include-file"};

}  // namespace

bool is_front_end_job(const std::vector<std::string>& argv) { return argv.size() > 2 && argv[1] == "-cc1"; }

std::vector<std::string> header_scan_command(const std::vector<std::string>& job, const std::string& log_path) {
  std::vector<std::string> command;
  for (std::size_t i = 0; i < job.size(); ++i) {
    if (std::ranges::find(outputs, job[i]) != std::end(outputs)) {
      ++i;
    } else {
      command.push_back(job[i]);
    }
  }
  command.insert(command.begin() + 2, {"-header-include-file", log_path, "-sys-header-deps"});
  command.emplace_back("-Eonly");  // the last action wins
  return command;
}

std::vector<std::string> header_lines(std::string_view log) {
  std::vector<std::string> lines;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    if (end > 0) lines.emplace_back(log.substr(0, end));
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return lines;
}

}  // namespace kerncap::compdb
