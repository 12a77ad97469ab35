// The headers of a front-end pass when the compile itself did not log them: the recorded job once more, preprocessing
// only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kerncap::compdb {

bool is_front_end_job(const std::vector<std::string>& argv);

// The job without its outputs, logging every header it opens to `log_path`, which must not hold anything yet.
std::vector<std::string> header_scan_command(const std::vector<std::string>& job, const std::string& log_path);

std::vector<std::string> header_lines(std::string_view log);

}  // namespace kerncap::compdb
