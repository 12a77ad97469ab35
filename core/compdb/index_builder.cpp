#include "core/compdb/index_builder.h"

#include <map>
#include <set>
#include <unordered_map>

#include "core/compdb/frame.h"
#include "core/compdb/index_units.h"
#include "core/compdb/record_rank.h"

namespace kerncap::compdb {
namespace {

namespace fs = std::filesystem;

// Records of a scan are decoded in batches: enough for all threads, little enough to forget the log's pages soon.
constexpr std::uint64_t batch_bytes = std::uint64_t{8} << 20;

RecordRank rank_of(const IndexedUnit& unit) {
  return {.key = unit.key,
          .finished = unit.finished,
          .argv_hash = unit.argv_hash,
          .exit_status = static_cast<std::int32_t>(unit.exit_status),
          .imported = unit.imported != 0,
          .cached = unit.cached != 0};
}

// One for each thread: turns records into units.
class Summariser {
 public:
  RecordSkimmer skimmer;

  // Of the record in `skimmer`; header numbers are this summariser's own.
  void summarise(const RecordLocation& location, IndexUnit& unit) {
    const RecordView& record = skimmer.record();
    const RecordRank rank = compdb::rank_of(skimmer);
    IndexedUnit& entry = unit.entry;
    entry.record = location;
    entry.key = rank.key;
    entry.finished = rank.finished;
    entry.argv_hash = rank.argv_hash;
    entry.kind = static_cast<std::uint32_t>(record.kind);
    entry.exit_status = static_cast<std::uint32_t>(rank.exit_status);
    entry.imported = rank.imported ? 1 : 0;
    entry.cached = rank.cached ? 1 : 0;
    entry.linked = record.linked ? 1 : 0;
    const std::string_view output = skimmer.text(record.output);
    unit.wants_look = record.exit_status == 0 && !output.empty() && !record.configure_check;
    if (unit.wants_look) {
      unit.output = std::make_unique<IndexUnit::Output>(
          IndexUnit::Output{std::string(output),
                            std::string(skimmer.text(record.database)),
                            {record.output_size, record.output_mtime, record.output_hash}});
    }
    add_keys(record, output, unit.keys);
    unit.headers.reserve(record.files.size());
    for (const RecordView::File& file : record.files) {
      unit.headers.push_back(number_of(skimmer.text(file.path), {}));
      if (file.spelling != file.path) {
        unit.headers.push_back(number_of(skimmer.text(file.spelling), skimmer.text(record.directory)));
      }
    }
  }

  const std::vector<std::uint64_t>& header_keys() const { return header_keys_; }

 private:
  void add_keys(const RecordView& record, std::string_view output, std::vector<std::uint64_t>& keys) {
    if (!output.empty()) keys.push_back(key_hash(KeyKind::output, output));
    if (record.kind == RecordKind::translation_unit) {
      keys.push_back(
          key_hash(KeyKind::source, absolute_path(skimmer.text(record.directory), skimmer.text(record.source))));
      if (!record.files.empty()) keys.push_back(key_hash(KeyKind::source, skimmer.text(record.files.front().path)));
      if (const std::string_view target = build_target(output); !target.empty()) {
        keys.push_back(key_hash(KeyKind::target, target));
      }
      for (const Text device : record.device_targets) {
        const std::string_view target = skimmer.text(device);
        keys.push_back(key_hash(KeyKind::target, target));
        if (const std::size_t colon = target.find(':'); colon != std::string_view::npos) {
          keys.push_back(key_hash(KeyKind::target, target.substr(0, colon)));
        }
      }
    }
    for (const std::string_view text : skimmer.strings()) {  // of the jobs: no other string looks like this
      if (text.starts_with("-cuid=")) keys.push_back(key_hash(KeyKind::cuid, text.substr(6)));
    }
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }

  // Headers repeat from unit to unit: what a path normalises to is worked out once.
  std::uint32_t number_of(std::string_view path, std::string_view directory) {
    const bool relative = !directory.empty() && !path.starts_with('/');
    std::uint64_t hash = hash_bytes(path);
    if (relative) hash = hash * 31 + hash_bytes(directory);
    bool fresh = false;
    const std::uint32_t number = raw_.number_of(hash, &fresh);
    if (fresh) header_keys_.push_back(key_hash(KeyKind::header, absolute_path(directory, path)));
    return number;
  }

  NumberTable raw_;
  std::vector<std::uint64_t> header_keys_;
};

class Builder {
 public:
  Builder(std::string folder, const DatabaseLogs& logs, const IndexFile* old, Outputs outputs, IndexReport& report)
      : folder_(std::move(folder)), logs_(logs), old_(old), outputs_(outputs), report_(report) {}

  IndexContent build() {
    if (old_ != nullptr && continues_old()) {
      take_over_old();
    } else {
      renumbered_.clear();
      if (old_ != nullptr) remember_contents();
    }
    read_new();
    keep_newest();
    use_remembered_contents();
    look_into_outputs(folder_, logs_, old_, units_, content_, report_);
    write();
    return std::move(content_);
  }

 private:
  bool incremental() const { return old_count_ != 0; }

  // Do the logs only add to what the old index has seen, and is little of it superseded?
  bool continues_old() {
    const std::span<const IndexedUnit> units = old_->units();
    if (old_->logs().size() > logs_.size() || units.empty()) return false;
    if (units.size() - old_->live_units() > 1000 + units.size() / 4) return false;
    for (const IndexedLog& log : old_->logs()) {
      const std::size_t now = find_log(old_->text(log.name));
      if (now == logs_.size() || logs_.length(now) < log.consumed ||
          logs_.fingerprint(now, log.consumed) != log.fingerprint || logs_.inode(now) != log.inode) {
        return false;
      }
      renumbered_.push_back(static_cast<std::uint32_t>(now));
    }
    const auto broken = [&](const IndexedHeader& header) {
      return header.last >= units.size() || header.first > old_->postings().size() ||
             header.size > old_->postings().size() - header.first;
    };
    return std::ranges::none_of(old_->headers(), broken);
  }
  std::size_t find_log(std::string_view name) const {
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      if (logs_.name(i) == name) return i;
    }
    return logs_.size();
  }

  // Units keep their numbers, so that keys and postings can be taken over as they are.
  void take_over_old() {
    content_.statistics = old_->statistics();
    for (const IndexedLog& log : old_->logs()) content_.statistics.torn -= log.torn_tail;
    content_.texts = old_->texts();
    content_.code_objects.assign(old_->code_objects().begin(), old_->code_objects().end());
    content_.kernels.assign(old_->kernels().begin(), old_->kernels().end());
    old_count_ = old_->units().size();
    units_.resize(old_count_);
    for (std::size_t i = 0; i < old_count_; ++i) {
      IndexUnit& unit = units_[i];
      unit.old = true;
      unit.entry = old_->units()[i];
      for (RecordLocation* location : {&unit.entry.record, &unit.entry.driver_record}) {
        if (location->size != 0) location->log = location->log < renumbered_.size() ? renumbered_[location->log] : 0;
      }
      unit.wants_look =
          outputs_ == Outputs::that_were_not_recorded && unit.entry.contents_pending != 0 && !unit.entry.dead();
      if (!unit.entry.dead()) by_key_.emplace(unit.entry.key, i);
    }
    for (const TextReference& root : old_->roots()) roots_.insert(std::string(old_->text(root)));
  }

  // Code objects that were seen once must not be forgotten because the logs were compacted: the output may be gone.
  void remember_contents() {
    for (std::uint32_t i = 0; i < old_->units().size(); ++i) {
      const IndexedUnit& unit = old_->units()[i];
      if (unit.contents_final != 0 && !unit.dead()) remembered_[{unit.key, unit.finished}].entry = unit;
    }
    for (const IndexedKey& key : old_->keys()) {
      if (key.code_object >= old_->code_objects().size() || key.unit >= old_->units().size()) continue;
      const IndexedUnit& unit = old_->units()[key.unit];
      const auto known = remembered_.find({unit.key, unit.finished});
      if (known != remembered_.end()) known->second.contents.emplace_back(key.hash, key.code_object);
    }
  }

  void use_remembered_contents() {
    if (remembered_.empty()) return;
    std::unordered_map<std::uint32_t, std::uint32_t> copied;
    for (IndexUnit& unit : units_) {
      const auto known = remembered_.find({unit.entry.key, unit.entry.finished});
      if (!unit.wants_look || known == remembered_.end()) continue;
      for (const auto& [key, code_object] : known->second.contents) {
        const auto [position, fresh] =
            copied.try_emplace(code_object, static_cast<std::uint32_t>(content_.code_objects.size()));
        if (fresh) copy_code_object(old_->code_objects()[code_object]);
        unit.contents.emplace_back(key, position->second);
      }
      unit.entry.looked_size = known->second.entry.looked_size;
      unit.entry.looked_mtime = known->second.entry.looked_mtime;
      unit.entry.contents_final = 1;
      unit.wants_look = false;
      unit.output.reset();
    }
  }
  void copy_code_object(const IndexedDigest& code_object) {
    IndexedDigest copy = code_object;
    copy.target = content_.add_name(old_->text(code_object.target));
    copy.first_kernel = static_cast<std::uint32_t>(content_.kernels.size());
    const std::vector<std::string_view> kernels = old_->kernels_of(code_object);
    copy.kernels = static_cast<std::uint32_t>(kernels.size());
    for (const std::string_view kernel : kernels) content_.kernels.push_back(content_.add_name(kernel));
    content_.code_objects.push_back(copy);
  }

  void read_new() {
    std::vector<Summariser> summarisers(workers());
    for (std::size_t log = 0; log < logs_.size(); ++log) {
      std::uint64_t start = 0;
      for (std::size_t i = 0; i < renumbered_.size(); ++i) {
        if (renumbered_[i] == log) start = old_->logs()[i].consumed;
      }
      read_log(log, start, summarisers);
    }
    content_.statistics.bytes = 0;
    for (std::size_t log = 0; log < logs_.size(); ++log) content_.statistics.bytes += logs_.length(log);
  }

  void read_log(std::size_t log, std::uint64_t start, std::vector<Summariser>& summarisers) {
    ScanResult scan{.end = start};
    if (start < logs_.length(log)) {
      DatabaseLogs::Mapping mapping(logs_, log);
      std::vector<Frame> batch;
      std::uint64_t bytes = 0;
      const auto finish_batch = [&] {
        summarise(batch, log, summarisers);
        if (!batch.empty()) mapping.forget_up_to(batch.back().offset);
        batch.clear();
        bytes = 0;
      };
      scan = scan_frames(mapping.bytes(), start, [&](const Frame& frame) {
        batch.push_back(frame);
        bytes += frame.size;
        if (bytes >= batch_bytes) finish_batch();
      });
      finish_batch();
    }
    content_.statistics.torn += scan.damaged_places;
    // The last damaged place counts as the tail when nothing whole follows it: it is looked at again next time.
    content_.logs.push_back({.name = content_.add_text(logs_.name(log)),
                             .seen = logs_.length(log),
                             .consumed = scan.end,
                             .torn_tail = scan.end < logs_.length(log) ? 1U : 0U,
                             .inode = logs_.inode(log),
                             .fingerprint = logs_.fingerprint(log, scan.end)});
  }

  void summarise(const std::vector<Frame>& batch, std::size_t log, std::vector<Summariser>& summarisers) {
    std::vector<IndexUnit> read(batch.size());
    std::vector<std::size_t> by(batch.size());
    std::vector<std::string> root(batch.size());
    in_parallel(batch.size(), [&](std::size_t i, std::size_t worker) {
      Summariser& summariser = summarisers[worker];
      if (!summariser.skimmer.read(batch[i])) return;
      by[i] = worker;
      root[i] = summariser.skimmer.text(summariser.skimmer.record().database);
      summariser.summarise(
          {batch[i].offset, static_cast<std::uint32_t>(log), static_cast<std::uint32_t>(batch[i].size)}, read[i]);
    });
    Statistics& statistics = content_.statistics;
    std::vector<std::vector<std::uint32_t>>& numbers = header_numbers_;
    numbers.resize(summarisers.size());
    for (std::size_t worker = 0; worker < summarisers.size(); ++worker) {
      const std::vector<std::uint64_t>& keys = summarisers[worker].header_keys();
      for (std::size_t i = numbers[worker].size(); i < keys.size(); ++i) {
        numbers[worker].push_back(headers_.number_of(keys[i]));
      }
    }
    for (std::size_t i = 0; i < read.size(); ++i) {
      IndexUnit& unit = read[i];
      if (unit.entry.dead()) {
        ++statistics.torn;
        continue;
      }
      ++statistics.records;
      ++(unit.entry.kind == static_cast<std::uint32_t>(RecordKind::link) ? statistics.links
                                                                         : statistics.translation_units);
      if (unit.entry.exit_status != 0) ++statistics.failed;
      if (roots_.empty() || root[i] != last_root_) roots_.insert(root[i]);
      last_root_ = root[i];
      for (std::uint32_t& header : unit.headers) header = numbers[by[i]][header];
      fresh_.push_back(std::move(unit));
    }
  }

  void keep_newest() {
    std::ranges::stable_sort(fresh_, {}, [](const IndexUnit& unit) { return unit.entry.finished; });
    for (IndexUnit& unit : fresh_) {
      const auto [position, first] = by_key_.try_emplace(unit.entry.key, units_.size());
      if (first) {
        units_.push_back(std::move(unit));
        continue;
      }
      ++content_.statistics.superseded;
      IndexUnit& earlier = units_[position->second];
      if (unit.entry.finished < earlier.entry.finished) {  // a log that was read late: of another host, or a fragment
        if (replaces(rank_of(earlier.entry), rank_of(unit.entry))) continue;
      } else if (!replaces(rank_of(unit.entry), rank_of(earlier.entry))) {
        continue;
      }
      if (takes_jobs_of(rank_of(unit.entry), rank_of(earlier.entry)) &&
          (earlier.entry.cached == 0 || earlier.entry.driver_record.size != 0)) {
        continue_unit(std::move(unit), earlier);
      } else if (earlier.old) {
        earlier.entry.record = {};
        earlier.wants_look = false;
        position->second = units_.size();
        units_.push_back(std::move(unit));
      } else {
        earlier = std::move(unit);
      }
    }
    fresh_.clear();
  }

  // A compiler cache answered: what the driver did and read is what it was.
  static void continue_unit(IndexUnit&& later, IndexUnit& earlier) {
    later.entry.driver_record = earlier.entry.cached != 0 ? earlier.entry.driver_record : earlier.entry.record;
    earlier.entry = later.entry;
    earlier.keys.insert(earlier.keys.end(), later.keys.begin(), later.keys.end());
    std::ranges::sort(earlier.keys);
    earlier.keys.erase(std::unique(earlier.keys.begin(), earlier.keys.end()), earlier.keys.end());
    if (earlier.headers.size() < later.headers.size()) earlier.headers = std::move(later.headers);
    earlier.new_contents = true;
    earlier.contents.clear();
    earlier.wants_look = later.wants_look;
    earlier.output = std::move(later.output);
  }

  void write() {
    write_keys();
    write_postings();
    content_.units.reserve(units_.size());
    for (const IndexUnit& unit : units_) {
      content_.units.push_back(unit.entry);
      if (unit.entry.dead()) continue;
      ++content_.live_units;
      content_.pending += unit.entry.contents_pending;
    }
    report_.records = content_.live_units;
    report_.code_objects = content_.live_code_objects;
    for (const std::string& root : roots_) content_.roots.push_back(content_.add_text(root));
  }

  void write_keys() {
    std::vector<IndexedKey>& keys = content_.keys;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const auto number = static_cast<std::uint32_t>(i);
      for (std::uint64_t key : units_[i].keys) keys.push_back({key, number, no_code_object});
      for (const auto& [key, code_object] : units_[i].contents) keys.push_back({key, number, code_object});
    }
    std::ranges::sort(keys);
    if (incremental()) {
      std::vector<IndexedKey> all;
      all.reserve(old_->keys().size() + keys.size());
      for (const IndexedKey& key : old_->keys()) {
        if (key.unit >= old_count_) continue;
        const IndexUnit& unit = units_[key.unit];
        const bool gone = unit.entry.dead() || (key.code_object != no_code_object && unit.new_contents);
        if (!gone) all.push_back(key);
      }
      const auto middle = static_cast<std::ptrdiff_t>(all.size());
      all.insert(all.end(), keys.begin(), keys.end());
      std::inplace_merge(all.begin(), all.begin() + middle, all.end());
      keys = std::move(all);
    }
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::vector<bool> used(content_.code_objects.size());
    for (const IndexedKey& key : keys) {
      if (key.code_object < used.size()) used[key.code_object] = true;
    }
    content_.live_code_objects = static_cast<std::uint64_t>(std::ranges::count(used, true));
  }

  static std::size_t number_size(std::uint32_t value) {
    std::size_t size = 1;
    for (; value >= 0x80; value >>= 7) ++size;
    return size;
  }

  // Two passes over the headers of the new units: how long each header's list gets, then the lists. Lists of the old
  // index are continued.
  void write_postings() {
    std::vector<std::uint32_t> old_of;  // header number -> its place in the old index
    std::vector<std::uint32_t> last;    // its last unit so far
    if (incremental()) {
      for (std::uint32_t i = 0; i < old_->headers().size(); ++i) {
        const std::uint32_t number = headers_.number_of(old_->headers()[i].hash);
        if (old_of.size() <= number) old_of.resize(number + 1, no_code_object);
        old_of[number] = i;
      }
    }
    const std::size_t count = headers_.hashes().size();
    old_of.resize(count, no_code_object);
    last.resize(count, 0);
    std::vector<std::uint64_t> size(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      if (old_of[i] == no_code_object) continue;
      size[i] = old_->headers()[old_of[i]].size;
      last[i] = old_->headers()[old_of[i]].last;
    }
    const std::vector<std::uint32_t> last_before = last;
    std::vector<std::uint32_t> seen(count, UINT32_MAX);  // a header may be named twice by a unit
    // Slots of old units that were continued come first and keep what is there.
    for (std::size_t i = old_count_; i < units_.size(); ++i) {
      const auto number = static_cast<std::uint32_t>(i);
      std::vector<std::uint32_t>& headers = units_[i].headers;
      std::size_t kept = 0;
      for (const std::uint32_t header : headers) {
        if (seen[header] == number) continue;
        seen[header] = number;
        headers[kept++] = header;
        size[header] += number_size(number - last[header]);
        last[header] = number;
      }
      headers.resize(kept);
    }
    std::vector<std::uint64_t> at(count);
    std::uint64_t total = 0;
    content_.headers.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (size[i] == 0) {
        at[i] = total;
        continue;
      }
      content_.headers.push_back({.hash = headers_.hashes()[i], .first = total, .size = size[i], .last = last[i]});
      at[i] = total;
      total += size[i];
    }
    content_.postings.resize(total);
    for (std::size_t i = 0; i < count; ++i) {
      if (old_of[i] == no_code_object) continue;
      const IndexedHeader& header = old_->headers()[old_of[i]];
      old_->postings().copy(content_.postings.data() + at[i], header.size, header.first);
      at[i] += header.size;
    }
    last = last_before;
    for (std::size_t i = old_count_; i < units_.size(); ++i) {
      for (const std::uint32_t header : units_[i].headers) {
        auto delta = static_cast<std::uint32_t>(i) - last[header];
        last[header] = static_cast<std::uint32_t>(i);
        for (; delta >= 0x80; delta >>= 7) content_.postings[at[header]++] = static_cast<char>(delta | 0x80);
        content_.postings[at[header]++] = static_cast<char>(delta);
      }
    }
    std::ranges::sort(content_.headers, {}, &IndexedHeader::hash);
  }

  struct Remembered {
    IndexedUnit entry;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> contents;
  };

  std::string folder_;
  const DatabaseLogs& logs_;
  const IndexFile* old_;
  const Outputs outputs_;
  IndexReport& report_;
  IndexContent content_;
  std::vector<IndexUnit> fresh_, units_;  // just read; those that count, the old ones first
  std::size_t old_count_ = 0;             // not 0: units of the old index keep their numbers
  std::unordered_map<std::uint64_t, std::size_t> by_key_;
  std::vector<std::uint32_t> renumbered_;  // number of an old log -> its number now
  NumberTable headers_;
  std::vector<std::vector<std::uint32_t>> header_numbers_;  // summariser's number -> ours
  std::map<std::pair<std::uint64_t, std::uint64_t>, Remembered> remembered_;
  std::set<std::string> roots_;
  std::string last_root_;
};

}  // namespace

std::string_view build_target(std::string_view output) {
  constexpr std::string_view cmake_folder = "CMakeFiles/", cmake_suffix = ".dir", meson_suffix = ".p";
  for (std::size_t slash = output.rfind('/'); slash != std::string_view::npos && slash > 0;) {
    const std::size_t before = output.rfind('/', slash - 1);
    const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view folder = output.substr(start, slash - start);
    if (folder.ends_with(cmake_suffix) && output.substr(0, start).ends_with(cmake_folder)) {
      return folder.substr(0, folder.size() - cmake_suffix.size());
    }
    if (folder.ends_with(meson_suffix)) return folder.substr(0, folder.size() - meson_suffix.size());
    slash = before;
  }
  return {};
}

bool is_current(const IndexFile& index, const DatabaseLogs& logs) {
  if (index.logs().size() != logs.size()) return false;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const IndexedLog& known = index.logs()[i];
    if (index.text(known.name) != logs.name(i) || known.seen != logs.length(i) || known.consumed > known.seen ||
        logs.fingerprint(i, known.consumed) != known.fingerprint || known.inode != logs.inode(i)) {
      return false;
    }
  }
  return true;
}

IndexContent build_index(const fs::path& folder, const DatabaseLogs& logs, const IndexFile* old, Outputs outputs,
                         IndexReport& report) {
  return Builder(folder.string(), logs, old, outputs, report).build();
}

}  // namespace kerncap::compdb
