#include "core/compdb/record_rank.h"

#include <string>
#include <utility>

#include "core/compdb/file_system.h"

namespace kerncap::compdb {

RecordRank rank_of(const RecordSkimmer& skimmer) {
  const RecordView& record = skimmer.record();
  std::string key(1, static_cast<char>(record.kind));
  key += skimmer.text(record.output);
  if (record.linked || key.size() == 1) {
    key += '\0' + absolute_path(skimmer.text(record.directory), skimmer.text(record.source));
  }
  std::string argv;
  for (const Text argument : record.expanded_argv) (argv += skimmer.text(argument)) += '\0';
  return {.key = hash_bytes(key),
          .finished = record.started + record.wall,
          .argv_hash = hash_bytes(argv),
          .exit_status = record.exit_status,
          .imported = record.origin != Origin::recorded,
          .cached = record.cached};
}

bool replaces(const RecordRank& later, const RecordRank& earlier) {
  if (earlier.exit_status != 0) return true;
  if (later.exit_status != 0) return false;
  return !later.imported || earlier.imported;
}

bool takes_jobs_of(const RecordRank& later, const RecordRank& earlier) {
  return later.cached && later.exit_status == 0 && earlier.exit_status == 0 && later.argv_hash == earlier.argv_hash;
}

void take_jobs(Record& later, Record&& earlier) {
  if (!later.jobs.empty()) return;
  later.jobs = std::move(earlier.jobs);
  later.files = std::move(earlier.files);
  later.passes = std::move(earlier.passes);
  later.device_targets = std::move(earlier.device_targets);
  later.language = std::move(earlier.language);
}

}  // namespace kerncap::compdb
