// What is given to a replay: a snapshot folder, or an emitted project that holds one. Everything here is optional but
// the snapshot:
//
//   PROJECT/snapshot            the snapshot
//   PROJECT/build/kernel.hsaco  the rebuilt code object, when it has been built
//   PROJECT/kernel.json         what emit found out about the kernel's source: see KernelSource
//   PROJECT/kerncap.toml        [validate]: tolerances, NaN policy, noise runs; [bench]
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replay/compare.h"

namespace kerncap::replay {

struct SourceParameter {
  int index = 0;
  std::string name, type;  // as in the source
  std::string element;     // element type of what it points to, by any spelling of element_type.h; may be empty
};

struct KernelSource {  // kernel.json
  std::string symbol, demangled, file;
  std::uint64_t first_line = 0, last_line = 0;
  std::vector<SourceParameter> parameters;
};
KernelSource read_kernel_json(const std::filesystem::path& path);  // throws Error{bad_input}

struct ArgumentRule {  // [validate.argument.NAME] of kerncap.toml, or --argument on the command line
  std::optional<double> absolute, relative;
  std::optional<std::uint64_t> ulps;
  std::optional<NanPolicy> nan;
  std::optional<ElementType> type;
  bool ignore = false;  // not compared; the verdict says so
};

struct ValidateRules {
  Tolerance tolerance;                            // for every floating-point element without a rule of its own
  std::map<std::string, ArgumentRule> arguments;  // by parameter name or index
  unsigned noise_runs = 0;                        // runs of the captured kernel that measure its own non-determinism
};
// Reads [validate]; other tables belong to other commands. Throws Error{bad_input} for anything it doesn't know,
// because a misspelt tolerance must not pass silently; also when this program was built without TOML support.
ValidateRules read_rules(const std::filesystem::path& kerncap_toml);

// Adds "ulp=4", "out:rel=1e-6", "2:type=float", "out:ignore" to the rules. Throws Error{usage}.
void add_rule(ValidateRules& rules, std::string_view text);

struct Input {
  std::filesystem::path snapshot;
  std::filesystem::path project;                     // empty when a snapshot was given
  std::optional<std::filesystem::path> code_object;  // the project's own rebuilt one, when it is there
  std::optional<std::filesystem::path> kernel_json, rules;
};
// Throws Error{usage} when `path` is neither a snapshot nor a project.
Input resolve_input(const std::filesystem::path& path);

}  // namespace kerncap::replay
