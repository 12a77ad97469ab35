#include "core/compdb/index_builder.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>

#include "core/compdb/file_system.h"
#include "core/compdb/frame.h"
#include "core/compdb/log_reader.h"
#include "core/compdb/object_contents.h"
#include "core/support/error.h"

namespace kerncap::compdb {
namespace {

namespace fs = std::filesystem;

// Everything the index keeps of one record, and a few strings that are needed while it is built.
struct Unit {
  IndexedUnit entry;
  std::vector<std::uint64_t> keys;  // outputs, sources, numbers of units
  std::vector<std::uint64_t> headers;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> contents;  // key, code object
  std::string root;
  bool wants_look = false;
  std::unique_ptr<Record> brief;  // output and its identity only; null for units of the old index
};

std::uint64_t fingerprint(std::string_view log, std::uint64_t consumed) {
  constexpr std::size_t edge = 64;
  const std::string_view part = log.substr(0, consumed);
  return hash_bytes(part.substr(0, edge)) * 31 + hash_bytes(part.substr(part.size() - std::min(edge, part.size())));
}

Unit summarise(const Record& record, RecordLocation location) {
  Unit unit;
  IndexedUnit& entry = unit.entry;
  entry.record = location;
  entry.key = hash_bytes(record_key(record));
  entry.finished = record.started + record.wall;
  entry.kind = static_cast<std::uint32_t>(record.kind);
  entry.exit_status = static_cast<std::uint32_t>(record.exit_status);
  entry.imported = record.origin == Origin::recorded ? 0 : 1;
  entry.cached = record.cached ? 1 : 0;
  entry.linked = record.linked ? 1 : 0;
  std::string argv;
  for (const std::string& argument : record.expanded_argv) argv += argument + '\0';
  entry.argv_hash = hash_bytes(argv);
  unit.root = record.database;
  unit.wants_look = record.exit_status == 0 && !record.output.empty() && !record.configure_check;

  if (unit.wants_look && !record.linked) {
    unit.brief = std::make_unique<Record>();
    unit.brief->output = record.output;
    unit.brief->database = record.database;
    unit.brief->output_size = record.output_size;
    unit.brief->output_mtime = record.output_mtime;
    unit.brief->output_hash = record.output_hash;
  }

  std::set<std::uint64_t> keys;
  if (!record.output.empty()) keys.insert(key_hash(KeyKind::output, record.output));
  if (record.kind == RecordKind::translation_unit) {
    keys.insert(key_hash(KeyKind::source, absolute_path(record.directory, record.source)));
    if (!record.files.empty()) keys.insert(key_hash(KeyKind::source, record.files.front().path));
  }
  for (const Job& job : record.jobs) {
    for (const std::string& argument : job.argv) {
      if (argument.starts_with("-cuid=")) keys.insert(key_hash(KeyKind::cuid, argument.substr(6)));
    }
  }
  for (const SourceFile& file : record.files) {
    unit.headers.push_back(key_hash(KeyKind::header, file.path));
    if (file.spelling != file.path)
      unit.headers.push_back(key_hash(KeyKind::header, absolute_path(record.directory, file.spelling)));
  }
  unit.keys.assign(keys.begin(), keys.end());
  std::ranges::sort(unit.headers);
  unit.headers.erase(std::unique(unit.headers.begin(), unit.headers.end()), unit.headers.end());
  return unit;
}

// The same rules as newest_records(), on summaries.
bool replaces(const Unit& later, const Unit& earlier) {
  if (earlier.entry.exit_status != 0) return true;
  if (later.entry.exit_status != 0) return false;
  return later.entry.imported == 0 || earlier.entry.imported != 0;
}

void take_over_driver(Unit& later, Unit& earlier) {
  if (later.entry.cached == 0 || later.entry.exit_status != 0 || earlier.entry.exit_status != 0 ||
      later.entry.argv_hash != earlier.entry.argv_hash) {
    return;
  }
  if (earlier.entry.cached != 0 && earlier.entry.driver_record.size == 0) return;
  later.entry.driver_record = earlier.entry.cached != 0 ? earlier.entry.driver_record : earlier.entry.record;
  std::set<std::uint64_t> keys(later.keys.begin(), later.keys.end());
  keys.insert(earlier.keys.begin(), earlier.keys.end());
  later.keys.assign(keys.begin(), keys.end());
  if (later.headers.size() < earlier.headers.size()) later.headers = std::move(earlier.headers);
}

template <typename Work>
void in_parallel(std::size_t count, Work work) {
  const std::size_t threads =
      std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), (count + 15) / 16);
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < count;) work(i);
  };
  std::vector<std::jthread> pool;
  for (std::size_t i = 1; i < threads; ++i) pool.emplace_back(loop);
  loop();
}

class Builder {
 public:
  Builder(std::string folder, const MappedLogs& logs, const IndexFile* old, IndexReport& report)
      : folder_(std::move(folder)), logs_(logs), old_(old), report_(report) {}

  IndexContent build() {
    const bool incremental = old_ != nullptr && continues_old();
    if (incremental) {
      content_.statistics = old_->statistics();
      for (const IndexedLog& log : old_->logs()) content_.statistics.torn -= log.torn_tail;
      load_old();
    }
    if (old_ != nullptr) remember_contents();
    read_new(incremental);
    keep_newest();
    look_into_outputs();
    write();
    return std::move(content_);
  }

 private:
  // Do the logs only add to what the old index has seen?
  bool continues_old() {
    if (old_->logs().size() > logs_.size()) return false;
    for (const IndexedLog& log : old_->logs()) {
      const std::size_t now = find_log(old_->text(log.name));
      if (now == logs_.size() || logs_.bytes(now).size() < log.consumed ||
          fingerprint(logs_.bytes(now), log.consumed) != log.fingerprint || logs_.inode(now) != log.inode) {
        return false;
      }
      renumbered_.push_back(static_cast<std::uint32_t>(now));
    }
    return true;
  }
  std::size_t find_log(std::string_view name) const {
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      if (logs_.name(i) == name) return i;
    }
    return logs_.size();
  }

  void load_old() {
    for (const IndexedUnit& entry : old_->units()) {
      Unit& unit = units_.emplace_back();
      unit.entry = entry;
      for (RecordLocation* location : {&unit.entry.record, &unit.entry.driver_record}) {
        if (location->size != 0) location->log = location->log < renumbered_.size() ? renumbered_[location->log] : 0;
      }
      unit.wants_look = entry.contents_pending != 0;
    }
    for (const IndexedKey& key : old_->keys()) {
      if (key.unit >= units_.size()) continue;
      if (key.code_object == no_code_object) {
        units_[key.unit].keys.push_back(key.hash);
      } else if (key.code_object < old_->code_objects().size()) {
        units_[key.unit].contents.emplace_back(key.hash, key.code_object);
      }
    }
    for (const IndexedHeader& header : old_->headers()) {
      for (std::uint32_t unit : old_->units_of(header)) units_[unit].headers.push_back(header.hash);
    }
    for (const TextReference& root : old_->roots()) roots_.insert(std::string(old_->text(root)));
  }

  // Code objects that were seen once must not be forgotten because the logs were compacted: the output may be gone.
  void remember_contents() {
    for (const IndexedDigest& code_object : old_->code_objects()) {
      IndexedDigest& copy = content_.code_objects.emplace_back(code_object);
      copy.target = content_.add_text(old_->text(code_object.target));
    }
    if (!renumbered_.empty() || old_->units().empty()) return;  // the units themselves have been taken over
    for (std::uint32_t i = 0; i < old_->units().size(); ++i) {
      const IndexedUnit& unit = old_->units()[i];
      if (unit.contents_final != 0) remembered_[{unit.key, unit.finished}].entry = unit;
    }
    for (const IndexedKey& key : old_->keys()) {
      if (key.code_object >= old_->code_objects().size() || key.unit >= old_->units().size()) continue;
      const IndexedUnit& unit = old_->units()[key.unit];
      const auto known = remembered_.find({unit.key, unit.finished});
      if (known != remembered_.end()) known->second.contents.emplace_back(key.hash, key.code_object);
    }
  }

  void read_new(bool incremental) {
    std::vector<RecordLocation> fresh;
    for (std::size_t log = 0; log < logs_.size(); ++log) {
      std::uint64_t start = 0;
      if (incremental) {
        for (std::size_t i = 0; i < renumbered_.size(); ++i) {
          if (renumbered_[i] == log) start = old_->logs()[i].consumed;
        }
      }
      const ScanResult scan = scan_frames(logs_.bytes(log), start, [&](const Frame& frame) {
        fresh.push_back({frame.offset, static_cast<std::uint32_t>(log), static_cast<std::uint32_t>(frame.size)});
      });
      // The last damaged place counts as the tail when nothing whole follows it: it is looked at again next time.
      const std::uint64_t tail = scan.end < logs_.bytes(log).size() ? 1 : 0;
      content_.statistics.torn += scan.damaged_places;
      content_.logs.push_back({.name = content_.add_text(logs_.name(log)),
                               .seen = logs_.bytes(log).size(),
                               .consumed = scan.end,
                               .torn_tail = tail,
                               .inode = logs_.inode(log),
                               .fingerprint = fingerprint(logs_.bytes(log), scan.end)});
    }
    std::vector<Unit> read(fresh.size());
    std::vector<char> good(fresh.size(), 0);
    in_parallel(fresh.size(), [&](std::size_t i) {
      Record record;
      if (!logs_.read(fresh[i], record)) return;
      read[i] = summarise(record, fresh[i]);
      good[i] = 1;
    });
    Statistics& statistics = content_.statistics;
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (good[i] == 0) {
        ++statistics.torn;
        continue;
      }
      ++statistics.records;
      ++(read[i].entry.kind == static_cast<std::uint32_t>(RecordKind::link) ? statistics.links
                                                                            : statistics.translation_units);
      if (read[i].entry.exit_status != 0) ++statistics.failed;
      roots_.insert(read[i].root);
      units_.push_back(std::move(read[i]));
    }
    statistics.bytes = 0;
    for (std::size_t log = 0; log < logs_.size(); ++log) statistics.bytes += logs_.bytes(log).size();
  }

  void keep_newest() {
    std::ranges::stable_sort(units_, {}, [](const Unit& unit) { return unit.entry.finished; });
    std::unordered_map<std::uint64_t, std::size_t> by_key;
    std::vector<Unit> kept;
    for (Unit& unit : units_) {
      const auto [position, fresh] = by_key.try_emplace(unit.entry.key, kept.size());
      if (fresh) {
        kept.push_back(std::move(unit));
        continue;
      }
      ++content_.statistics.superseded;
      Unit& earlier = kept[position->second];
      if (!replaces(unit, earlier)) continue;
      take_over_driver(unit, earlier);
      earlier = std::move(unit);
    }
    units_ = std::move(kept);
  }

  void add_contents(Unit& unit, const IndexedCodeObject& found) {
    const auto number = static_cast<std::uint32_t>(content_.code_objects.size());
    IndexedDigest entry;
    for (std::size_t i = 0; i < sizeof entry.digest && 2 * i + 1 < found.digest.size(); ++i) {
      entry.digest[i] = static_cast<std::uint8_t>(std::stoi(found.digest.substr(2 * i, 2), nullptr, 16));
    }
    entry.target = content_.add_text(found.target);
    content_.code_objects.push_back(entry);
    unit.contents.emplace_back(key_hash(KeyKind::digest, found.digest), number);
    for (const std::string& kernel : found.kernels)
      unit.contents.emplace_back(key_hash(KeyKind::kernel, kernel), number);
    for (const std::string& cuid : found.cuids) unit.contents.emplace_back(key_hash(KeyKind::cuid, cuid), number);
  }

  struct Look {
    std::size_t unit = 0;
    Record record;
    std::string output;
    FileIdentity identity;
    bool as_recorded = false;
    std::vector<IndexedCodeObject> found;
  };

  void look_into_outputs() {
    std::vector<Look> looks;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      Unit& unit = units_[i];
      const auto known = remembered_.find({unit.entry.key, unit.entry.finished});
      if (unit.wants_look && known != remembered_.end()) {
        unit.contents = known->second.contents;
        unit.entry.looked_size = known->second.entry.looked_size;
        unit.entry.looked_mtime = known->second.entry.looked_mtime;
        unit.entry.contents_final = 1;
        unit.wants_look = false;
      }
      if (unit.wants_look) looks.emplace_back().unit = i;
    }
    std::map<std::pair<std::string, std::uint64_t>, std::vector<Look*>> linked_together;
    std::atomic<std::uint64_t> read{0};
    in_parallel(looks.size(), [&](std::size_t i) {
      Look& look = looks[i];
      const IndexedUnit& entry = units_[look.unit].entry;
      if (units_[look.unit].brief != nullptr) {
        look.record = std::move(*units_[look.unit].brief);
      } else if (!logs_.read(entry.record, look.record)) {
        return;
      }
      look.output = relocated(look.record.output, look.record.database, folder_);
      look.identity = identify(look.output);
      look.as_recorded = look.identity.regular && is_as_recorded(look.record, look.output);
      const bool seen = entry.looked_mtime == look.identity.mtime && entry.looked_size == look.identity.size;
      if (!look.identity.regular || seen) return;
      look.found = code_objects_in(look.output);
      ++read;
    });
    for (Look& look : looks) units_[look.unit].brief.reset();
    report_.objects_read += read;
    for (Look& look : looks) {
      Unit& unit = units_[look.unit];
      unit.entry.contents_pending = look.as_recorded ? 0 : 1;
      unit.entry.contents_final = look.as_recorded ? 1 : 0;
      if (!look.identity.regular) continue;
      if (look.record.linked) {
        linked_together[{look.record.output, look.record.started}].push_back(&look);
        continue;
      }
      const bool seen = unit.entry.looked_mtime == look.identity.mtime && unit.entry.looked_size == look.identity.size;
      if (seen) continue;
      unit.contents.clear();
      for (const IndexedCodeObject& found : look.found) add_contents(unit, found);
      note_look(unit, look);
    }
    for (auto& [output, units] : linked_together) attribute(units);
  }

  static void note_look(Unit& unit, const Look& look) {
    unit.entry.looked_size = look.identity.size;
    unit.entry.looked_mtime = look.identity.mtime;
  }

  // Units that one command compiled and linked: their objects are gone, and the linked file holds the code objects of
  // all, in the order of the sources on the command line. What remains open is answered with all candidates.
  void attribute(std::vector<Look*>& units) {
    const auto place = [](const Look* look) {
      const std::vector<std::string>& argv = look->record.expanded_argv;
      return std::ranges::find(argv, look->record.source) - argv.begin();
    };
    std::ranges::stable_sort(units, {}, place);
    if (std::ranges::all_of(units, [&](const Look* look) { return look->found.empty(); })) {
      for (Look* look : units) note_look(units_[look->unit], *look);
      return;
    }
    std::vector<IndexedCodeObject> found = units.front()->found;
    if (found.empty()) found = code_objects_in(units.front()->output);
    const std::set<std::string> from_elsewhere = digests_of_link_inputs(units.front()->record);
    std::map<std::string, std::vector<const IndexedCodeObject*>> by_target;
    for (const IndexedCodeObject& code_object : found) {
      if (!from_elsewhere.contains(code_object.digest)) by_target[code_object.target].push_back(&code_object);
    }
    for (Look* look : units) {
      units_[look->unit].contents.clear();
      note_look(units_[look->unit], *look);
    }
    for (const auto& [target, list] : by_target) {
      std::vector<Look*> candidates;
      for (Look* look : units) {
        Record with_driver = look->record;
        if (std::ranges::find(with_driver.device_targets, target) != with_driver.device_targets.end())
          candidates.push_back(look);
      }
      // A unit without kernels puts nothing into the file, so there may be fewer code objects than units; the order
      // holds.
      const bool ordered = list.size() <= candidates.size();
      const std::size_t without = ordered ? candidates.size() - list.size() : 0;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::size_t first = ordered ? i : 0, last = ordered ? i + without + 1 : candidates.size();
        for (std::size_t k = first; k < last; ++k) add_contents(units_[candidates[k]->unit], *list[i]);
      }
    }
  }

  std::set<std::string> digests_of_link_inputs(const Record& unit) const {
    std::set<std::string> digests;
    const std::uint64_t wanted = key_hash(KeyKind::output, unit.output);
    for (const Unit& candidate : units_) {
      if (candidate.entry.kind != static_cast<std::uint32_t>(RecordKind::link)) continue;
      Record link;
      if (std::ranges::find(candidate.keys, wanted) == candidate.keys.end() ||
          !logs_.read(candidate.entry.record, link) || link.started != unit.started) {
        continue;
      }
      for (const std::string& input : link.inputs) {
        for (const IndexedCodeObject& code_object : code_objects_in(input)) digests.insert(code_object.digest);
      }
    }
    return digests;
  }

  void write() {
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> headers;
    std::vector<IndexedDigest> used;
    std::unordered_map<std::uint32_t, std::uint32_t> renumbered;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const auto number = static_cast<std::uint32_t>(i);
      const Unit& unit = units_[i];
      content_.units.push_back(unit.entry);
      content_.pending += unit.entry.contents_pending;
      for (std::uint64_t key : unit.keys) content_.keys.push_back({key, number, no_code_object});
      for (const auto& [key, code_object] : unit.contents) {
        const auto [position, fresh] = renumbered.try_emplace(code_object, static_cast<std::uint32_t>(used.size()));
        if (fresh) used.push_back(content_.code_objects[code_object]);
        content_.keys.push_back({key, number, position->second});
      }
      for (std::uint64_t header : unit.headers) headers[header].push_back(number);
    }
    content_.code_objects = std::move(used);
    report_.records = content_.units.size();
    report_.code_objects = content_.code_objects.size();
    std::ranges::sort(content_.keys);
    for (auto& [hash, list] : headers) {
      std::ranges::sort(list);
      content_.headers.push_back({.hash = hash, .first = content_.postings.size(), .size = 0});
      std::uint32_t previous = 0;
      for (std::uint32_t unit : list) {
        std::uint32_t delta = unit - previous;
        previous = unit;
        for (; delta >= 0x80; delta >>= 7) content_.postings.push_back(static_cast<char>(delta | 0x80));
        content_.postings.push_back(static_cast<char>(delta));
      }
      content_.headers.back().size = content_.postings.size() - content_.headers.back().first;
    }
    std::ranges::sort(content_.headers, {}, &IndexedHeader::hash);
    for (const std::string& root : roots_) content_.roots.push_back(content_.add_text(root));
  }

  std::string folder_;
  const MappedLogs& logs_;
  const IndexFile* old_;
  IndexReport& report_;
  IndexContent content_;
  std::vector<Unit> units_;
  std::vector<std::uint32_t> renumbered_;  // number of an old log -> its number now
  std::map<std::pair<std::uint64_t, std::uint64_t>, Unit> remembered_;
  std::set<std::string> roots_;
};

}  // namespace

MappedLogs::MappedLogs(const fs::path& folder) {
  constexpr int attempts = 20;
  for (int attempt = 0;; ++attempt) {
    names_.clear();
    files_.clear();
    inodes_.clear();
    try {
      for (const fs::path& path : log_files(folder)) {
        files_.emplace_back(path);
        names_.push_back(path.lexically_relative(folder).string());
        inodes_.push_back(identify(path.string()).inode);
      }
      return;
    } catch (const support::Error&) {
      if (attempt == attempts) throw;  // unreadable for another reason than a compaction that removed it
    }
  }
}

std::string_view MappedLogs::bytes(std::size_t log) const {
  const std::span<const std::byte> bytes = files_[log].bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool MappedLogs::read(const RecordLocation& location, Record& record) const {
  Frame frame;
  return location.size != 0 && location.log < size() && frame_at(bytes(location.log), location.offset, frame) &&
         read_record(frame, record, nullptr);
}

bool is_current(const IndexFile& index, const MappedLogs& logs) {
  if (index.logs().size() != logs.size()) return false;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const IndexedLog& known = index.logs()[i];
    if (index.text(known.name) != logs.name(i) || known.seen != logs.bytes(i).size() ||
        fingerprint(logs.bytes(i), known.consumed) != known.fingerprint || known.inode != logs.inode(i)) {
      return false;
    }
  }
  return true;
}

IndexContent build_index(const fs::path& folder, const MappedLogs& logs, const IndexFile* old, IndexReport& report) {
  return Builder(folder.string(), logs, old, report).build();
}

std::string relocated(const std::string& output, const std::string& recorded_database, const std::string& database) {
  if (output.empty() || recorded_database == database || identify(output).exists) return output;
  const std::string old_root = folder_of(recorded_database) + "/";
  if (!output.starts_with(old_root)) return output;
  const std::string moved = folder_of(database) + "/" + output.substr(old_root.size());
  return identify(moved).exists ? moved : output;
}

bool is_as_recorded(const Record& record, const std::string& output) {
  const FileIdentity now = identify(output);
  if (!now.exists || now.size != record.output_size) return false;
  if (now.mtime == record.output_mtime) return true;
  // Touched, copied, or written again by a compiler cache.
  std::string content;
  return record.output_hash != 0 && read_file(output, now.size, content) && hash_bytes(content) == record.output_hash;
}

}  // namespace kerncap::compdb
