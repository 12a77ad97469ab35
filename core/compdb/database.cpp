#include "core/compdb/database.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_map>

#include "core/codeobject/code_object.h"
#include "core/compdb/file_system.h"
#include "core/compdb/folder.h"
#include "core/compdb/index_builder.h"
#include "core/compdb/index_file.h"
#include "core/compdb/log_writer.h"
#include "core/compdb/object_contents.h"
#include "core/compdb/record_rank.h"
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
      report.records = index.live_units();
      report.code_objects = index.live_code_objects();
    } else {
      rebuild(found ? &*found : nullptr, Outputs::of_new_units);
    }
  }

  void rebuild(const IndexFile* old, Outputs outputs) {
    const fs::path path = fs::path(folder) / index_name;
    const IndexContent content = build_index(folder, logs, old, outputs, report);
    IndexFile::publish(path, content);
    std::optional<IndexFile> published = IndexFile::open(path);
    // A read-only folder, or another process that has published a later one.
    if (!published || !is_current(*published, logs)) published = IndexFile::from_bytes(IndexFile::serialise(content));
    if (!published) fail(ExitCode::bad_input, "the index of the compilation database {} cannot be built", folder);
    index = *published;
    looked_again = old == nullptr || outputs == Outputs::that_were_not_recorded;
  }

  // Outputs that weren't what had been recorded may have changed since; a question without an answer is the reason to
  // look. True when that was done now.
  bool look_again() {
    const std::scoped_lock lock(mutex);
    if (looked_again || index.pending() == 0) return false;
    const IndexFile old = index;
    rebuild(&old, Outputs::that_were_not_recorded);
    return true;
  }
  IndexFile current_index() const {
    const std::scoped_lock lock(mutex);
    return index;
  }

  bool read(const IndexedUnit& unit, Record& record) const {
    if (!logs.read(unit.record, record)) return false;
    Record driver;
    if (record.jobs.empty() && logs.read(unit.driver_record, driver)) take_jobs(record, std::move(driver));
    return true;
  }
  bool is_stale(const std::string& output, const std::string& database, const RecordedOutput& recorded) const {
    if (output.empty()) return false;
    const std::string now = relocated(output, database, folder);
    return !is_as_recorded(recorded, now, identify(now));
  }
  Match match(Record record) const {
    const bool stale = is_stale(record.output, record.database, output_of(record));
    return {.record = std::move(record), .target = {}, .digest = {}, .kernels = {}, .stale = stale};
  }

  static std::set<std::uint32_t> units_with(const IndexFile& now, const std::set<std::uint64_t>& hashes) {
    std::set<std::uint32_t> units;
    for (std::uint64_t hash : hashes) {
      for (const IndexedKey& key : now.find(hash)) {
        if (key.unit < now.units().size()) units.insert(key.unit);
      }
    }
    return units;
  }

  // Units with one of the keys whose record also passes the test.
  template <typename Predicate>
  std::vector<Match> matches_with(const std::set<std::uint64_t>& hashes, Predicate predicate) const {
    const IndexFile now = current_index();
    std::vector<Match> matches;
    for (std::uint32_t unit : units_with(now, hashes)) {
      Record record;
      if (read(now.units()[unit], record) && predicate(record)) matches.push_back(match(std::move(record)));
    }
    return matches;
  }

  // The same in short, for answers of any length.
  template <typename Predicate>
  std::vector<UnitSummary> summaries_of(const IndexFile& now, const std::set<std::uint32_t>& units,
                                        Predicate predicate) const {
    std::vector<UnitSummary> summaries;
    std::unordered_map<std::uint32_t, std::size_t> place;  // unit -> summary
    RecordSkimmer skimmer, driver;
    std::string bytes, driver_bytes;
    for (const std::uint32_t number : units) {
      const IndexedUnit& unit = now.units()[number];
      if (!logs.skim(unit.record, skimmer, bytes)) continue;
      const bool cached = logs.skim(unit.driver_record, driver, driver_bytes);
      const RecordSkimmer& told = cached ? driver : skimmer;  // whose jobs and files count, as in read()
      const RecordView& record = skimmer.record();
      if (record.kind != RecordKind::translation_unit || !predicate(told, skimmer)) continue;
      UnitSummary summary;
      summary.output = skimmer.text(record.output);
      summary.source = absolute_path(skimmer.text(record.directory), skimmer.text(record.source));
      summary.language = told.text(told.record().language);
      for (const Text target : told.record().device_targets) summary.device_targets.emplace_back(told.text(target));
      summary.origin = record.origin;
      summary.stale = is_stale(summary.output, std::string(skimmer.text(record.database)),
                               {record.output_size, record.output_mtime, record.output_hash});
      place[number] = summaries.size();
      summaries.push_back(std::move(summary));
    }
    add_code_objects(now, place, summaries);
    return summaries;
  }

  // From a unit to its code objects there is no short way in the index: one walk over the keys serves all units.
  static void add_code_objects(const IndexFile& now, const std::unordered_map<std::uint32_t, std::size_t>& place,
                               std::vector<UnitSummary>& summaries) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> done;
    for (const IndexedKey& key : now.keys()) {
      if (key.code_object >= now.code_objects().size()) continue;
      const auto found = place.find(key.unit);
      if (found == place.end() || !done.emplace(key.unit, key.code_object).second) continue;
      const IndexedDigest& entry = now.code_objects()[key.code_object];
      UnitSummary::CodeObject& code_object = summaries[found->second].code_objects.emplace_back();
      code_object.digest = hexadecimal(entry);
      code_object.target = now.text(entry.target);
      for (const std::string_view kernel : now.kernels_of(entry)) code_object.kernels.emplace_back(kernel);
    }
  }

  // `wanted` says of a kernel's mangled name whether it was asked for; without it, all of a code object's are told.
  using Wanted = std::function<bool(std::string_view)>;
  std::vector<Match> code_objects_with(std::uint64_t hash, std::string_view digest, const Wanted& wanted) {
    std::vector<Match> matches = code_objects_now(hash, digest, wanted);
    if (matches.empty() && look_again()) matches = code_objects_now(hash, digest, wanted);
    return matches;
  }
  std::vector<Match> code_objects_now(std::uint64_t hash, std::string_view digest, const Wanted& wanted) const {
    const IndexFile now = current_index();
    std::vector<Match> matches;
    for (const IndexedKey& key : now.find(hash)) add_match(now, key.unit, key.code_object, digest, wanted, matches);
    return without_links(std::move(matches));
  }
  void add_match(const IndexFile& now, std::uint32_t unit, std::uint32_t code_object, std::string_view digest,
                 const Wanted& wanted, std::vector<Match>& matches) const {
    Record record;
    if (code_object >= now.code_objects().size() || unit >= now.units().size()) return;
    const IndexedDigest& entry = now.code_objects()[code_object];
    if (!digest.empty() && hexadecimal(entry) != digest) return;
    std::vector<std::string> kernels;
    for (const std::string_view kernel : now.kernels_of(entry)) {
      if (!wanted || wanted(kernel)) kernels.emplace_back(kernel);
    }
    if (wanted && kernels.empty()) return;
    if (!read(now.units()[unit], record)) return;
    Match& found = matches.emplace_back(match(std::move(record)));
    found.target = now.text(entry.target);
    found.digest = hexadecimal(entry);
    found.kernels = std::move(kernels);
  }

  // Units beat links: a link holds the same code object because a unit put it there.
  static std::vector<Match> without_links(std::vector<Match> matches) {
    const bool any_unit =
        std::ranges::any_of(matches, [](const Match& m) { return m.record.kind == RecordKind::translation_unit; });
    if (any_unit) std::erase_if(matches, [](const Match& m) { return m.record.kind == RecordKind::link; });
    return matches;
  }

  std::vector<Match> kernels_matching(const codeobject::NamePattern& pattern) const {
    const IndexFile now = current_index();
    const Wanted wanted = [&](std::string_view symbol) {
      return pattern.matches(symbol, codeobject::demangle(symbol));
    };
    std::vector<char> known(now.code_objects().size(), 0);  // 1: has one; 2: has none
    std::set<std::pair<std::uint32_t, std::uint32_t>> found;
    for (const IndexedKey& key : now.keys()) {
      if (key.code_object >= known.size()) continue;
      char& answer = known[key.code_object];
      if (answer == 0) {
        answer = std::ranges::any_of(now.kernels_of(now.code_objects()[key.code_object]), wanted) ? 1 : 2;
      }
      if (answer == 1) found.emplace(key.unit, key.code_object);
    }
    std::vector<Match> matches;
    for (const auto& [unit, code_object] : found) add_match(now, unit, code_object, {}, wanted, matches);
    return without_links(std::move(matches));
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
  DatabaseLogs logs;
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

void Database::visit(const std::function<void(Record&&)>& each) const {
  const IndexFile now = state_->current_index();
  for (const IndexedUnit& unit : now.units()) {
    Record record;
    if (!unit.dead() && state_->read(unit, record)) each(std::move(record));
  }
}

std::vector<Record> Database::records() const {
  std::vector<Record> records;
  visit([&](Record&& record) { records.push_back(std::move(record)); });
  return records;
}

Statistics Database::statistics() const { return state_->current_index().statistics(); }
IndexReport Database::index_report() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->report;
}
void Database::look_again() { state_->look_again(); }

std::vector<Match> Database::find_code_object(std::string_view digest) const {
  return state_->code_objects_with(key_hash(KeyKind::digest, digest), digest, {});
}

std::vector<Match> Database::find_kernel(std::string_view symbol) const {
  const std::string name = kernel_name(symbol);
  return state_->code_objects_with(key_hash(KeyKind::kernel, name), {},
                                   [&](std::string_view kernel) { return kernel == name; });
}

std::vector<Match> Database::find_kernels_named(std::string_view pattern) const {
  const codeobject::NamePattern names(pattern);
  const bool plain = pattern.find_first_of("*?") == std::string_view::npos && !pattern.starts_with("re:") &&
                     !pattern.starts_with("sym:");
  if (pattern.starts_with("sym:")) return find_kernel(pattern.substr(4));
  if (!plain) {
    std::vector<Match> matches = state_->kernels_matching(names);
    if (matches.empty() && state_->look_again()) matches = state_->kernels_matching(names);
    return matches;
  }
  return state_->code_objects_with(key_hash(KeyKind::name, kernel_name(pattern)), {}, [&](std::string_view symbol) {
    return names.matches(symbol, codeobject::demangle(symbol));
  });
}

std::vector<Match> Database::find_cuid(std::string_view hex) const {
  std::vector<Match> matches = state_->code_objects_with(key_hash(KeyKind::cuid, hex), {}, {});
  if (!matches.empty()) return matches;
  // With relocatable device code the unit's own object holds bitcode; its front-end jobs were told the number.
  const std::string option = "-cuid=" + std::string(hex);
  return state_->matches_with({key_hash(KeyKind::cuid, hex)}, [&](const Record& record) {
    return std::ranges::any_of(record.jobs,
                               [&](const Job& job) { return std::ranges::find(job.argv, option) != job.argv.end(); });
  });
}

std::vector<Match> Database::find_output(const fs::path& object) const {
  const std::set<std::string> paths = state_->spellings(object);
  return state_->matches_with(hashes(KeyKind::output, paths),
                              [&](const Record& record) { return paths.contains(record.output); });
}

std::vector<Match> Database::find_source(const fs::path& source) const {
  const std::set<std::string> paths = state_->spellings(source);
  return state_->matches_with(hashes(KeyKind::source, paths), [&](const Record& record) {
    return record.kind == RecordKind::translation_unit &&
           (paths.contains(absolute_path(record.directory, record.source)) ||
            (!record.files.empty() && paths.contains(record.files.front().path)));
  });
}

std::vector<Match> Database::find_contents(const fs::path& file) const {
  std::vector<Match> matches;
  std::set<std::string> done;
  for (const IndexedCodeObject& code_object : code_objects_in(absolute_path(current_directory(), file.string()))) {
    if (!done.insert(code_object.digest).second) continue;
    for (Match& match : find_code_object(code_object.digest)) matches.push_back(std::move(match));
  }
  return matches;
}

std::vector<UnitSummary> Database::find_header(const fs::path& header) const {
  const std::set<std::string> paths = state_->spellings(header);
  const IndexFile now = state_->current_index();
  std::set<std::uint32_t> units;
  for (std::uint64_t hash : hashes(KeyKind::header, paths)) {
    for (std::uint32_t unit : now.units_of_header(hash)) units.insert(unit);
  }
  return state_->summaries_of(now, units, [&](const RecordSkimmer& told, const RecordSkimmer&) {
    const std::string_view directory = told.text(told.record().directory);
    return std::ranges::any_of(told.record().files, [&](const RecordView::File& file) {
      return paths.contains(std::string(told.text(file.path))) ||
             (file.spelling != file.path && paths.contains(absolute_path(directory, told.text(file.spelling))));
    });
  });
}

std::vector<UnitSummary> Database::find_target(std::string_view name) const {
  const IndexFile now = state_->current_index();
  return state_->summaries_of(
      now, State::units_with(now, {key_hash(KeyKind::target, name)}),
      [&](const RecordSkimmer& told, const RecordSkimmer& unit) {
        return build_target(unit.text(unit.record().output)) == name ||
               std::ranges::any_of(told.record().device_targets, [&](Text text) {
                 const std::string_view target = told.text(text);
                 return target == name || (target.starts_with(name) && target.substr(name.size()).starts_with(':'));
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
