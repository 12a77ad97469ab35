#include "core/compdb/log_files.h"

#include <algorithm>

#include "core/compdb/log_writer.h"

namespace kerncap::compdb {

namespace fs = std::filesystem;

std::vector<fs::path> log_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const char* part : {log_folder, fragment_folder}) {
    std::error_code error;
    for (fs::directory_iterator entry(folder / part, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().extension() == log_suffix) files.push_back(entry->path());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace kerncap::compdb
