// The captured memory's content: written before a run, compared after it, and between runs only what was dirtied.
//
// The expected state is read from the snapshot after the kernel has ended, piece by piece into a buffer that is wiped
// afterwards: while a kernel runs, the result it should produce is nowhere in its process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/snapshot/reader.h"
#include "core/support/hash.h"
#include "replay/arguments.h"
#include "replay/expected.h"
#include "replay/patches.h"
#include "replay/plan.h"
#include "replay/program.h"
#include "replay/verdict.h"

namespace kerncap::replay {

// Non-determinism measured on the captured kernel, by Part::what: the largest absolute deviation from the application.
using Noise = std::map<std::string, double>;

enum class Extent {
  everything,  // all captured memory and the slack around it
  outputs,     // what the application's kernel changed, and what earlier runs here dirtied
};

struct Comparing {
  bool matches = true;
  std::uint64_t bytes = 0;
  std::optional<FirstDifference> first;
  std::vector<Part> parts;  // all of them
};

class State {
 public:
  State(const std::filesystem::path& snapshot, std::size_t dispatch, const Plan& plan, const Program& program,
        std::vector<Argument> arguments, ValidateRules rules, Patches patches);

  // Writes the whole before state, slack included. Then every byte that a run may have dirtied is known.
  void write_all();
  // Writes what the last run dirtied, as far as it is known: all that the application's kernel changed, everything
  // that any compare() found changed, the candidate's own memory. Returns the bytes written.
  std::uint64_t write_dirty();

  // The program (the same object) has another candidate now. What its predecessor dirtied is put back first; the last
  // compare() must have been of everything. Returns the bytes written.
  std::uint64_t retarget(std::vector<Argument> arguments, Patches patches);

  Comparing compare(Extent extent, const Noise& noise);

  // From now on the before state is the trial's, and the expected one what its outcome file says; without a trial, the
  // snapshot's again. Writes what differs and what the last run dirtied, which some compare() of everything or
  // write_outcome() must have found; returns the bytes written.
  std::uint64_t set_trial(std::optional<Trial> trial);
  // The stretches that a trial of this kind would change: floating-point elements that arguments point to, or all bytes
  // of what one argument points to.
  std::vector<Perturbation::Stretch> floating_stretches() const;
  std::vector<Perturbation::Stretch> flipped_stretches(const Argument& argument) const;
  // Writes what the kernel changed, against the trial's before state, to its outcome file.
  void write_outcome();

  const std::vector<Skipped>& skipped() const { return skipped_; }

 private:
  struct Piece;
  static constexpr std::uint64_t work_chunks = 16;  // 1 MiB: what one thread takes at a time
  struct Work {  // chunks [first, last) of a region
    const Placement* placement;
    std::size_t region;
    std::uint64_t first, last;
  };
  support::Hash128 hash_of_manifest() const;
  Expected expected(bool with_outcome) const;
  void make_pieces(const snapshot::Reader& reader);
  void mark(const std::function<bool(std::uint64_t address, std::uint64_t size)>& is_dirty);
  void write_candidate(const Expected& state);
  void write_chunks(const Expected& state, const Placement& placement, std::size_t region, std::uint64_t first,
                    std::uint64_t last);
  std::vector<std::vector<bool>> as_written(const Expected& state);
  void compare_piece(const Expected& expected_state, const std::vector<std::vector<bool>>& same, Piece& piece,
                     const Noise& noise, Extent extent, Comparing& result);
  bool is_candidates_own(const snapshot::Dispatch& dispatch, const Placement& placement) const;
  std::string reached_from(const Expected& expected_state, std::uint64_t region) const;
  void restore_candidate_memory();
  void compare_slack(Comparing& result);

  std::filesystem::path snapshot_;
  support::Hash128 manifest_hash_;
  std::size_t dispatch_;
  const Plan& plan_;
  const Program& program_;
  std::vector<Argument> arguments_;
  ValidateRules rules_;
  Patches patches_;
  std::optional<Trial> trial_;

  struct Piece {                         // a stretch of memory with one meaning
    std::size_t region = 0;              // of the manifest: where the expected bytes come from
    std::uint64_t offset = 0, size = 0;  // in that region
    std::uint64_t actual_address = 0;    // as the kernel sees it
    std::uint64_t access_address = 0;    // as this process sees it
    bool host = false;
    bool unchanged_expected = false;  // expected after = before, whatever the snapshot's after says
    ElementType element = ElementType::bytes;
    Tolerance tolerance;
    std::string what;
    int argument = -1;
    std::uint64_t element_base = 0;  // address that elements are counted from
  };
  std::vector<Piece> pieces_;
  std::vector<Skipped> skipped_;
  std::vector<std::vector<bool>> dirty_;  // by region and chunk: found changed by some compare()
  std::vector<std::vector<bool>> changed_by_application_;
  // By region and chunk: the hash of what write_all() put there, patches included; so memory that must not change is
  // checked without reading the snapshot again. Empty for a code object that the candidate replaces.
  std::vector<std::vector<support::Hash128>> written_;
  std::vector<Range> slack_;
  std::vector<std::byte> pristine_image_;   // the candidate's memory as the loader left it
  std::vector<std::byte> candidate_image_;  // ... and with the application's values in its variables
  std::vector<std::byte> scratch_;          // actual bytes under comparison
};

}  // namespace kerncap::replay
