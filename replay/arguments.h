// Which argument a captured address belongs to, and what type its elements have. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/snapshot/manifest.h"
#include "replay/project.h"

namespace kerncap::replay {

struct Argument {
  int index = 0;                         // among the kernel's own (not hidden) parameters
  std::string name, type;                // from kernel.json, the metadata or the demangled name; may be empty
  std::uint32_t offset = 0, size = 0;    // in the kernarg segment
  std::optional<std::uint64_t> pointer;  // its value, when it is a pointer into captured memory
  ElementType element = ElementType::bytes;
  std::optional<std::uint32_t> member;  // the pointer is a member of a structure passed by value, at this byte
  bool points_to_const = false;         // by its type; false when that is unknown
  std::string label() const;            // "argument 2 'out'", "argument 2", "argument 0 'view', member at byte 16"
};

// The parameters in order, then the pointers inside parameters that are structures.
std::vector<Argument> kernel_arguments(const snapshot::Dispatch& dispatch, std::span<const std::byte> kernarg,
                                       const std::optional<KernelSource>& source, const ValidateRules& rules);

// A stretch of one region with one meaning.
struct Span {
  std::uint64_t address = 0, size = 0;
  int argument = -1;  // position in the arguments vector; -1: none points here
  ElementType element = ElementType::bytes;
  Tolerance tolerance;
  bool ignore = false;
};

// Splits a region where arguments point into it; ascending, covers the region without holes. An argument's span ends
// where the next argument's begins or the region ends.
std::vector<Span> spans_of(const snapshot::Region& region, const std::vector<Argument>& arguments,
                           const ValidateRules& rules);

// The rule for an argument, by name or index; nullptr when there is none.
const ArgumentRule* rule_for(const Argument& argument, const ValidateRules& rules);

// Throws Error{usage} when a rule names an argument that the kernel doesn't have.
void check_rules(const std::vector<Argument>& arguments, const ValidateRules& rules);

}  // namespace kerncap::replay
