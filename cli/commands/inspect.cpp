// kerncap inspect: what is in a snapshot, and what was NOT captured; how two snapshots differ.
#include <algorithm>

#include "cli/program.h"
#include "cli/snapshot_show.h"
#include "cli/table.h"
#include "core/support/json.h"
#include "core/support/progress.h"

namespace kerncap::cli {
namespace {

using snapshot::Manifest;
using snapshot::Reader;
using support::dump_json;
using support::ExitCode;
using support::Json;

struct Options {
  std::string snapshot;
  std::vector<std::string> difference;  // two snapshots
  std::vector<std::size_t> dispatches;  // positions in them, two
  bool verify = false;
};

std::uint64_t total_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const snapshot::Dispatch& dispatch : manifest.dispatches)
    for (const snapshot::Region& region : dispatch.regions) bytes += region.size;
  return bytes;
}

ExitCode verify(const Program& program, const Options& options) {
  std::vector<std::string> damages;
  try {
    const Reader reader(options.snapshot);
    support::Progress progress("verifying " + options.snapshot, reader.stored_bytes(), "bytes");
    damages = reader.verify([&](std::uint64_t bytes) { progress.advance(bytes); });
  } catch (const support::Error& error) {
    if (!program.json || error.code() != ExitCode::bad_input) throw;
    damages.emplace_back(error.what());  // cannot even be opened
  }
  if (program.json) {
    print(dump_json(Json{{"snapshot", options.snapshot}, {"whole", damages.empty()}, {"damage", damages}}));
  } else {
    for (const std::string& damage : damages) print(damage + "\n");
    if (damages.empty()) print(options.snapshot + ": whole\n");
  }
  return damages.empty() ? ExitCode::done : ExitCode::bad_input;
}

ExitCode compare(const Program& program, const Options& options) {
  const Reader first(options.difference[0]), second(options.difference[1]);
  const std::size_t count_first = first.manifest().dispatches.size(),
                    count_second = second.manifest().dispatches.size();
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  bool same = true;
  if (options.dispatches.empty()) {
    for (std::size_t i = 0; i < std::min(count_first, count_second); ++i) pairs.emplace_back(i, i);
    same = count_first == count_second;
  } else {
    pairs.emplace_back(options.dispatches[0], options.dispatches[1]);
    if (options.dispatches[0] >= count_first || options.dispatches[1] >= count_second)
      support::fail(ExitCode::usage, "'{}' holds {} dispatches and '{}' {}; count them from 0", options.difference[0],
                    count_first, options.difference[1], count_second);
  }
  Json list = Json::array();
  std::string text;
  if (!same && !program.json)
    text += fmt::format("{} dispatches in the first, {} in the second\n", count_first, count_second);
  {
    support::Progress progress("comparing", 2 * total_bytes(first.manifest()), "bytes");
    for (const auto& [a, b] : pairs) {
      const snapshot::Difference difference =
          snapshot::compare(first, a, second, b, [&](std::uint64_t bytes) { progress.advance(bytes); });
      same = same && difference.same();
      if (program.json) {
        list.push_back(as_json(difference, first, a, second, b));
      } else {
        if (pairs.size() > 1) text += fmt::format("{}Dispatch {}\n", text.empty() ? "" : "\n", a);
        text += describe(difference, first, a, second, b);
      }
    }
  }
  if (program.json) {
    text = dump_json(Json{{"first", options.difference[0]},
                          {"second", options.difference[1]},
                          {"same", same},
                          {"dispatches_first", count_first},
                          {"dispatches_second", count_second},
                          {"compared", std::move(list)}});
  }
  print(text);
  return same ? ExitCode::done : ExitCode::answer_is_no;
}

ExitCode inspect(const Program& program, const Options& options) {
  if (!options.difference.empty()) return compare(program, options);
  if (options.snapshot.empty()) support::fail(ExitCode::usage, "name a snapshot, or two with --diff");
  if (options.verify) return verify(program, options);
  const Reader reader(options.snapshot);
  std::string text;
  {
    support::Progress progress("comparing before and after", total_bytes(reader.manifest()), "bytes");
    const snapshot::ReadProgress advance = [&](std::uint64_t bytes) { progress.advance(bytes); };
    if (program.json) text = dump_json(as_json(reader, advance));
    for (std::size_t i = 0; !program.json && i < reader.manifest().dispatches.size(); ++i)
      text += (i > 0 ? "\n" : "") + describe(reader, i, advance);
  }
  print(text);
  return ExitCode::done;
}

}  // namespace

void add_inspect(Program& program) {
  CLI::App& command = program.add("inspect", "Show what is in a snapshot, and what was NOT captured; compare two",
                                  "  kerncap inspect step.kcap\n  kerncap inspect step.kcap --json\n"
                                  "  kerncap inspect step.kcap --verify      read everything, check every hash\n"
                                  "  kerncap inspect --diff a.kcap b.kcap    exit code 0: the same, 1: they differ\n"
                                  "  kerncap inspect --diff run.kcap run.kcap --dispatches 0 1\n");
  auto options = std::make_shared<Options>();
  CLI::Option* snapshot = command.add_option("snapshot", options->snapshot, "The snapshot folder (NAME.kcap)");
  CLI::Option* verify = command.add_flag("--verify", options->verify, "Read all of it and check every hash");
  CLI::Option* difference =
      command
          .add_option("--diff", options->difference, "Compare two snapshots: launch, arguments, regions, every byte")
          ->expected(2)
          ->type_name("FIRST SECOND")
          ->excludes(snapshot)
          ->excludes(verify);
  command
      .add_option("--dispatches", options->dispatches,
                  "With --diff: which dispatch of each, counted in the snapshot from 0 (default: all, in order)")
      ->expected(2)
      ->type_name("I J")
      ->needs(difference);
  program.run_with(command, [&program, options] { return inspect(program, *options); });
}

}  // namespace kerncap::cli
