#include "core/compdb/driver_log.h"

#include <algorithm>

namespace kerncap::compdb {
namespace {

constexpr std::string_view heading = "[Logging clang options]";

// Reads ` "arg" "arg" ...` from `at` up to the end of the line (newlines inside quotes belong to the argument). False,
// and `at` unchanged, when there is no such list.
bool read_quoted_list(std::string_view text, std::size_t& at, std::vector<std::string>& arguments) {
  std::size_t i = at;
  std::vector<std::string> found;
  while (i < text.size() && text[i] != '\n') {
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    std::string argument;
    if (text[i] == '"') {
      ++i;
      while (i < text.size() && text[i] != '"') {
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        argument.push_back(text[i++]);
      }
      if (i >= text.size()) return false;  // cut off
      ++i;
    } else {
      while (i < text.size() && text[i] != ' ' && text[i] != '\n') argument.push_back(text[i++]);
    }
    found.push_back(std::move(argument));
  }
  if (found.empty()) return false;
  arguments = std::move(found);
  at = i < text.size() ? i + 1 : i;
  return true;
}

std::string_view line_at(std::string_view text, std::size_t at) {
  return text.substr(at, std::min(text.find('\n', at), text.size()) - at);
}

}  // namespace

std::vector<LoggedJob> parse_driver_log(std::string_view log) {
  std::vector<LoggedJob> jobs;
  std::size_t at = 0;
  while (at < log.size()) {
    std::string_view line = line_at(log, at);
    if (line == heading) {
      at += std::min(line.size() + 1, log.size() - at);
      if (line_at(log, at) == " (in-process)") at = std::min(at + line_at(log, at).size() + 1, log.size());
      LoggedJob job;
      if (at < log.size() && log[at] == ' ' && read_quoted_list(log, at, job.argv)) jobs.push_back(std::move(job));
      continue;
    }
    if (!line.empty() && !jobs.empty()) jobs.back().headers.emplace_back(line);
    at += line.size() + 1;
  }
  return jobs;
}

std::vector<LoggedJob> parse_dry_run(std::string_view text, bool* failed) {
  std::vector<LoggedJob> jobs;
  if (failed != nullptr) *failed = false;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view line = line_at(text, at);
    LoggedJob job;
    if (line.starts_with(" \"") && read_quoted_list(text, at, job.argv)) {
      jobs.push_back(std::move(job));
      continue;
    }
    if (failed != nullptr && line.find("error:") != std::string_view::npos) *failed = true;
    at += line.size() + 1;
  }
  return jobs;
}

void remove_logging_options(std::vector<std::string>& argv, std::string_view log_path) {
  for (auto argument = argv.begin(); argument != argv.end(); ++argument) {
    if (*argument != "-header-include-file" || argument + 1 == argv.end() || argument[1] != log_path) continue;
    argument = argv.erase(argument, argument + 2);
    // The driver writes these directly after it (clang/lib/Driver/ToolChains/Clang.cpp, ConstructJob).
    while (argument != argv.end() &&
           (*argument == "-header-include-format=textual" || *argument == "-header-include-filtering=none" ||
            *argument == "-sys-header-deps")) {
      argument = argv.erase(argument);
    }
    return;
  }
}

}  // namespace kerncap::compdb
