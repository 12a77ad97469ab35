// The headers of each pass when the compile itself could not log them: the recorded front-end jobs, preprocessing only.
#pragma once

#include <string>
#include <vector>

#include "core/compdb/driver_log.h"

namespace kerncap::wrapper {

// Fills in the headers of the front-end jobs that have none. `log_path` is a file that may be overwritten.
void scan_headers(std::vector<compdb::LoggedJob>& jobs, const std::string& directory, const std::string& log_path);

}  // namespace kerncap::wrapper
