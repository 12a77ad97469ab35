#include <algorithm>

#include "core/compdb/file_system.h"
#include "core/compdb/folder.h"
#include "core/compdb/log_reader.h"
#include "core/compdb/log_writer.h"
#include "core/compdb/operations.h"
#include "core/support/error.h"
#include "core/support/hash.h"

namespace kerncap::compdb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_remarks = 100;

void check_log(const fs::path& path, std::string_view log, VerifyReport& report) {
  std::uint64_t expected = 0;
  const auto check_gap = [&](std::uint64_t next) {
    if (next != expected) {
      report.damage.push_back(
          fmt::format("{}: {} bytes at offset {} are no record", path.string(), next - expected, expected));
    }
  };
  scan_frames(log, 0, [&](const Frame& frame) {
    check_gap(frame.offset);
    expected = frame.offset + frame.size;
    Record record;
    std::string error;
    if (read_record(frame, record, &error)) {
      ++report.records;
    } else {
      report.damage.push_back(fmt::format("{}: the record at offset {} {}", path.string(), frame.offset,
                                          error.empty() ? "is of an unknown type" : "is damaged: " + error));
    }
  });
  check_gap(log.size());
}

void check_blobs(const fs::path& folder, VerifyReport& report) {
  std::error_code error;
  for (fs::directory_iterator entry(folder / blob_folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.size() != 64) continue;  // one that is being written
    ++report.blobs;
    if (support::sha256_hex_of_file(entry->path()) != name) {
      report.damage.push_back(fmt::format("{}: the content has another digest than its name", entry->path().string()));
    }
  }
}

void check_files(const fs::path& folder, VerifyReport& report) {
  const auto remark = [&](std::string text) {
    if (report.remarks.size() < most_remarks) report.remarks.push_back(std::move(text));
  };
  const Database database(folder);
  database.visit([&](Record&& record) {
    if (record.exit_status != 0) return;
    for (const Match& match : database.find_output(record.output)) {
      if (match.stale && match.record.source == record.source) {
        remark(fmt::format("{} is not what was recorded: it was rebuilt or removed since", record.output));
      }
    }
    for (const SourceFile& file : record.files) {
      if (file.system) continue;
      const FileIdentity now = identify(file.path);
      if (!now.exists) remark(fmt::format("{}: the source {} is gone", record.output, file.path));
      std::string content;
      if (now.exists && (now.size != file.size || now.mtime != file.mtime) && file.hash != 0 &&
          (!read_file(file.path, now.size, content) || hash_bytes(content) != file.hash)) {
        remark(fmt::format("{}: the source {} has changed since", record.output, file.path));
      }
      if (!file.digest.empty() && !fs::exists(folder / blob_folder / file.digest)) {
        report.damage.push_back(
            fmt::format("{}: the archived source {} ({}) is missing", record.output, file.path, file.digest));
      }
    }
  });
  std::ranges::sort(report.remarks);
  report.remarks.erase(std::unique(report.remarks.begin(), report.remarks.end()), report.remarks.end());
}

}  // namespace

VerifyReport verify(const fs::path& folder) {
  VerifyReport report;
  for_each_log(
      folder, [&] { report = {}; }, [&](const fs::path& path, std::string_view log) { check_log(path, log, report); });
  check_blobs(folder, report);
  check_files(folder, report);
  return report;
}

}  // namespace kerncap::compdb
