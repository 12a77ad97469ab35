#include "emit/emit.h"

#include <algorithm>

#include "core/codeobject/code_object.h"
#include "core/compdb/database.h"
#include "core/snapshot/reader.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "emit/kernel_finder.h"
#include "emit/language_options.h"
#include "emit/project.h"
#include "emit/rebuild_check.h"
#include "emit/runtime_program.h"
#include "emit/slice.h"
#include "emit/translation_unit.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;

// The target as the code object itself says it; the manifest's agent may run code for a more general one.
std::string target_of(const snapshot::Reader& reader, const std::string& digest, std::vector<std::string>& warnings) {
  try {
    return codeobject::parse_code_object(reader.code_object(digest), "code object " + digest).target;
  } catch (const support::Error& error) {
    warnings.push_back(error.what());
    return "";
  }
}

DeviceJobs plan_jobs(const Resolved& resolved) {
  const std::string output = "kernel.hsaco";
  if (!resolved.link) return device_jobs(resolved.units.front(), resolved.target, output);
  std::vector<RdcUnit> units;
  for (std::size_t i = 0; i < resolved.units.size(); ++i) {
    std::string stem = fs::path(resolved.units[i].source).stem().string();
    std::erase_if(stem, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-'; });
    units.push_back({&resolved.units[i], std::to_string(i + 1) + "-" + stem + "-"});
  }
  return rdc_jobs(*resolved.link, units, resolved.target, output);
}

// Everything that leads from the digest to files that can be compiled; sets report.capture_only_reason where it ends.
std::optional<Rebuild> prepare_rebuild(const Resolved& resolved, const compdb::Database& database,
                                       const EmitOptions& options, EmitReport& report) {
  if (resolved.units.empty()) {
    report.capture_only_reason = resolved.reason;
    return std::nullopt;
  }
  report.translation_unit = describe(resolved.units.front());
  Rebuild rebuild;
  rebuild.record = &resolved.units.front();
  rebuild.jobs = plan_jobs(resolved);
  if (!rebuild.jobs.impossible.empty()) {
    report.capture_only_reason = rebuild.jobs.impossible;
    return std::nullopt;
  }
  if (options.all_targets && !resolved.link)
    for (const auto& other : rebuild.record->device_targets) {
      if (other == resolved.target || other == "host") continue;
      std::string name = other;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == ':'; }, '_');
      DeviceJobs jobs = device_jobs(*rebuild.record, other, "kernel-" + name + ".hsaco", name + "-");
      if (jobs.impossible.empty()) rebuild.other_targets.push_back({other, name, std::move(jobs)});
    }
  std::vector<const compdb::Record*> records;
  for (const auto& unit : resolved.units) records.push_back(&unit);
  rebuild.tree = collect_sources(records, resolved.target, &database);
  if (!rebuild.tree.missing.empty()) {
    report.capture_only_reason = "the source '" + rebuild.tree.missing.front() +
                                 "' is gone and was not archived (settings: sources = \"archive\")";
    return std::nullopt;
  }
  if (rebuild.tree.main_file.empty()) {
    report.capture_only_reason = "the record does not say which files the device pass read";
    return std::nullopt;
  }
  for (const auto& file : rebuild.tree.files) {
    if (file.changed)
      report.warnings.push_back("'" + file.original +
                                "' was changed after it was compiled; the project has the new text");
    report.files.push_back({file.original, file.project_path, file.content.size()});
  }
  for (const auto& step : rebuild.jobs.steps)
    if (step.front_end) {
      rebuild.language_options = language_options(step.arguments, resolved.target);
      break;
    }
  return rebuild;
}

SliceProposal find_kernel(const fs::path& project, const Rebuild& rebuild, const EmitOptions& options,
                          EmitReport& report) {
  auto answer = find_kernel_definition(project, rebuild, report.symbol, options.helper_folder, options.slice);
  if (answer.kernel) {
    report.kernel = std::move(answer.kernel);
    std::map<std::string, std::string> originals;
    for (const auto& file : report.files) originals.emplace(file.project_path, file.original);
    if (const auto found = originals.find(report.kernel->file); found != originals.end())
      report.kernel->original_file = found->second;
  } else {
    report.warnings.push_back("the kernel's definition was not found: " + answer.problem);
  }
  return std::move(answer.slice);
}

void describe_runtime_program(const RuntimeProgram& program, EmitReport& report) {
  report.runtime_compiled = true;
  report.capture_only_reason.clear();
  report.translation_unit =
      TranslationUnit{program.name.empty() ? program.project_path : program.name, "", "", program.library, 0};
  report.files.push_back({program.name, program.project_path, program.source.size()});
  for (const auto& header : program.headers)
    report.files.push_back({header.include_name, header.project_path, header.content.size()});
}

// The program as the kernel finder takes it: under the names that its text uses, HIP's own header in the place of the
// one that hipRTC brings along.
Rebuild parsable(const RuntimeProgram& program, const std::string& target) {
  static const compdb::Record in_root = [] {
    compdb::Record record;
    record.directory = "/hiprtc";
    return record;
  }();
  Rebuild rebuild;
  rebuild.record = &in_root;
  rebuild.tree.main_file = program.project_path;
  rebuild.tree.overlay.push_back({overlay_name("/hiprtc", "program.hip"), program.project_path});
  for (const auto& header : program.headers)
    rebuild.tree.overlay.push_back({overlay_name("/hiprtc", header.include_name), header.project_path});
  rebuild.language_options = {"-x",
                              "hip",
                              "--cuda-device-only",
                              "--offload-arch=" + target,
                              "-nogpulib",
                              "-nogpuinc",
                              "-D__HIP_PLATFORM_AMD__",
                              "-include",
                              "hip/hip_runtime.h",
                              "-I."};
  for (const auto& option : program.options)
    if (option.starts_with("-D") || option.starts_with("-I") || option.starts_with("-std=") || option.starts_with("-U"))
      rebuild.language_options.push_back(option);
  rebuild.name_expressions = program.name_expressions;
  return rebuild;
}

}  // namespace

const char* to_string(RebuildOutcome outcome) {
  switch (outcome) {
    case RebuildOutcome::byte_identical:
      return "byte-identical";
    case RebuildOutcome::differs:
      return "differs";
    case RebuildOutcome::not_possible:
      return "not possible";
  }
  return "";
}

EmitReport emit_project(const EmitOptions& options) {
  const Templates templates(options.data_folder / "templates");
  const snapshot::Reader reader(options.snapshot);
  const auto& manifest = reader.manifest();
  if (options.dispatch >= manifest.dispatches.size())
    fail(ExitCode::usage, "'{}' holds {} dispatches, numbered from 0; there is no number {}", options.snapshot.string(),
         manifest.dispatches.size(), options.dispatch);
  if (!options.replace && fs::exists(fs::symlink_status(options.output)))
    fail(ExitCode::usage, "'{}' exists; choose another folder or give --force to replace it", options.output.string());
  if (options.slice && (!options.rebuild_check || !options.find_kernel))
    fail(ExitCode::usage, "a slice is only kept when the rebuild check proves it; leave out --no-rebuild-check");
  const auto& dispatch = manifest.dispatches[options.dispatch];

  EmitReport report;
  report.project = options.output;
  report.symbol = dispatch.kernel.name.empty() ? dispatch.kernel_symbol : dispatch.kernel.name;
  if (report.symbol.ends_with(".kd")) report.symbol.resize(report.symbol.size() - 3);
  report.demangled =
      dispatch.kernel_demangled.empty() ? codeobject::demangle(report.symbol) : dispatch.kernel_demangled;
  report.code_object = dispatch.code_object;
  report.target = target_of(reader, dispatch.code_object, report.warnings);

  std::optional<Rebuild> rebuild;
  Resolved resolved;
  if (options.database.empty()) {
    report.capture_only_reason =
        "there is no compilation database: the application was not built under kerncap-cc, or --db names it";
  } else {
    const compdb::Database database(options.database);
    resolved = resolve_translation_unit(database, report.code_object, report.symbol, report.target, options);
    report.other_candidates = resolved.candidates;
    report.warnings.insert(report.warnings.end(), resolved.warnings.begin(), resolved.warnings.end());
    rebuild = prepare_rebuild(resolved, database, options, report);
  }
  // What was compiled at run time can't be in a database, unless its text was compiled before by a compiler, too.
  std::optional<RuntimeProgram> runtime_program;
  if (!rebuild) runtime_program = runtime_program_of(options.snapshot, report.code_object, report.target);
  if (runtime_program) describe_runtime_program(*runtime_program, report);
  report.capture_only = !rebuild && !runtime_program;

  SliceProposal proposal;
  support::AtomicFolder folder(options.output, options.replace);
  place_snapshot(folder.path(), options);
  if (rebuild) {
    write_rebuild_files(folder.path(), templates, *rebuild);
    if (options.find_kernel) proposal = find_kernel(folder.path(), *rebuild, options, report);
  }
  if (runtime_program) {
    write_runtime_program(folder.path(), templates, *runtime_program);
    if (options.find_kernel) find_kernel(folder.path(), parsable(*runtime_program, report.target), options, report);
  }
  write_disassembly(folder.path(), templates, dispatch, rebuild ? rebuild->jobs.steps.front().program : "", report);
  write_project_files(folder.path(), templates, manifest, options, rebuild ? &*rebuild : nullptr, report);
  if (rebuild && options.rebuild_check) {
    RebuildFolder build(folder.path());
    report.rebuild = check_rebuild(build, &*rebuild, report.code_object);
    if (options.slice) report.slice = slice_project(folder.path(), *rebuild, proposal, build, report);
    write_project_files(folder.path(), templates, manifest, options, &*rebuild, report);  // README.md tells the outcome
  }
  if (runtime_program && options.rebuild_check) {
    RebuildFolder build(folder.path());
    report.rebuild = check_rebuild(build, nullptr, report.code_object);
    write_project_files(folder.path(), templates, manifest, options, nullptr, report);
  }
  if (options.slice && !report.slice) report.slice.emplace().reason = "there are no sources to slice";
  folder.commit();
  return report;
}

}  // namespace kerncap::emit
