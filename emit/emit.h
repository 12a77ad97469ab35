// From a snapshot to a project: which compiler call made the kernel, with which sources, and everything needed to make
// it again.
//
// emit_project() throws support::Error: {usage} for a dispatch that the snapshot does not have or an output that
// exists, {bad_input} for a damaged snapshot or database, {answer_is_no} when the code object came from different
// sources and `object` does not choose, {environment} when the output cannot be written. A kernel without a usable
// record is no error: the project is then capture-only and the report says why. The output folder appears whole or not
// at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/support/json.h"

namespace kerncap::emit {

// take: the snapshot is the caller's own and moves into the project.
enum class SnapshotPlacement { copy, link, take };

struct EmitOptions {
  std::filesystem::path snapshot;  // NAME.kcap
  std::size_t dispatch = 0;        // position in the snapshot
  std::filesystem::path database;  // may be empty: a capture-only project
  std::filesystem::path output;    // the project folder
  bool replace = false;            // an existing output is exchanged for the new one once that is whole
  SnapshotPlacement placement = SnapshotPlacement::copy;
  std::filesystem::path object;  // chooses among records of different sources with the same code
  bool rebuild_check = true;
  bool slice = false;        // only what the kernel needs, when that gives the same kernel; needs the rebuild check
  bool all_targets = false;  // jobs of the other architectures too: targets kernel-<architecture>
  bool find_kernel = true;
  // share/kerncap and libexec/kerncap of the running installation or build tree.
  std::filesystem::path data_folder, helper_folder;
};

struct Field {                               // of a struct that is passed by value
  std::string name, type, pointee, element;  // name: "view.data"; the rest as in Parameter
  std::uint64_t offset = 0;                  // bytes, inside the parameter
  bool pointer = false, is_const = false;
};

struct Parameter {
  int index = 0;
  std::string name, type;  // as the source spells it, after template substitution
  std::string canonical;   // without typedefs
  std::string pointee;     // of pointers and references: what they point to; otherwise empty
  std::string element;     // "f32", "bf16", "i32" ...: of the pointee, or of the value itself; may be empty
  bool pointer = false, is_const = false;  // is_const: of the pointee
  std::uint64_t size = 0;                  // bytes
  std::vector<Field> fields;               // of structs and functors, nested ones flattened
};

struct Function {          // a device function that the kernel calls and the project can edit
  std::string name, file;  // file: inside the project
  std::uint64_t first_line = 0, last_line = 0;
};

struct KernelDefinition {
  std::string file;           // inside the project, where an edit has effect
  std::string original_file;  // as the compiler opened it
  std::uint64_t first_line = 0, last_line = 0;
  std::string presumed_file;  // what #line says, when that differs
  std::uint64_t presumed_line = 0;
  std::string macro;  // name of the macro that made it; empty otherwise
  std::vector<std::string> template_arguments;
  std::vector<Parameter> parameters;
  std::vector<Function> callees;
};

struct BundledFile {
  std::string original, project_path;  // project_path: relative to the project
  std::uint64_t size = 0;
};

struct TranslationUnit {
  std::string source, output, directory, compiler;
  std::uint64_t recorded = 0;  // ns since the epoch
  bool operator==(const TranslationUnit&) const = default;
};

enum class RebuildOutcome { byte_identical, differs, not_possible };
const char* to_string(RebuildOutcome outcome);

struct RebuildCheck {
  RebuildOutcome outcome = RebuildOutcome::not_possible;
  std::string reason;      // empty when byte-identical
  std::string digest;      // of the rebuilt code object, when there is one
  std::uint64_t wall = 0;  // ns, of the whole device-only build
};

struct Slice {
  bool offered = false;
  std::string reason;                   // why not; empty when offered
  std::size_t emptied = 0;              // functions that lost their bodies
  std::vector<std::string> files;       // of the project that were changed; as compiled they are below whole/
  std::string digest;                   // of the sliced code object
  std::uint64_t whole = 0, sliced = 0;  // ns of processor time, device-only builds: the whole translation unit, the slice
};

struct EmitReport {
  std::filesystem::path project;
  std::string symbol, demangled, code_object, target;
  bool capture_only = false;
  std::string capture_only_reason;
  bool runtime_compiled = false;  // through hipRTC: the translation unit's compiler is the library that did it
  std::optional<TranslationUnit> translation_unit;
  std::vector<TranslationUnit> other_candidates;  // other compiler calls that gave the same bytes
  std::optional<KernelDefinition> kernel;
  std::vector<BundledFile> files;
  std::optional<RebuildCheck> rebuild;
  std::optional<Slice> slice;  // when it was asked for
  std::vector<std::string> warnings;
};

EmitReport emit_project(const EmitOptions& options);

support::Json to_json(const EmitReport& report);

}  // namespace kerncap::emit
