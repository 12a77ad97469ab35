// Which of several records of one thing counts: the rule, for the index and for compaction.
#pragma once

#include <cstdint>

#include "core/compdb/record_view.h"

namespace kerncap::compdb {

struct RecordRank {
  std::uint64_t key = 0;        // equal for records of the same thing, of which only one counts
  std::uint64_t finished = 0;   // ns since the epoch; records are ranked in this order
  std::uint64_t argv_hash = 0;  // equal for equal commands
  std::int32_t exit_status = 0;
  bool imported = false, cached = false;
};

// Units that were compiled and linked by one command share their output; a unit without an output (-fsyntax-only) is
// known by its source.
RecordRank rank_of(const RecordSkimmer& skimmer);

// A failed compile replaces only failed ones, an imported record never a good one of the wrapper.
bool replaces(const RecordRank& later, const RecordRank& earlier);

// A compiler cache answered the later call, and the earlier record knows what the driver did for the same command.
bool takes_jobs_of(const RecordRank& later, const RecordRank& earlier);
void take_jobs(Record& later, Record&& earlier);

}  // namespace kerncap::compdb
