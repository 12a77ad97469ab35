#include "emit/project.h"

#include <algorithm>
#include <map>

#include "core/snapshot/placement.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/process.h"
#include "emit/disassembly.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;
using support::ExitCode;
using support::fail;
using support::Json;

void write_file(const fs::path& path, std::string_view text, unsigned mode = 0644) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error)
    fail(ExitCode::environment, "cannot make the folder '{}': {}", path.parent_path().string(), error.message());
  support::write_file_atomically(path, text, mode);
}

Json texts(const std::vector<std::string>& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back({{"text", value}});
  return list;
}

std::string json_string(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The first line of what a tool says of its version; CMake compares it when the project is configured.
std::string version_of(const std::string& program, const std::vector<std::string>& ask) {
  support::Command command;
  command.argv = {program};
  command.argv.insert(command.argv.end(), ask.begin(), ask.end());
  command.standard_output = support::Stream::capture;
  command.standard_error = support::Stream::null;
  command.timeout = std::chrono::seconds(20);
  try {
    const auto result = support::run(command);
    if (!result.succeeded()) return "";
    return result.standard_output.substr(0, result.standard_output.find('\n'));
  } catch (const support::Error&) {
    return "";
  }
}

struct Tool {
  std::string variable, program, override_variable;
  std::vector<std::string> ask;
};

// One CMake variable for each program of the jobs.
std::vector<Tool> tools_of(const std::vector<Step>& steps, std::map<std::string, std::string>& variable_of_program) {
  std::vector<Tool> tools;
  std::map<std::string, int> used;
  for (const Step& step : steps) {
    if (variable_of_program.contains(step.program)) continue;
    const bool links = step.tool == compdb::Job::Tool::linker;
    std::string variable = links ? "kerncap_lld" : "kerncap_clang";
    if (const int count = ++used[variable]; count > 1) variable += "_" + std::to_string(count);
    Tool tool{variable, step.program, links ? "KERNCAP_LLD" : "KERNCAP_CLANG", {}};
    if (links) tool.ask = step.leading;
    tool.ask.push_back("--version");
    variable_of_program[step.program] = variable;
    tools.push_back(std::move(tool));
  }
  return tools;
}

std::string resource_folder(const DeviceJobs& jobs) {
  for (const Step& step : jobs.steps)
    for (std::size_t i = 0; i + 1 < step.arguments.size(); ++i)
      if (step.arguments[i] == "-resource-dir") return step.arguments[i + 1];
  return "";
}

std::vector<Step> all_steps(const Rebuild& rebuild) {
  std::vector<Step> steps = rebuild.jobs.steps;
  for (const auto& other : rebuild.other_targets)
    steps.insert(steps.end(), other.jobs.steps.begin(), other.jobs.steps.end());
  return steps;
}

Json rebuild_values(const Rebuild& rebuild) {
  const std::vector<Step> every_step = all_steps(rebuild);
  Json values = Json::object();
  std::map<std::string, std::string> variable_of_program;
  Json tools = Json::array();
  for (const Tool& tool : tools_of(every_step, variable_of_program))
    tools.push_back({{"variable", tool.variable},
                     {"path", tool.program},
                     {"version", version_of(tool.program, tool.ask)},
                     {"leading", texts(tool.ask)},
                     {"override", tool.override_variable}});
  values["tools"] = std::move(tools);

  std::string source_date_epoch;
  for (const auto& [name, value] : rebuild.record->environment)
    if (name == "SOURCE_DATE_EPOCH") source_date_epoch = value;
  Json steps = Json::array();
  for (const Step& step : every_step) {
    Json entry{{"name", step.name},
               {"tool", variable_of_program[step.program]},
               {"leading", texts(step.leading)},
               {"directory", work_directory(step.directory)},
               {"output", step.output},
               {"inputs", texts(step.inputs)},
               {"front_end", step.front_end}};
    entry["sources"] = Json::array();
    for (const auto& file : rebuild.tree.files)
      if (step.front_end && file.device_units.contains(step.unit))
        entry["sources"].push_back({{"path", file.project_path}});
    if (!source_date_epoch.empty()) entry["source_date_epoch"] = {{"text", source_date_epoch}};
    steps.push_back(std::move(entry));
  }
  values["steps"] = std::move(steps);
  values["other_targets"] = Json::array();
  for (const auto& other : rebuild.other_targets)
    values["other_targets"].push_back({{"name", other.name}, {"file", other.jobs.steps.back().output}});
  values["directory"] = work_directory(rebuild.record->directory);
  values["resource_folder"] = resource_folder(rebuild.jobs);

  return values;
}

std::string dimensions(const std::array<std::uint32_t, 3>& size) {
  return fmt::format("{} x {} x {}", size[0], size[1], size[2]);
}

Json project_values(const snapshot::Manifest& manifest, const EmitOptions& options, const EmitReport& report) {
  const auto& dispatch = manifest.dispatches[options.dispatch];
  Json values{{"kerncap_version", KERNCAP_VERSION},
              {"symbol", report.symbol},
              {"demangled", report.demangled},
              {"code_object", report.code_object},
              {"digest", report.slice && report.slice->offered ? report.slice->digest : report.code_object},
              {"target", report.target},
              {"processor", report.target.substr(0, report.target.find(':'))},
              {"dispatch", std::to_string(options.dispatch)},
              {"grid", dimensions(dispatch.grid)},
              {"workgroup", dimensions(dispatch.workgroup)},
              {"capture_only_reason", report.capture_only_reason}};
  if (report.translation_unit) {
    values["original_source"] = report.translation_unit->source;
    values["compiler"] = report.translation_unit->compiler;
  }
  if (report.rebuild)
    values["check"] = {{"text", report.rebuild->outcome == RebuildOutcome::byte_identical
                                    ? std::string("the rebuilt code object is byte for byte the captured one")
                                    : std::string(to_string(report.rebuild->outcome)) + ": " + report.rebuild->reason}};
  if (report.slice && report.slice->offered) values["slice"] = {{"emptied", std::to_string(report.slice->emptied)}};
  if (report.kernel) {
    const auto& kernel = *report.kernel;
    values["kernel"] = {{"file", kernel.file},
                        {"first_line", std::to_string(kernel.first_line)},
                        {"last_line", std::to_string(kernel.last_line)}};
    Json callees = Json::array();
    for (const auto& callee : kernel.callees)
      callees.push_back({{"name", callee.name},
                         {"file", callee.file},
                         {"first_line", std::to_string(callee.first_line)},
                         {"last_line", std::to_string(callee.last_line)}});
    values["many_callees"] = !callees.empty();
    values["callees"] = std::move(callees);
    Json parameters = Json::array();
    for (const auto& parameter : kernel.parameters)
      parameters.push_back({{"name", parameter.name},
                            {"type", parameter.type},
                            {"pointer", parameter.pointer && !parameter.is_const && !parameter.name.empty()}});
    values["parameters"] = std::move(parameters);
  }
  return values;
}

void copy_replayer(const fs::path& project, const EmitOptions& options) {
  const fs::path sources = options.data_folder / "replay-src";
  std::error_code error;
  if (!fs::is_directory(sources, error)) return;  // an installed kerncap-replay serves as well
  fs::copy(sources, project / "replay", fs::copy_options::recursive, error);
  if (error) fail(ExitCode::environment, "cannot write '{}': {}", (project / "replay").string(), error.message());
  // The folder's own CMakeLists.txt comes with the sources, under a name that does not disturb Kerncap's own build.
  const fs::path lists = project / "replay" / "replay" / "standalone" / "CMakeLists.txt";
  if (fs::exists(lists, error)) fs::rename(lists, project / "replay" / "CMakeLists.txt", error);
}

}  // namespace

Json kernel_json(const EmitReport& report) {
  Json document{{"schema", "kerncap.kernel/1"}, {"symbol", report.symbol}, {"demangled", report.demangled}};
  if (!report.kernel) return document;
  const auto& kernel = *report.kernel;
  document["file"] = kernel.file;
  document["first_line"] = kernel.first_line;
  document["last_line"] = kernel.last_line;
  document["original_file"] = kernel.original_file;
  if (!kernel.presumed_file.empty()) {
    document["presumed_file"] = kernel.presumed_file;
    document["presumed_line"] = kernel.presumed_line;
  }
  if (!kernel.macro.empty()) document["macro"] = kernel.macro;
  document["template_arguments"] = kernel.template_arguments;
  Json parameters = Json::array();
  for (const auto& parameter : kernel.parameters) {
    Json entry{{"index", parameter.index}, {"name", parameter.name}, {"type", parameter.type}};
    if (parameter.canonical != parameter.type) entry["canonical"] = parameter.canonical;
    if (!parameter.pointee.empty()) entry["pointee"] = parameter.pointee;
    if (!parameter.element.empty()) entry["element"] = parameter.element;
    entry["pointer"] = parameter.pointer;
    entry["const"] = parameter.is_const;
    entry["size"] = parameter.size;
    for (const auto& field : parameter.fields) {
      Json part{{"name", field.name}, {"offset", field.offset}, {"type", field.type}, {"pointer", field.pointer}};
      if (field.pointer) part["const"] = field.is_const;
      if (!field.pointee.empty()) part["pointee"] = field.pointee;
      if (!field.element.empty()) part["element"] = field.element;
      entry["fields"].push_back(std::move(part));
    }
    parameters.push_back(std::move(entry));
  }
  document["parameters"] = std::move(parameters);
  Json callees = Json::array();
  for (const auto& callee : kernel.callees)
    callees.push_back({{"name", callee.name},
                       {"file", callee.file},
                       {"first_line", callee.first_line},
                       {"last_line", callee.last_line}});
  document["callees"] = std::move(callees);
  return document;
}

void write_rebuild_files(const fs::path& project, const Templates& templates, const Rebuild& rebuild) {
  for (const auto& file : rebuild.tree.files) write_file(project / file.project_path, file.content);

  Json entries = Json::array();
  for (std::size_t i = 0; i < rebuild.tree.overlay.size(); ++i) {
    const auto& entry = rebuild.tree.overlay[i];
    entries.push_back({{"name", json_string(entry.name)},
                       {"content", json_string(std::string(source_placeholder) + "/" + entry.project_path)},
                       {"comma", i + 1 < rebuild.tree.overlay.size() ? "," : ""}});
  }
  write_file(project / "overlay/vfs.yaml.in", templates.render("vfs.yaml.in.mustache", {{"entries", entries}}));
  std::string files, folders;
  for (const auto& file : rebuild.tree.files) files += file.project_path + "\n";
  for (const auto& [folder, name] : rebuild.tree.folders) folders += folder + "\t" + name + "\n";
  write_file(project / "overlay/files.txt", files);
  write_file(project / "overlay/folders.txt", folders);

  for (const Step& step : all_steps(rebuild)) {
    std::string text;
    if (step.front_end)
      text =
          response_file_line("-ivfsoverlay") + response_file_line(std::string(build_placeholder) + "/device/vfs.yaml");
    for (const auto& argument : step.arguments) text += response_file_line(argument);
    write_file(project / "jobs" / (step.name + ".args.in"), text);
  }

  if (!rebuild.tree.main_file.empty() && !rebuild.jobs.steps.empty()) {
    const std::string file = std::string(source_placeholder) + "/" + rebuild.tree.main_file;
    std::vector<std::string> arguments{rebuild.jobs.steps.front().program};
    arguments.insert(arguments.end(), rebuild.language_options.begin(), rebuild.language_options.end());
    arguments.insert(arguments.end(),
                     {"-ivfsoverlay", std::string(build_placeholder) + "/device/vfs.yaml", "-fsyntax-only", file});
    const Json commands =
        Json::array({{{"directory", std::string(work_placeholder) + work_directory(rebuild.record->directory)},
                      {"file", file},
                      {"arguments", arguments}}});
    write_file(project / "overlay/compile_commands.json.in", support::dump_json(commands));
  }
}

void write_project_files(const fs::path& project, const Templates& templates, const snapshot::Manifest& manifest,
                         const EmitOptions& options, const Rebuild* rebuild, const EmitReport& report) {
  Json values = project_values(manifest, options, report);
  values["rebuild"] = rebuild != nullptr ? rebuild_values(*rebuild) : Json(false);
  if (report.runtime_compiled) {
    Json sources = Json::array();
    for (const auto& file : report.files) sources.push_back({{"path", file.project_path}});
    values["runtime_program"] = {{"sources", std::move(sources)}};
  }
  values["buildable"] = rebuild != nullptr || report.runtime_compiled;
  for (const char* name : {"CMakeLists.txt", "CMakePresets.json", "README.md", "kerncap.toml"})
    write_file(project / name, templates.render(std::string(name) + ".mustache", values));
  for (const char* name : {"cmake/KerncapProject.cmake", "cmake/SameCode.cmake", "cmake/Disassemble.cmake"})
    write_file(project / name, support::read_text_file(templates.folder() / name));
  write_file(project / "kernel.json", support::dump_json(kernel_json(report)));
  if (!fs::exists(project / "replay")) copy_replayer(project, options);
}

void write_disassembly(const fs::path& project, const Templates& templates, const snapshot::Dispatch& dispatch,
                       const fs::path& compiler, EmitReport& report) {
  const fs::path code_object = project / "snapshot/code" / (dispatch.code_object + ".hsaco");
  const auto listing = disassemble(code_object, report.symbol, compiler);
  if (!listing) {
    report.warnings.push_back("no llvm-objdump on this machine can disassemble " + report.target +
                              ": the project has no kernel.s");
    return;
  }
  const auto& kernel = dispatch.kernel;
  write_file(project / "kernel.s",
             templates.render("kernel.s.mustache", {{"demangled", report.demangled},
                                                    {"target", report.target},
                                                    {"vgprs", kernel.vgprs},
                                                    {"sgprs", kernel.sgprs},
                                                    {"agprs", kernel.agprs},
                                                    {"spills", kernel.sgpr_spills + kernel.vgpr_spills},
                                                    {"lds", kernel.group_segment_size},
                                                    {"scratch", kernel.private_segment_size},
                                                    {"listing", *listing}}));
}

void place_snapshot(const fs::path& project, const EmitOptions& options) {
  const fs::path target = project / "snapshot";
  if (options.placement != SnapshotPlacement::link) {
    const bool take = options.placement == SnapshotPlacement::take;
    return snapshot::place(options.snapshot, target, take ? snapshot::Transfer::take : snapshot::Transfer::copy);
  }
  std::error_code error;
  fs::create_directory_symlink(fs::canonical(options.snapshot), target, error);
  if (error) fail(ExitCode::environment, "cannot put the snapshot into '{}': {}", target.string(), error.message());
}

}  // namespace kerncap::emit
