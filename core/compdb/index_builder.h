// Bringing the index up to date with the logs and with the outputs on disk.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/compdb/database_logs.h"
#include "core/compdb/file_system.h"
#include "core/compdb/index_file.h"

namespace kerncap::compdb {

// Is the index the one of exactly these logs?
bool is_current(const IndexFile& index, const DatabaseLogs& logs);

enum class Outputs {
  of_new_units,            // look into what is new
  that_were_not_recorded,  // and into what was not as recorded at the last look, which may have changed since
};

// `old` may be null; what it knows is taken over where it still holds, so that only new records and outputs are read.
IndexContent build_index(const std::filesystem::path& folder, const DatabaseLogs& logs, const IndexFile* old,
                         Outputs outputs, IndexReport& report);

// Where an output recorded in a tree that has moved since is now; `output` itself when it is where it was.
std::string relocated(const std::string& output, const std::string& recorded_database, const std::string& database);

// The target of the build system that an object's path tells: CMake's CMakeFiles/NAME.dir/, Meson's NAME.p/.
std::string_view build_target(std::string_view output);

struct RecordedOutput {
  std::uint64_t size = 0, mtime = 0, hash = 0;  // as in Record
};
inline RecordedOutput output_of(const Record& record) {
  return {record.output_size, record.output_mtime, record.output_hash};
}

// Is the file at `path`, which is `now`, what was recorded (by size and time, or by content)?
bool is_as_recorded(const RecordedOutput& recorded, const std::string& path, const FileIdentity& now);

}  // namespace kerncap::compdb
