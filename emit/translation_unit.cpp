#include "emit/translation_unit.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/support/error.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;
using compdb::Database;
using compdb::Match;
using compdb::Record;
using compdb::RecordKind;
using support::ExitCode;
using support::fail;

// The main source as a file, whatever its spelling.
std::string main_path(const Record& record) {
  for (const auto& pass : record.passes)
    if (!pass.files.empty() && pass.files[0] < record.files.size()) return record.files[pass.files[0]].path;
  if (record.source.starts_with('/')) return record.source;
  return (fs::path(record.directory) / record.source).lexically_normal().string();
}

std::vector<Match> of_kind(const std::vector<Match>& matches, RecordKind kind) {
  std::vector<Match> result;
  for (const auto& match : matches)
    if (match.record.kind == kind) result.push_back(match);
  return result;
}

// Newest first; a record that a compiler cache answered has no jobs and comes last.
void order(std::vector<Match>& matches) {
  std::stable_sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) {
    if (a.record.jobs.empty() != b.record.jobs.empty()) return b.record.jobs.empty();
    return a.record.started > b.record.started;
  });
}

std::string list_of(const std::vector<Match>& matches) {
  std::string text;
  for (const auto& match : matches)
    text += (text.empty() ? "" : ", ") + main_path(match.record) + " -> " + match.record.output;
  return text;
}

// Translation units with the same code, when their sources are one file: the newest serves for all.
const Match* choose(std::vector<Match>& matches, const EmitOptions& options) {
  if (!options.object.empty()) {
    const std::string wanted = fs::absolute(options.object).lexically_normal().string();
    for (const auto& match : matches)
      if (match.record.output == wanted || main_path(match.record) == wanted) return &match;
    fail(ExitCode::usage, "'{}' is none of the objects and sources with this code; they are: {}", wanted,
         list_of(matches));
  }
  std::set<std::string> sources;
  for (const auto& match : matches) sources.insert(main_path(match.record));
  if (sources.size() > 1)
    fail(ExitCode::answer_is_no, "different sources were compiled to the same code; choose one with --object: {}",
         list_of(matches));
  return &matches.front();
}

std::string why_unknown(const Database& database, const std::string& symbol) {
  const auto known = database.find_kernel(symbol);
  if (known.empty())
    return "the database knows neither this code object nor a kernel of this name: the code was not compiled under "
           "kerncap-cc (a "
           "library, assembly, or code compiled while the program ran)";
  return "the database knows the kernel from " + main_path(known.front().record) +
         ", but with other code: it was compiled again after the capture, or the program used another build";
}

// The objects of an RDC link that were recorded, the one with the kernel first.
void resolve_link(const Database& database, const std::string& symbol, const Match& link, Resolved& resolved) {
  std::set<std::string> with_kernel;
  for (const auto& match : database.find_kernel(symbol)) with_kernel.insert(match.record.output);
  for (const auto& input : link.record.inputs)
    for (auto& match : of_kind(database.find_output(input), RecordKind::translation_unit))
      if (!match.record.jobs.empty() && match.record.rdc) {
        if (with_kernel.contains(match.record.output))
          resolved.units.insert(resolved.units.begin(), match.record);
        else
          resolved.units.push_back(match.record);
      }
  if (resolved.units.empty())
    resolved.reason = "the code object was linked from relocatable device code into " + link.record.output +
                      ", but none of its objects was compiled under kerncap-cc";
  else
    resolved.link = link.record;
}

}  // namespace

TranslationUnit describe(const Record& record) {
  return {main_path(record), record.output, record.directory, record.compiler.path, record.started};
}

Resolved resolve_translation_unit(const Database& database, const std::string& digest, const std::string& symbol,
                                  const std::string& target, const EmitOptions& options) {
  Resolved resolved;
  resolved.target = target;
  const auto matches = database.find_code_object(digest);
  auto units = of_kind(matches, RecordKind::translation_unit);
  if (units.empty()) {
    auto links = of_kind(matches, RecordKind::link);
    order(links);
    if (links.empty()) {
      resolved.reason = why_unknown(database, symbol);
    } else {
      resolve_link(database, symbol, links.front(), resolved);
      if (!links.front().target.empty()) resolved.target = links.front().target;
    }
    return resolved;
  }
  order(units);
  const Match* chosen = choose(units, options);
  if (!chosen->target.empty()) resolved.target = chosen->target;
  for (const auto& match : units)
    if (&match != chosen) resolved.candidates.push_back(describe(match.record));
  if (chosen->stale)
    resolved.warnings.push_back("'" + chosen->record.output + "' on disk is no longer the object that was recorded");
  if (!chosen->record.replayable)
    resolved.reason = chosen->record.not_replayable_reason;
  else if (chosen->record.jobs.empty())
    resolved.reason =
        "the record of " + chosen->record.output +
        " has no compiler jobs: a compiler cache answered before the database knew this code, or it was imported";
  if (resolved.reason.empty()) resolved.units.push_back(chosen->record);
  return resolved;
}

}  // namespace kerncap::emit
