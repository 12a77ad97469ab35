#include <map>
#include <set>

#include "core/compdb/file_system.h"
#include "core/compdb/index_units.h"

namespace kerncap::compdb {
namespace {

constexpr auto link_kind = static_cast<std::uint32_t>(RecordKind::link);

std::uint8_t digit(char c) { return static_cast<std::uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); }

struct Look {
  std::size_t unit = 0;
  IndexUnit::Output recorded;
  std::string path;
  FileIdentity identity;
  bool as_recorded = false;
  std::vector<IndexedCodeObject> found;
  std::unique_ptr<Record> record;  // of a unit that was compiled and linked by one command
};

class OutputReader {
 public:
  OutputReader(const std::string& folder, const DatabaseLogs& logs, const IndexFile* old, std::vector<IndexUnit>& units,
               IndexContent& content)
      : folder_(folder), logs_(logs), old_(old), units_(units), content_(content) {}

  std::uint64_t look() {
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (units_[i].wants_look) want_partners(i);
    }
    std::vector<Look> looks;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (units_[i].wants_look) looks.emplace_back().unit = i;
    }
    std::atomic<std::uint64_t> read{0};
    std::vector<RecordSkimmer> skimmers(workers());
    in_parallel(looks.size(), [&](std::size_t i, std::size_t worker) {
      if (examine(looks[i], skimmers[worker])) ++read;
    });
    std::map<std::pair<std::string, std::uint64_t>, std::vector<Look*>> linked_together;
    for (Look& look : looks) {
      IndexUnit& unit = units_[look.unit];
      unit.output.reset();
      unit.entry.contents_pending = look.as_recorded ? 0 : 1;
      unit.entry.contents_final = look.as_recorded ? 1 : 0;
      if (!look.identity.regular) continue;
      if (look.record != nullptr) {
        linked_together[{look.record->output, look.record->started}].push_back(&look);
      } else if (!seen(unit, look)) {
        begin_contents(look);
        for (const IndexedCodeObject& found : look.found) add_contents(unit, found);
      }
    }
    for (auto& [output, group] : linked_together) attribute(group);
    return read;
  }

 private:
  // Units of one compile-and-link command are told apart together: when one of them is new, those that an earlier index
  // has seen are looked at again.
  void want_partners(std::size_t number) {
    if (old_ == nullptr || units_[number].old || units_[number].entry.linked == 0) return;
    const std::uint64_t output = key_hash(KeyKind::output, units_[number].output->path);
    for (const IndexedKey& key : old_->find(output)) {
      if (key.unit >= units_.size() || !units_[key.unit].old) continue;
      IndexUnit& partner = units_[key.unit];
      if (partner.entry.dead() || partner.entry.linked == 0) continue;
      partner.wants_look = true;
      partner.entry.looked_mtime = 0;
    }
  }

  static bool seen(const IndexUnit& unit, const Look& look) {
    return unit.entry.looked_mtime == look.identity.mtime && unit.entry.looked_size == look.identity.size;
  }

  // True when the file was read.
  bool examine(Look& look, RecordSkimmer& skimmer) const {
    IndexUnit& unit = units_[look.unit];
    if (unit.output != nullptr) {
      look.recorded = std::move(*unit.output);
    } else {
      std::string bytes;
      if (!logs_.skim(unit.entry.record, skimmer, bytes)) return false;
      const RecordView& record = skimmer.record();
      look.recorded.path = skimmer.text(record.output);
      look.recorded.database = skimmer.text(record.database);
      look.recorded.recorded = {record.output_size, record.output_mtime, record.output_hash};
    }
    look.path = relocated(look.recorded.path, look.recorded.database, folder_);
    look.identity = identify(look.path);
    look.as_recorded = look.identity.regular && is_as_recorded(look.recorded.recorded, look.path, look.identity);
    if (!look.identity.regular) return false;
    if (unit.entry.linked != 0) {
      look.record = std::make_unique<Record>();
      if (!logs_.read(unit.entry.record, *look.record)) look.record.reset();
    }
    if (seen(unit, look)) return false;
    look.found = code_objects_in(look.path);
    return true;
  }

  void begin_contents(const Look& look) {
    IndexUnit& unit = units_[look.unit];
    unit.contents.clear();
    unit.new_contents = true;
    unit.entry.looked_size = look.identity.size;
    unit.entry.looked_mtime = look.identity.mtime;
  }

  void add_contents(IndexUnit& unit, const IndexedCodeObject& found) {
    const auto number = static_cast<std::uint32_t>(content_.code_objects.size());
    IndexedDigest entry;
    for (std::size_t i = 0; i < sizeof entry.digest && 2 * i + 1 < found.digest.size(); ++i) {
      entry.digest[i] = static_cast<std::uint8_t>(digit(found.digest[2 * i]) << 4 | digit(found.digest[2 * i + 1]));
    }
    entry.target = content_.add_name(found.target);
    entry.first_kernel = static_cast<std::uint32_t>(content_.kernels.size());
    entry.kernels = static_cast<std::uint32_t>(found.kernels.size());
    unit.contents.emplace_back(key_hash(KeyKind::digest, found.digest), number);
    for (const IndexedKernel& kernel : found.kernels) {
      content_.kernels.push_back(content_.add_name(kernel.symbol));
      unit.contents.emplace_back(key_hash(KeyKind::kernel, kernel.symbol), number);
      for (const std::string& name : kernel.spellings)
        unit.contents.emplace_back(key_hash(KeyKind::name, name), number);
    }
    for (const std::string& cuid : found.cuids) unit.contents.emplace_back(key_hash(KeyKind::cuid, cuid), number);
    content_.code_objects.push_back(entry);
  }

  // Units that one command compiled and linked: their objects are gone, and the linked file holds the code objects of
  // all, in the order of the sources on the command line. What remains open is answered with all candidates.
  void attribute(std::vector<Look*>& group) {
    const auto place = [](const Look* look) {
      const std::vector<std::string>& argv = look->record->expanded_argv;
      return std::ranges::find(argv, look->record->source) - argv.begin();
    };
    std::ranges::stable_sort(group, {}, place);
    if (std::ranges::all_of(group, [&](const Look* look) { return seen(units_[look->unit], *look); })) return;
    std::vector<IndexedCodeObject> found;
    for (Look* look : group) {
      if (found.empty()) found = std::move(look->found);
      begin_contents(*look);
    }
    if (found.empty()) return;
    const std::set<std::string> from_elsewhere = digests_of_link_inputs(*group.front()->record);
    std::map<std::string, std::vector<const IndexedCodeObject*>> by_target;
    for (const IndexedCodeObject& code_object : found) {
      if (!from_elsewhere.contains(code_object.digest)) by_target[code_object.target].push_back(&code_object);
    }
    for (const auto& [target, list] : by_target) {
      std::vector<Look*> candidates;
      for (Look* look : group) {
        if (std::ranges::find(look->record->device_targets, target) != look->record->device_targets.end())
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
    const std::uint64_t wanted = key_hash(KeyKind::output, unit.output);
    std::vector<RecordLocation> links;
    for (const IndexUnit& candidate : units_) {
      if (candidate.entry.kind == link_kind && std::ranges::find(candidate.keys, wanted) != candidate.keys.end()) {
        links.push_back(candidate.entry.record);
      }
    }
    if (old_ != nullptr) {
      for (const IndexedKey& key : old_->find(wanted)) {
        if (key.unit < units_.size() && units_[key.unit].old && units_[key.unit].entry.kind == link_kind) {
          links.push_back(units_[key.unit].entry.record);
        }
      }
    }
    std::set<std::string> digests;
    for (const RecordLocation& location : links) {
      Record link;
      if (!logs_.read(location, link) || link.started != unit.started) continue;
      for (const std::string& input : link.inputs) {
        for (const IndexedCodeObject& code_object : code_objects_in(input)) digests.insert(code_object.digest);
      }
    }
    return digests;
  }

  const std::string& folder_;
  const DatabaseLogs& logs_;
  const IndexFile* old_;
  std::vector<IndexUnit>& units_;
  IndexContent& content_;
};

}  // namespace

void look_into_outputs(const std::string& folder, const DatabaseLogs& logs, const IndexFile* old,
                       std::vector<IndexUnit>& units, IndexContent& content, IndexReport& report) {
  report.objects_read += OutputReader(folder, logs, old, units, content).look();
}

std::string relocated(const std::string& output, const std::string& recorded_database, const std::string& database) {
  if (output.empty() || recorded_database == database || identify(output).exists) return output;
  const std::string old_root = folder_of(recorded_database) + "/";
  if (!output.starts_with(old_root)) return output;
  const std::string moved = folder_of(database) + "/" + output.substr(old_root.size());
  return identify(moved).exists ? moved : output;
}

bool is_as_recorded(const RecordedOutput& recorded, const std::string& path, const FileIdentity& now) {
  if (!now.exists || now.size != recorded.size) return false;
  if (now.mtime == recorded.mtime) return true;
  // Touched, copied, or written again by a compiler cache.
  std::string content;
  return recorded.hash != 0 && read_file(path, now.size, content) && hash_bytes(content) == recorded.hash;
}

}  // namespace kerncap::compdb
