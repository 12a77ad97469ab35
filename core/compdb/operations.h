// What one does with a database besides asking it: make, index, import, export, compact, verify.
//
// Errors are thrown as support::Error. Every operation may run while compilers write to the same database.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/compdb/database.h"

namespace kerncap::compdb {

// Makes an empty database, or accepts the one that is there. Parents must exist. Throws Error{environment}.
void create_database(const std::filesystem::path& folder);

// Bytes in all logs and fragments: grows with every record, so a difference says whether a build recorded anything.
std::uint64_t log_size(const std::filesystem::path& folder);

// Looks into every recorded object that is new or changed, so that later queries find its code objects even when the
// object has been rebuilt or deleted meanwhile. `kerncap build` calls it when the build has ended.
IndexReport refresh_index(const std::filesystem::path& folder);

// Records for a build that ran without the wrapper. What an importer cannot know stays empty; Record::origin says how
// far to trust it. Records of the wrapper for the same output win.
struct ImportReport {
  std::uint64_t imported = 0, skipped = 0;
  std::vector<std::string> problems;  // one sentence each, at most a few dozen
};
// `path`: a compile_commands.json, or a build folder: then its Ninja files, its CMake File API reply and its
// compile_commands.json are used, the most exact first.
ImportReport import_build(const std::filesystem::path& folder, const std::filesystem::path& path);
ImportReport import_compile_commands(const std::filesystem::path& folder, const std::filesystem::path& file);

// Fills in the jobs and passes of a record that has none (imported, or answered by a compiler cache) through the
// compiler's dry run ("-###"). Returns false and says why in `reason` when that is not possible.
bool recover_jobs(Record& record, std::string* reason);

struct ExportOptions {
  bool per_pass = false;          // one entry for each front-end pass instead of one for each translation unit
  bool configure_checks = false;  // CMake's probes of the compiler too
};
// A compile_commands.json as clangd and clang-tidy read it. Written atomically; returns the number of entries.
std::uint64_t export_compile_commands(const std::filesystem::path& folder, const std::filesystem::path& file,
                                      const ExportOptions& options);

// Rewrites the logs without superseded and damaged records, and removes sources nobody refers to.
struct CompactReport {
  std::uint64_t bytes_before = 0, bytes_after = 0, records_before = 0, records_after = 0, blobs_removed = 0;
};
CompactReport compact(const std::filesystem::path& folder);

struct VerifyReport {
  std::uint64_t records = 0, blobs = 0;
  std::vector<std::string> damage;   // one sentence each: what is wrong, and where
  std::vector<std::string> remarks;  // outputs that changed since, sources that differ: no damage
  bool good() const { return damage.empty(); }
};
VerifyReport verify(const std::filesystem::path& folder);

}  // namespace kerncap::compdb
