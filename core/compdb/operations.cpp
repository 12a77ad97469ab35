#include "core/compdb/operations.h"

#include <cstring>

#include "core/compdb/folder.h"
#include "core/compdb/log_reader.h"
#include "core/support/error.h"

namespace kerncap::compdb {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;

void create_database(const fs::path& folder) {
  if (const int error = create_database_folder(folder.string()); error != 0) {
    fail(ExitCode::environment, "cannot make the compilation database {}: {}", folder.string(), std::strerror(error));
  }
}

std::uint64_t log_size(const fs::path& folder) {
  std::uint64_t total = 0;
  for (const fs::path& file : log_files(folder)) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    if (!error) total += size;
  }
  return total;
}

IndexReport refresh_index(const fs::path& folder) {
  Database database(folder);
  database.look_again();
  return database.index_report();
}

}  // namespace kerncap::compdb
