// Writing side of the log: what the wrapper calls at the end of a compile. No exceptions, no locks that wait, no fsync.
#pragma once

#include <string>

#include "core/compdb/record.h"

namespace kerncap::compdb {

// This machine's name as it appears in file names (letters, digits, '.', '-', '_' only).
std::string log_host_name();

// Appends the record to the log of this host in the database folder (which must exist). One write() on O_APPEND; on
// network file systems, where that isn't atomic, a file of its own under fragments/ instead. Returns 0 or an errno.
int append_record(const std::string& folder, const Record& record);

// Layout of the folder.
inline constexpr const char* log_folder = "logs";
inline constexpr const char* log_suffix = ".kclog";
inline constexpr const char* fragment_folder = "fragments";
inline constexpr const char* blob_folder = "blobs";

}  // namespace kerncap::compdb
