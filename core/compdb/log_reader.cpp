#include "core/compdb/log_reader.h"

#include <algorithm>

#include "core/compdb/codec.h"
#include "core/compdb/log_writer.h"
#include "core/support/error.h"
#include "core/support/file.h"

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

void for_each_log(const fs::path& folder, const std::function<void()>& restart,
                  const std::function<void(const fs::path&, std::string_view)>& each) {
  constexpr int attempts = 20;
  for (int attempt = 0;; ++attempt) {
    try {
      restart();
      for (const fs::path& path : log_files(folder)) {
        const support::MappedFile file(path);
        each(path, {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
      }
      return;
    } catch (const support::Error&) {
      if (attempt == attempts) throw;  // unreadable for another reason than a compaction
    }
  }
}

bool read_record(const Frame& frame, Record& record, std::string* error) {
  std::string payload;
  if (frame.type != static_cast<std::uint16_t>(FrameType::record)) return false;
  if (frame.version != frame_version) {
    if (error != nullptr) *error = "written by a newer Kerncap";
    return false;
  }
  if (!frame_payload(frame, payload)) {
    if (error != nullptr) *error = "cannot be decompressed";
    return false;
  }
  return decode_record(payload, record, error);
}

}  // namespace kerncap::compdb
