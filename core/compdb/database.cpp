#include "core/compdb/database.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/compdb/file_system.h"
#include "core/compdb/folder.h"
#include "core/compdb/log_reader.h"
#include "core/compdb/log_writer.h"
#include "core/compdb/object_index.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/hash.h"

namespace kerncap::compdb {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;

std::string kernel_name(std::string_view symbol) {
  if (symbol.ends_with(".kd")) symbol.remove_suffix(3);
  return std::string(symbol);
}

}  // namespace

struct Database::State {
  fs::path folder;
  std::vector<Record> records;
  Statistics statistics;
  IndexReport index_report;
  std::vector<std::string> outputs;  // where each record's output is now; beside `records`
  std::vector<bool> stale;           // beside `records`
  struct Hit {
    std::size_t record;
    IndexedCodeObject code_object;
  };
  std::vector<Hit> code_objects;

  void read_logs();
  void locate_outputs();
  void index_code_objects();
  const std::vector<IndexedCodeObject>& contents_of(ObjectIndex& index, std::size_t record);
  void attribute_linked_code_objects(ObjectIndex& index, std::vector<std::size_t>& units);
  std::set<std::string> digests_of_link_inputs(ObjectIndex& index, std::size_t unit);
  Match match(std::size_t record) const {
    return {.record = records[record], .target = {}, .digest = {}, .stale = stale[record]};
  }
  Match match(const Hit& hit) const {
    return {.record = records[hit.record],
            .target = hit.code_object.target,
            .digest = hit.code_object.digest,
            .stale = stale[hit.record]};
  }
  template <typename Predicate>
  std::vector<Match> records_where(Predicate predicate) const {
    std::vector<Match> matches;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (predicate(records[i])) matches.push_back(match(i));
    }
    return matches;
  }
  template <typename Predicate>
  std::vector<Match> code_objects_where(Predicate predicate) const {
    std::vector<Match> matches;
    for (const Hit& hit : code_objects) {
      if (predicate(hit.code_object)) matches.push_back(match(hit));
    }
    // Units beat links: a link holds the same code object because a unit put it there.
    const bool any_unit =
        std::ranges::any_of(matches, [](const Match& m) { return m.record.kind == RecordKind::translation_unit; });
    if (any_unit) std::erase_if(matches, [](const Match& m) { return m.record.kind == RecordKind::link; });
    return matches;
  }
};

void Database::State::read_logs() { records = newest_records(read_all_records(folder, &statistics), &statistics); }

// A build tree may have moved since, the database inside it with it.
void Database::State::locate_outputs() {
  const std::string here = folder.string();
  for (const Record& record : records) {
    std::string output = record.output;
    if (!output.empty() && record.database != here && !identify(output).exists) {
      const std::string old_root = folder_of(record.database) + "/";
      if (output.starts_with(old_root)) {
        const std::string moved = folder_of(here) + "/" + output.substr(old_root.size());
        if (identify(moved).exists) output = moved;
      }
    }
    const FileIdentity now = identify(output);
    bool same = now.exists && now.size == record.output_size && now.mtime == record.output_mtime;
    std::string content;
    if (!same && now.exists && now.size == record.output_size && record.output_hash != 0 &&
        read_file(output, now.size, content)) {
      same = hash_bytes(content) == record.output_hash;  // touched, copied, or rewritten by a compiler cache
    }
    outputs.push_back(std::move(output));
    stale.push_back(!record.output.empty() && !same);
  }
}

void Database::State::index_code_objects() {
  ObjectIndex index(folder / "objects.index");
  std::map<std::pair<std::string, std::uint64_t>, std::vector<std::size_t>> linked_together;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (record.exit_status != 0 || record.output.empty()) continue;
    if (record.linked) {
      linked_together[{record.output, record.started}].push_back(i);
      continue;
    }
    for (const IndexedCodeObject& code_object : contents_of(index, i)) code_objects.push_back({i, code_object});
  }
  for (auto& [output, units] : linked_together) attribute_linked_code_objects(index, units);
  index_report = {.records = records.size(), .objects_read = index.objects_read(), .code_objects = code_objects.size()};
  index.save();
}

// What is in a stale output says nothing of its record, unless nobody looked while it was fresh.
const std::vector<IndexedCodeObject>& Database::State::contents_of(ObjectIndex& index, std::size_t record) {
  const std::vector<IndexedCodeObject>* then =
      index.at(outputs[record], records[record].output_size, records[record].output_mtime);
  return then != nullptr ? *then : index.current(outputs[record]);
}

// Units that one command compiled and linked: their objects are gone, and the linked file holds the code objects of
// all, in the order of the sources on the command line. Where the numbers don't agree each code object belongs to any
// of the units.
void Database::State::attribute_linked_code_objects(ObjectIndex& index, std::vector<std::size_t>& units) {
  const auto place = [&](std::size_t unit) {
    const std::vector<std::string>& argv = records[unit].expanded_argv;
    return std::ranges::find(argv, records[unit].source) - argv.begin();
  };
  std::ranges::stable_sort(units, {}, place);
  std::map<std::string, std::vector<const IndexedCodeObject*>> by_target;
  const std::vector<IndexedCodeObject> found = contents_of(index, units.front());
  const std::set<std::string> from_elsewhere = digests_of_link_inputs(index, units.front());
  for (const IndexedCodeObject& code_object : found) {
    if (!from_elsewhere.contains(code_object.digest)) by_target[code_object.target].push_back(&code_object);
  }
  for (const auto& [target, list] : by_target) {
    std::vector<std::size_t> candidates;
    for (std::size_t unit : units) {
      if (std::ranges::find(records[unit].device_targets, target) != records[unit].device_targets.end()) {
        candidates.push_back(unit);
      }
    }
    // A unit without kernels puts nothing into the file, so there may be fewer code objects than units; the order
    // holds.
    const bool ordered = list.size() <= candidates.size();
    const std::size_t without = ordered ? candidates.size() - list.size() : 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::size_t first = ordered ? i : 0, last = ordered ? i + without + 1 : candidates.size();
      for (std::size_t k = first; k < last; ++k) code_objects.push_back({candidates[k], *list[i]});
    }
  }
}

std::set<std::string> Database::State::digests_of_link_inputs(ObjectIndex& index, std::size_t unit) {
  std::set<std::string> digests;
  for (const Record& link : records) {
    if (link.kind != RecordKind::link || link.output != records[unit].output || link.started != records[unit].started)
      continue;
    for (const std::string& input : link.inputs) {
      for (const IndexedCodeObject& code_object : index.current(input)) digests.insert(code_object.digest);
    }
  }
  return digests;
}

Database::Database(fs::path folder) : state_(std::make_unique<State>()) {
  state_->folder = absolute_path(current_directory(), folder.string());
  std::error_code error;
  if (!fs::is_directory(state_->folder, error)) {
    fail(ExitCode::bad_input,
         "there is no compilation database in {}: build with 'kerncap build', or name one with --db",
         state_->folder.string());
  }
  const unsigned version = database_version(state_->folder.string());
  if (version == 0 || version > newest_database_version) {
    fail(ExitCode::bad_input, "the compilation database in {} has version {}, and this Kerncap reads versions up to {}",
         state_->folder.string(), version, newest_database_version);
  }
  state_->read_logs();
  state_->locate_outputs();
  state_->index_code_objects();
}

Database::~Database() = default;
Database::Database(Database&&) noexcept = default;

std::vector<Record> Database::records() const { return state_->records; }
IndexReport Database::index_report() const { return state_->index_report; }
Statistics Database::statistics() const { return state_->statistics; }

std::vector<Match> Database::find_code_object(std::string_view digest) const {
  return state_->code_objects_where([&](const IndexedCodeObject& entry) { return entry.digest == digest; });
}

std::vector<Match> Database::find_kernel(std::string_view symbol) const {
  const std::string name = kernel_name(symbol);
  return state_->code_objects_where(
      [&](const IndexedCodeObject& entry) { return std::ranges::find(entry.kernels, name) != entry.kernels.end(); });
}

std::vector<Match> Database::find_cuid(std::string_view hex) const {
  std::vector<Match> matches = state_->code_objects_where(
      [&](const IndexedCodeObject& entry) { return std::ranges::find(entry.cuids, hex) != entry.cuids.end(); });
  if (!matches.empty()) return matches;
  // With relocatable device code the unit's own object holds bitcode; its front-end jobs were told the number.
  const std::string option = "-cuid=" + std::string(hex);
  return state_->records_where([&](const Record& record) {
    return record.kind == RecordKind::translation_unit && std::ranges::any_of(record.jobs, [&](const Job& job) {
             return std::ranges::find(job.argv, option) != job.argv.end();
           });
  });
}

std::vector<Match> Database::find_output(const fs::path& object) const {
  const std::string path = absolute_path(current_directory(), object.string());
  const std::string resolved = resolved_path(path);
  std::vector<Match> matches;
  for (std::size_t i = 0; i < state_->records.size(); ++i) {
    const std::string& recorded = state_->records[i].output;
    const std::string& now = state_->outputs[i];
    if (recorded == path || recorded == resolved || now == path || now == resolved) matches.push_back(state_->match(i));
  }
  return matches;
}

std::vector<Match> Database::find_source(const fs::path& source) const {
  const std::string path = absolute_path(current_directory(), source.string());
  const std::string resolved = resolved_path(path);
  return state_->records_where([&](const Record& record) {
    if (record.kind != RecordKind::translation_unit) return false;
    const std::string recorded = absolute_path(record.directory, record.source);
    return recorded == path || recorded == resolved || (!record.files.empty() && record.files.front().path == resolved);
  });
}

std::vector<Match> Database::find_header(const fs::path& header) const {
  const std::string path = absolute_path(current_directory(), header.string());
  const std::string resolved = resolved_path(path);
  return state_->records_where([&](const Record& record) {
    return std::ranges::any_of(record.files, [&](const SourceFile& file) {
      return file.path == path || file.path == resolved || absolute_path(record.directory, file.spelling) == path;
    });
  });
}

std::string Database::blob(std::string_view digest) const {
  const bool plain = digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  const fs::path path = state_->folder / blob_folder / std::string(digest);
  std::error_code error;
  if (!plain || !fs::is_regular_file(path, error)) {
    fail(ExitCode::bad_input, "the compilation database {} holds no source {}", state_->folder.string(), digest);
  }
  std::string content = support::read_text_file(path);
  if (support::sha256_hex(support::bytes_of(content)) != digest) {
    fail(ExitCode::bad_input, "the archived source {} is damaged: its content has another digest", path.string());
  }
  return content;
}

fs::path find_database(const fs::path& start) { return find_database_folder(start.string()); }

}  // namespace kerncap::compdb
