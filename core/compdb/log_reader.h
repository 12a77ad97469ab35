// Finding and reading the logs of a database.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "core/compdb/database.h"
#include "core/compdb/frame.h"

namespace kerncap::compdb {

// Logs of all hosts, then fragments, in the order of their names. Empty when there are none yet.
std::vector<std::filesystem::path> log_files(const std::filesystem::path& folder);

// Calls `each` with every log and its content. A compaction may replace files meanwhile: then it starts over, after
// calling `restart`, so that nothing is missed.
void for_each_log(const std::filesystem::path& folder, const std::function<void()>& restart,
                  const std::function<void(const std::filesystem::path&, std::string_view)>& each);

// The record in a frame; false for frames of other types and for damage.
bool read_record(const Frame& frame, Record& record, std::string* error);

}  // namespace kerncap::compdb
