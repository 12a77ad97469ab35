#include "core/compdb/database.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "core/compdb/file_system.h"
#include "core/compdb/folder.h"
#include "core/compdb/index_builder.h"
#include "core/compdb/index_file.h"
#include "core/compdb/log_writer.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"

namespace kerncap::compdb {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;

constexpr const char* index_name = "index";

std::string kernel_name(std::string_view symbol) {
  if (symbol.ends_with(".kd")) symbol.remove_suffix(3);
  return std::string(symbol);
}

std::string hexadecimal(const IndexedDigest& entry) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::uint8_t byte : entry.digest) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

}  // namespace

struct Database::State {
  explicit State(std::string database_folder) : folder(std::move(database_folder)), logs(folder) {
    const std::optional<IndexFile> found = IndexFile::open(fs::path(folder) / index_name);
    if (found && is_current(*found, logs)) {
      index = *found;
      report.records = index.units().size();
      report.code_objects = index.code_objects().size();
    } else {
      rebuild(found ? &*found : nullptr);
    }
  }

  void rebuild(const IndexFile* old) {
    const fs::path path = fs::path(folder) / index_name;
    const IndexContent content = build_index(folder, logs, old, report);
    IndexFile::publish(path, content);
    std::optional<IndexFile> published = IndexFile::open(path);
    // A read-only folder, or another process that has published a later one.
    if (!published || !is_current(*published, logs)) published = IndexFile::from_bytes(IndexFile::serialise(content));
    if (!published) fail(ExitCode::bad_input, "the index of the compilation database {} cannot be built", folder);
    index = *published;
    looked_again = true;
  }

  // Outputs that weren't what had been recorded may have changed since; a question without an answer is the reason to
  // look. True when that was done now.
  bool look_again() {
    const std::scoped_lock lock(mutex);
    if (looked_again || index.pending() == 0) return false;
    const IndexFile old = index;
    rebuild(&old);
    return true;
  }
  IndexFile current_index() const {
    const std::scoped_lock lock(mutex);
    return index;
  }

  bool read(const IndexedUnit& unit, Record& record) const {
    if (!logs.read(unit.record, record)) return false;
    Record driver;
    if (record.jobs.empty() && logs.read(unit.driver_record, driver)) {
      record.jobs = std::move(driver.jobs);
      record.files = std::move(driver.files);
      record.passes = std::move(driver.passes);
      record.device_targets = std::move(driver.device_targets);
      record.language = driver.language;
    }
    return true;
  }
  Match match(Record record) const {
    const std::string output = relocated(record.output, record.database, folder);
    const bool stale = !record.output.empty() && !is_as_recorded(record, output);
    return {.record = std::move(record), .target = {}, .digest = {}, .stale = stale};
  }

  // Units with one of the keys whose record also passes the test.
  template <typename Predicate>
  std::vector<Match> units_with(const std::set<std::uint64_t>& hashes, Predicate predicate) const {
    const IndexFile now = current_index();
    std::set<std::uint32_t> units;
    for (std::uint64_t hash : hashes) {
      for (const IndexedKey& key : now.find(hash)) units.insert(key.unit);
    }
    return matches_of(now, units, predicate);
  }
  template <typename Predicate>
  std::vector<Match> matches_of(const IndexFile& now, const std::set<std::uint32_t>& units, Predicate predicate) const {
    std::vector<Match> matches;
    for (std::uint32_t unit : units) {
      Record record;
      if (unit < now.units().size() && read(now.units()[unit], record) && predicate(record)) {
        matches.push_back(match(std::move(record)));
      }
    }
    return matches;
  }

  std::vector<Match> code_objects_with(std::uint64_t hash, std::string_view digest) {
    std::vector<Match> matches = code_objects_now(hash, digest);
    if (matches.empty() && look_again()) matches = code_objects_now(hash, digest);
    return matches;
  }
  std::vector<Match> code_objects_now(std::uint64_t hash, std::string_view digest) const {
    const IndexFile now = current_index();
    std::vector<Match> matches;
    for (const IndexedKey& key : now.find(hash)) {
      Record record;
      if (key.code_object >= now.code_objects().size() || key.unit >= now.units().size()) continue;
      const IndexedDigest& entry = now.code_objects()[key.code_object];
      if (!digest.empty() && hexadecimal(entry) != digest) continue;
      if (!read(now.units()[key.unit], record)) continue;
      Match& found = matches.emplace_back(match(std::move(record)));
      found.target = now.text(entry.target);
      found.digest = hexadecimal(entry);
    }
    // Units beat links: a link holds the same code object because a unit put it there.
    const bool any_unit =
        std::ranges::any_of(matches, [](const Match& m) { return m.record.kind == RecordKind::translation_unit; });
    if (any_unit) std::erase_if(matches, [](const Match& m) { return m.record.kind == RecordKind::link; });
    return matches;
  }

  // The same file as it was spelled, as it resolves, and where it was before the tree moved.
  std::set<std::string> spellings(const fs::path& file) const {
    const std::string path = absolute_path(current_directory(), file.string());
    std::set<std::string> all = {path, resolved_path(path)};
    const IndexFile now = current_index();
    const std::string new_root = folder_of(folder) + "/";
    for (const TextReference& root : now.roots()) {
      const std::string recorded(now.text(root));
      if (recorded == folder || recorded.empty()) continue;
      for (const std::string& here : std::set<std::string>(all)) {
        if (here.starts_with(new_root)) all.insert(folder_of(recorded) + "/" + here.substr(new_root.size()));
      }
    }
    return all;
  }

  std::string folder;
  MappedLogs logs;
  IndexReport report;
  mutable std::mutex mutex;
  IndexFile index;
  bool looked_again = false;
};

namespace {

std::set<std::uint64_t> hashes(KeyKind kind, const std::set<std::string>& texts) {
  std::set<std::uint64_t> result;
  for (const std::string& text : texts) result.insert(key_hash(kind, text));
  return result;
}

}  // namespace

Database::Database(fs::path folder) {
  const std::string path = absolute_path(current_directory(), folder.string());
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    fail(ExitCode::bad_input,
         "there is no compilation database in {}: build with 'kerncap build', or name one with --db", path);
  }
  const unsigned version = database_version(path);
  if (version == 0 || version > newest_database_version) {
    fail(ExitCode::bad_input, "the compilation database in {} has version {}, and this Kerncap reads versions up to {}",
         path, version, newest_database_version);
  }
  state_ = std::make_unique<State>(path);
}

Database::~Database() = default;
Database::Database(Database&&) noexcept = default;

std::vector<Record> Database::records() const {
  const IndexFile now = state_->current_index();
  std::vector<Record> records;
  records.reserve(now.units().size());
  for (const IndexedUnit& unit : now.units()) {
    Record record;
    if (state_->read(unit, record)) records.push_back(std::move(record));
  }
  return records;
}

Statistics Database::statistics() const { return state_->current_index().statistics(); }
IndexReport Database::index_report() const { return state_->report; }
void Database::look_again() { state_->look_again(); }

std::vector<Match> Database::find_code_object(std::string_view digest) const {
  return state_->code_objects_with(key_hash(KeyKind::digest, digest), digest);
}

std::vector<Match> Database::find_kernel(std::string_view symbol) const {
  return state_->code_objects_with(key_hash(KeyKind::kernel, kernel_name(symbol)), {});
}

std::vector<Match> Database::find_cuid(std::string_view hex) const {
  std::vector<Match> matches = state_->code_objects_with(key_hash(KeyKind::cuid, hex), {});
  if (!matches.empty()) return matches;
  // With relocatable device code the unit's own object holds bitcode; its front-end jobs were told the number.
  const std::string option = "-cuid=" + std::string(hex);
  return state_->units_with({key_hash(KeyKind::cuid, hex)}, [&](const Record& record) {
    return std::ranges::any_of(record.jobs,
                               [&](const Job& job) { return std::ranges::find(job.argv, option) != job.argv.end(); });
  });
}

std::vector<Match> Database::find_output(const fs::path& object) const {
  const std::set<std::string> paths = state_->spellings(object);
  return state_->units_with(hashes(KeyKind::output, paths),
                            [&](const Record& record) { return paths.contains(record.output); });
}

std::vector<Match> Database::find_source(const fs::path& source) const {
  const std::set<std::string> paths = state_->spellings(source);
  return state_->units_with(hashes(KeyKind::source, paths), [&](const Record& record) {
    return record.kind == RecordKind::translation_unit &&
           (paths.contains(absolute_path(record.directory, record.source)) ||
            (!record.files.empty() && paths.contains(record.files.front().path)));
  });
}

std::vector<Match> Database::find_header(const fs::path& header) const {
  const std::set<std::string> paths = state_->spellings(header);
  const IndexFile now = state_->current_index();
  std::set<std::uint32_t> units;
  for (std::uint64_t hash : hashes(KeyKind::header, paths)) {
    for (std::uint32_t unit : now.units_of_header(hash)) units.insert(unit);
  }
  return state_->matches_of(now, units, [&](const Record& record) {
    return std::ranges::any_of(record.files, [&](const SourceFile& file) {
      return paths.contains(file.path) || paths.contains(absolute_path(record.directory, file.spelling));
    });
  });
}

std::string Database::blob(std::string_view digest) const {
  const bool plain = digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  const fs::path path = fs::path(state_->folder) / blob_folder / std::string(digest);
  std::error_code error;
  if (!plain || !fs::is_regular_file(path, error)) {
    fail(ExitCode::bad_input, "the compilation database {} holds no source {}", state_->folder, digest);
  }
  std::string content = support::read_text_file(path);
  if (support::sha256_hex(support::bytes_of(content)) != digest) {
    fail(ExitCode::bad_input, "the archived source {} is damaged: its content has another digest", path.string());
  }
  return content;
}

fs::path find_database(const fs::path& start) { return find_database_folder(start.string()); }

}  // namespace kerncap::compdb
