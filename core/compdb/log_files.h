// The files of a database folder that hold records.
#pragma once

#include <filesystem>
#include <vector>

namespace kerncap::compdb {

// Logs of all hosts, then fragments, in the order of their names. Empty when there are none yet.
std::vector<std::filesystem::path> log_files(const std::filesystem::path& folder);

}  // namespace kerncap::compdb
