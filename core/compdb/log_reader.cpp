#include "core/compdb/log_reader.h"

#include <algorithm>
#include <unordered_map>

#include "core/compdb/codec.h"
#include "core/compdb/file_system.h"
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

std::vector<Record> read_all_records(const fs::path& folder, Statistics* statistics) {
  std::vector<Record> all;
  Statistics counted;
  for_each_log(
      folder,
      [&] {
        all.clear();
        counted = {};
      },
      [&](const fs::path&, std::string_view log) {
        counted.bytes += log.size();
        const ScanResult scan = scan_frames(log, 0, [&](const Frame& frame) {
          Record record;
          if (!read_record(frame, record, nullptr)) {
            ++counted.torn;
            return;
          }
          ++counted.records;
          ++(record.kind == RecordKind::link ? counted.links : counted.translation_units);
          if (record.exit_status != 0) ++counted.failed;
          all.push_back(std::move(record));
        });
        counted.torn += scan.damaged_places;
      });
  if (statistics != nullptr) *statistics = counted;
  return all;
}

// What makes two records descriptions of the same thing, so that the later one replaces the earlier. Units that were
// compiled and linked by one command share their output; a unit without an output (-fsyntax-only) is known by its
// source.
std::string record_key(const Record& record) {
  std::string key(1, static_cast<char>(record.kind));
  key += record.output;
  if (record.linked || record.output.empty()) key += '\0' + absolute_path(record.directory, record.source);
  return key;
}

static std::uint64_t finished(const Record& record) { return record.started + record.wall; }

// The newest good record of each key; a failed compile replaces only failed ones. Where a compiler cache answered, what
// the driver did is taken from the record of the compile that filled it.
std::vector<Record> newest_records(std::vector<Record> all, Statistics* statistics) {
  std::ranges::stable_sort(all, {}, finished);
  std::unordered_map<std::string, std::size_t> by_key;
  std::vector<Record> kept;
  for (Record& record : all) {
    const auto [position, fresh] = by_key.try_emplace(record_key(record), kept.size());
    if (fresh) {
      kept.push_back(std::move(record));
      continue;
    }
    if (statistics != nullptr) ++statistics->superseded;
    Record& earlier = kept[position->second];
    if (record.exit_status != 0 && earlier.exit_status == 0) continue;
    if (record.origin != Origin::recorded && earlier.origin == Origin::recorded && earlier.exit_status == 0) continue;
    if (record.cached && !earlier.cached && earlier.exit_status == 0 && earlier.expanded_argv == record.expanded_argv) {
      record.jobs = std::move(earlier.jobs);
      record.files = std::move(earlier.files);
      record.passes = std::move(earlier.passes);
      record.device_targets = std::move(earlier.device_targets);
      record.language = earlier.language;
    }
    earlier = std::move(record);
  }
  return kept;
}

}  // namespace kerncap::compdb
