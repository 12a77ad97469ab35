// What a replay, a validation or a comparison of timings says: shared by the program that finds it out, the command
// line that prints it and whoever reads the JSON ("schema": "kerncap.verdict/1", docs/replay.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/support/error.h"
#include "core/support/json.h"
#include "replay/compare.h"
#include "replay/statistics.h"

namespace kerncap::replay {

enum class Outcome {
  matches,    // memory equals the application's own result, within the tolerance
  differs,    // it doesn't
  ran,        // replayed without a comparison
  fault,      // the kernel touched memory that isn't there, or an illegal instruction, or the process died
  hang,       // the kernel did not end within the time-out
  refused,    // the environment cannot do it: other GPU, busy addresses, not enough memory
  bad_input,  // snapshot, project or code object is corrupt or unsupported
};
const char* to_string(Outcome outcome);
support::ExitCode exit_code(Outcome outcome);

// Where the first element outside the tolerance lies.
struct FirstDifference {
  std::uint64_t address = 0;         // of the element
  std::uint64_t region_address = 0;  // of the captured region that holds it
  std::string region_kind;           // "device_coarse", "code_object", ...; "slack" for memory nobody had allocated
  int argument = -1;                 // index among the kernel's parameters; -1: not reached by an argument directly
  std::string what;                  // "argument 2 'out'", "device variable 'total'", "memory at 0x..."
  std::uint64_t element = 0;         // index, counted from where the argument points (or the region begins)
  std::string type, expected, actual;
};

// The comparison of one stretch of memory that has one meaning.
struct Part {
  std::string what;  // as FirstDifference::what
  int argument = -1;
  std::string type;
  std::uint64_t address = 0, size = 0;
  Tolerance tolerance;
  Statistics statistics;
};

struct Skipped {
  std::uint64_t address = 0, size = 0;
  std::string reason;
};

// What putting memory back took: all of it when the process began, and the dirty part of it before its last run.
struct Restore {
  std::uint64_t all_bytes = 0, bytes = 0;
  double all_ns = 0, ns = 0;
};

// One parameter of the kernel and what it was given.
struct KernelArgument {
  int index = 0;
  std::string name, type;  // as far as they are known
  std::uint32_t offset = 0, size = 0;
  std::string value;
  std::optional<std::uint64_t> pointer;  // into captured memory
};

// What is known of samples far above the others, in words; empty when there are none. They stay in: a median does not
// mind them.
struct Timing;
std::string outlier_text(const Timing& timing);

// One answer of `bench`: times in nanoseconds.
struct Timing {
  std::string label;            // "original", the code object's file name, ...
  std::vector<double> samples;  // in the order measured
  Interval median;              // of the samples
  bool results_checked = true;  // every timed run's result was compared
  std::vector<double> clocks;   // Hz, one a sample; empty where the system does not tell
};

struct BenchResult {
  std::string caches;  // "warm" or "cold"
  std::string clock = "device";
  Timing first;
  std::optional<Timing> second;          // with --vs
  std::optional<Comparison> comparison;  // second against first
  std::string stopped_because;           // "interval narrow enough", "iteration limit", "time limit"
};

struct Verdict {
  Outcome outcome = Outcome::ran;
  std::string sentence;        // the whole answer in one sentence
  std::string kernel;          // demangled
  std::string code_object;     // "captured" or the candidate's path
  std::string agent;           // ISA it ran on
  std::uint64_t dispatch = 0;  // index in the snapshot
  std::uint64_t runs = 0;      // compared runs
  std::uint64_t compared_bytes = 0;
  std::optional<FirstDifference> first;
  std::vector<Part> parts;         // only those with elements that differ, unless asked for all
  std::vector<Skipped> skipped;    // captured memory that was NOT compared, and why
  std::vector<std::string> notes;  // substitutions and other things that a careful reader must know
  std::vector<KernelArgument> arguments;
  std::optional<Restore> restore;
  std::vector<double> device_times;  // ns, one a run
  std::optional<BenchResult> bench;
};

support::Json to_json(const Verdict& verdict);
std::vector<KernelArgument> arguments_from_json(const support::Json& list);
Verdict verdict_from_json(const support::Json& document);  // throws Error{bad_input}

// Several lines for people; the first is the sentence.
std::string to_text(const Verdict& verdict);

}  // namespace kerncap::replay
