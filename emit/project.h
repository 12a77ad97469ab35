// Writing a project's files into a folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/compdb/record.h"
#include "core/snapshot/manifest.h"
#include "emit/device_jobs.h"
#include "emit/emit.h"
#include "emit/source_tree.h"
#include "emit/template_engine.h"

namespace kerncap::emit {

struct OtherTarget {
  std::string target, name;  // name: usable in file and target names
  DeviceJobs jobs;
};

// What the device-only rebuild needs; absent from a capture-only project.
struct Rebuild {
  const compdb::Record* record = nullptr;  // the kernel's own translation unit
  DeviceJobs jobs;
  std::vector<OtherTarget> other_targets;  // kept as an option
  SourceTree tree;
  std::vector<std::string> language_options;  // of the kernel's device pass, for editors
  std::vector<std::string> name_expressions;  // of hipRTC: what its templates are instantiated for
};

// Sources, overlay, jobs: what the kernel finder and the rebuild check read.
void write_rebuild_files(const std::filesystem::path& project, const Templates& templates, const Rebuild& rebuild);

// CMakeLists.txt, presets, settings, README.md, kernel.json, replay/: everything that says what was found out.
void write_project_files(const std::filesystem::path& project, const Templates& templates,
                         const snapshot::Manifest& manifest, const EmitOptions& options, const Rebuild* rebuild,
                         const EmitReport& report);

// kernel.s: the captured code to read, when something on this machine can disassemble it.
void write_disassembly(const std::filesystem::path& project, const Templates& templates,
                       const snapshot::Dispatch& dispatch, const std::filesystem::path& compiler, EmitReport& report);

void place_snapshot(const std::filesystem::path& project, const EmitOptions& options);

support::Json kernel_json(const EmitReport& report);

}  // namespace kerncap::emit
