#include "core/compdb/assemble.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "core/compdb/file_system.h"
#include "core/compdb/source_files.h"

namespace kerncap::compdb {
namespace {

constexpr std::uint64_t largest_hashed_output = 64U << 20;

struct ProgramTool {
  std::string_view name;
  Job::Tool tool;
};
constexpr auto program_tools = std::to_array<ProgramTool>({
    {"lld", Job::Tool::linker},
    {"ld", Job::Tool::linker},
    {"ld.lld", Job::Tool::linker},
    {"ld.gold", Job::Tool::linker},
    {"ld.bfd", Job::Tool::linker},
    {"ld.mold", Job::Tool::linker},
    {"mold", Job::Tool::linker},
    {"collect2", Job::Tool::linker},
    {"clang-linker-wrapper", Job::Tool::linker},
    {"clang-nvlink-wrapper", Job::Tool::linker},
    {"llvm-link", Job::Tool::linker},
    {"nvlink", Job::Tool::linker},
    {"clang-offload-bundler", Job::Tool::bundler},
    {"clang-offload-packager", Job::Tool::bundler},
    {"llvm-offload-binary", Job::Tool::bundler},
    {"fatbinary", Job::Tool::bundler},
    {"as", Job::Tool::assembler},
    {"llvm-mc", Job::Tool::assembler},
    {"ptxas", Job::Tool::assembler},
});

std::string program_name(const std::string& path) {
  std::string name = base_name(path);
  const std::size_t end = name.find_last_not_of("0123456789.");
  if (end != std::string::npos && end + 1 < name.size() && name[end] == '-') name.resize(end);
  return name;
}

const std::string* value_after(const std::vector<std::string>& argv, std::string_view option) {
  for (std::size_t i = 1; i + 1 < argv.size(); ++i) {
    if (argv[i] == option) return &argv[i + 1];
  }
  return nullptr;
}

bool has(const std::vector<std::string>& argv, std::string_view option) {
  return std::find(argv.begin(), argv.end(), option) != argv.end();
}

// "gfx90a" and the features that make it another target, in the order of a target id (sramecc before xnack).
std::string target_of_cc1(const std::vector<std::string>& argv) {
  const std::string* triple = value_after(argv, "-triple");
  if (triple == nullptr) return {};
  const bool amd = triple->starts_with("amdgcn"), nvidia = triple->starts_with("nvptx");
  if (triple->starts_with("spirv")) return "amdgcnspirv";
  if (!amd && !nvidia) return "host";
  const std::string* processor = value_after(argv, "-target-cpu");
  std::string target = processor != nullptr ? *processor : std::string();
  for (std::string_view feature : {"sramecc", "xnack"}) {
    char sign = 0;
    for (std::size_t i = 1; i + 1 < argv.size(); ++i) {
      const std::string& value = argv[i + 1];
      if (argv[i] == "-target-feature" && value.size() > 1 && value.substr(1) == feature) sign = value[0];
    }
    if (sign != 0) target += ":" + std::string(feature) + sign;
  }
  return target;
}

// Empty for a link of the host, also where it names a processor for LTO ("-plugin-opt=mcpu=x86-64").
std::string target_of_device_link(const std::vector<std::string>& argv) {
  std::string target;
  for (const std::string& argument : argv) {
    for (std::string_view option : {"-plugin-opt=mcpu=", "--plugin-opt=mcpu=", "-plugin-opt=-mcpu=", "-mcpu="}) {
      if (argument.starts_with(option)) target = argument.substr(option.size());
    }
  }
  if (!target.starts_with("gfx") && !target.starts_with("sm_")) return {};
  for (std::string_view feature : {"sramecc", "xnack"}) {
    for (const std::string& argument : argv) {
      const std::size_t list = argument.find("-mattr=");
      if (list == std::string::npos) continue;
      for (char sign : {'+', '-'}) {
        const std::size_t at = argument.find(sign + std::string(feature), list + 6);
        if (at != std::string::npos) target += ":" + std::string(feature) + sign;
      }
    }
  }
  return target;
}

// The main file of a front-end job: what follows "-x LANGUAGE"; drivers write it last.
std::string input_of_cc1(const std::vector<std::string>& argv, std::string* language) {
  for (std::size_t i = 1; i + 2 < argv.size(); ++i) {
    if (argv[i] != "-x") continue;
    if (language != nullptr) *language = argv[i + 1];
    return argv[i + 2];
  }
  return argv.empty() ? std::string() : argv.back();
}

// What a compile needs besides sources: the results of other compiles. clang's and gcc's options, driver and cc1 alike.
constexpr auto artefact_options = std::to_array<std::string_view>(
    {"-include-pch", "-fmodule-file=", "-fprebuilt-module-path=", "-fmodule-map-file=", "-fthinlto-index=",
     "-fprofile-use=", "-fprofile-instr-use=", "-fprofile-instrument-use-path=", "-fprofile-sample-use="});

void add_artefacts(const std::vector<std::string>& argv, std::vector<std::string>& paths) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    for (const std::string_view option : artefact_options) {
      if (!argv[i].starts_with(option)) continue;
      std::string_view value = std::string_view(argv[i]).substr(option.size());
      if (option == "-include-pch") {
        if (!value.empty() || i + 1 == argv.size()) continue;
        value = argv[++i];
      } else if (option == "-fmodule-file=") {
        value.remove_prefix(value.find('=') + 1);  // "NAME=FILE" since clang 16 and C++20's modules, else "FILE"
      }
      if (!value.empty()) paths.emplace_back(value);
      break;
    }
  }
}

bool is_preprocessing(const Job& job) { return job.tool == Job::Tool::cc1 && has(job.argv, "-E"); }

// How the jobs of one call hang together: an edge from the job that wrote a file to each later one that names it.
class JobGraph {
 public:
  explicit JobGraph(const std::vector<Job>& jobs) : consumers_(jobs.size()), producers_(jobs.size()) {
    std::unordered_map<std::string_view, std::size_t> produced;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      for (const std::string& argument : jobs[i].argv) connect(produced, i, argument);
      if (!jobs[i].output.empty() && jobs[i].output != "-") produced[jobs[i].output] = i;
    }
  }
  const std::set<std::size_t>& consumers(std::size_t job) const { return consumers_[job]; }
  const std::set<std::size_t>& producers(std::size_t job) const { return producers_[job]; }

 private:
  // "FILE", "-input=FILE", "--image=file=FILE,triple=..."
  void connect(const std::unordered_map<std::string_view, std::size_t>& produced, std::size_t job,
               std::string_view text) {
    if (const auto found = produced.find(text); found != produced.end() && found->second != job) {
      consumers_[found->second].insert(job);
      producers_[job].insert(found->second);
      return;
    }
    const std::size_t cut = text.find_first_of("=,");
    if (cut == std::string_view::npos) return;
    connect(produced, job, text.substr(0, cut));
    connect(produced, job, text.substr(cut + 1));
  }

  std::vector<std::set<std::size_t>> consumers_, producers_;
};

std::string language_of_cc1(std::string language) {
  // "c++-cpp-output", "hip-cpp-output": already preprocessed text of the same language.
  if (const std::size_t tail = language.find("-cpp-output"); tail != std::string::npos) language.resize(tail);
  return language == "cpp-output" ? "c" : language;
}

class Assembler {
 public:
  explicit Assembler(const FinishedCall& call) : call_(call) {
    for (const LoggedJob& logged : call.jobs) {
      if (logged.argv.empty()) continue;
      Job job = describe_job(logged.argv);
      // A compiler cache in between preprocesses first, to look the result up: no job of the compile.
      const bool for_cache =
          is_preprocessing(job) && call.line.action != Action::preprocess && !is_consumed_later(job, &logged);
      if (for_cache) continue;
      jobs_.push_back(std::move(job));
      headers_.push_back(&logged.headers);
    }
  }

  std::vector<Record> assemble() {
    if (jobs_.empty()) {
      from_arguments();
    } else {
      from_jobs();
    }
    for (Record& record : records_) finish(record);
    return std::move(records_);
  }

 private:
  bool is_consumed_later(const Job& job, const LoggedJob* logged) const {
    if (job.output.empty() || job.output == "-") return false;
    for (const LoggedJob* later = logged + 1; later < call_.jobs.data() + call_.jobs.size(); ++later) {
      if (has(later->argv, job.output)) return true;
    }
    return false;
  }

  Record start_record(RecordKind kind) const {
    Record record = call_.common;
    record.kind = kind;
    record.rdc = call_.line.rdc;
    record.new_driver = call_.line.new_driver;
    record.compressed = call_.line.compressed;
    record.lto = call_.line.lto;
    return record;
  }

  std::string absolute(std::string_view path) const { return absolute_path(call_.common.directory, path); }

  // An output as the record keeps it; empty for standard output and devices.
  std::string output_path(const std::string& spelled) const {
    return spelled.empty() || spelled == "-" || spelled.starts_with("/dev/") ? std::string() : absolute(spelled);
  }

  // --- a compiler that keeps no log, or a cache that answered in its place
  void from_arguments() {
    const CommandLine& line = call_.line;
    const bool links = line.action == Action::link;
    const std::string linked_output = links ? output_path(line.output.empty() ? "a.out" : line.output) : std::string();
    for (const SourceArgument& source : line.sources) {
      Record record = start_record(RecordKind::translation_unit);
      record.source = source.path;
      record.language = source.language;
      record.linked = links;
      record.device_targets = line.device_targets;
      record.cached = call_.jobs_expected && call_.common.exit_status == 0;
      const bool named = !line.output.empty() && line.sources.size() == 1;
      record.output = links ? linked_output
                            : output_path(named ? line.output : default_output(line, source, record.compiler.family));
      if (line.action == Action::syntax_only) record.output.clear();
      add_files_of_depfile(record);
      records_.push_back(std::move(record));
    }
    if (links) {
      Record record = start_record(RecordKind::link);
      record.output = linked_output;
      for (const std::string& input : line.link_inputs) record.inputs.push_back(absolute(input));
      records_.push_back(std::move(record));
    }
  }

  void add_files_of_depfile(Record& record) {
    SystemFolders system;
    system.add_from_arguments(record.expanded_argv, record.directory);
    for (const char* folder : {"/usr/include", "/usr/lib", "/usr/local/include", "/usr/local/cuda"}) {
      system.add_toolchain_folder(folder);
    }
    SourceFileTable table(record.directory, system);
    Pass pass;
    pass.target = record.device_targets.empty() ? "host" : "";
    std::uint32_t index = 0;
    if (record.source != "-" && table.add(record.source, index)) pass.files.push_back(index);
    // A depfile of a call with several sources describes the last of them only.
    if (call_.line.sources.size() == 1) {
      for (const std::string& file : call_.dependencies) {
        if (table.add(file, index) && std::ranges::find(pass.files, index) == pass.files.end())
          pass.files.push_back(index);
      }
    }
    table.hash_contents();
    record.files = table.take();
    if (!pass.files.empty()) record.passes.push_back(std::move(pass));
  }

  // --- a driver that logged its jobs
  void from_jobs() {
    const JobGraph graph(jobs_);
    // Front-end jobs by the source they start from; one call may compile several.
    std::vector<std::pair<std::string, std::vector<std::size_t>>> sources;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if ((jobs_[i].tool != Job::Tool::cc1 && !assembles_source(jobs_[i])) || !graph.producers(i).empty()) {
        // A host pass consumes the device code and starts from the source all the same.
        const bool front_end = jobs_[i].tool == Job::Tool::cc1 && starts_from_source(graph, i);
        if (!front_end) continue;
      }
      const std::string source = source_of(jobs_[i]);
      const auto known = std::ranges::find(sources, source, &decltype(sources)::value_type::first);
      if (known == sources.end()) {
        sources.push_back({source, {i}});
      } else {
        known->second.push_back(i);
      }
    }
    std::vector<std::set<std::size_t>> reachable;
    std::vector<unsigned> reached_by(jobs_.size(), 0);
    for (const auto& [source, starts] : sources) {
      std::set<std::size_t>& jobs = reachable.emplace_back();
      for (std::size_t start : starts) reach(graph, start, jobs);
      for (std::size_t job : jobs) ++reached_by[job];
    }
    const std::size_t final_link = find_final_link(graph);
    std::vector<bool> taken(jobs_.size(), false);
    for (std::size_t s = 0; s < sources.size(); ++s) {
      std::set<std::size_t>& jobs = reachable[s];
      std::erase_if(jobs, [&](std::size_t job) { return job == final_link || reached_by[job] > 1; });
      add_producers(graph, jobs, reached_by);
      for (std::size_t job : jobs) taken[job] = true;
      add_translation_unit(graph, sources[s].first, sources[s].second, jobs, final_link);
    }
    if (final_link < jobs_.size()) add_link(final_link, taken);
  }

  bool starts_from_source(const JobGraph& graph, std::size_t job) const {
    const std::string input = input_of_cc1(jobs_[job].argv, nullptr);
    return std::ranges::none_of(graph.producers(job), [&](std::size_t p) { return jobs_[p].output == input; });
  }

  // Not the assembler by which a device link wraps its result ("llvm-mc ... --filetype=obj").
  static bool assembles_source(const Job& job) {
    return job.tool == Job::Tool::assembler && !job.argv.back().starts_with('-') &&
           program_name(job.argv[0]) != "llvm-mc";
  }

  static std::string source_of(const Job& job) {
    return job.tool == Job::Tool::cc1 ? input_of_cc1(job.argv, nullptr) : job.argv.back();
  }

  static void reach(const JobGraph& graph, std::size_t from, std::set<std::size_t>& reached) {
    if (!reached.insert(from).second) return;
    for (std::size_t next : graph.consumers(from)) reach(graph, next, reached);
  }

  // Helpers that start from no source, such as unbundling a device library for this unit's device link.
  static void add_producers(const JobGraph& graph, std::set<std::size_t>& jobs,
                            const std::vector<unsigned>& reached_by) {
    std::vector<std::size_t> pending(jobs.begin(), jobs.end());
    while (!pending.empty()) {
      const std::size_t job = pending.back();
      pending.pop_back();
      for (std::size_t producer : graph.producers(job)) {
        if (reached_by[producer] <= 1 && jobs.insert(producer).second) pending.push_back(producer);
      }
    }
  }

  // The host link: a linker nobody consumes, in a call that links.
  std::size_t find_final_link(const JobGraph& graph) const {
    if (call_.line.action != Action::link) return jobs_.size();
    for (std::size_t i = jobs_.size(); i-- > 0;) {
      if (jobs_[i].tool == Job::Tool::linker && graph.consumers(i).empty() && !is_device_link(jobs_[i])) return i;
    }
    return jobs_.size();
  }
  static bool is_device_link(const Job& job) { return job.target != "host" && !job.target.empty(); }

  void add_translation_unit(const JobGraph& graph, const std::string& source, const std::vector<std::size_t>& starts,
                            const std::set<std::size_t>& jobs, std::size_t final_link) {
    Record record = start_record(RecordKind::translation_unit);
    record.source = source;
    SystemFolders system;
    std::string last_output;
    for (std::size_t i : jobs) {
      const Job& job = jobs_[i];
      if (job.tool == Job::Tool::cc1) system.add_from_arguments(job.argv, record.directory);
      const bool for_final_link = graph.consumers(i).contains(final_link);
      const bool leaves = std::ranges::none_of(graph.consumers(i), [&](std::size_t c) { return jobs.contains(c); });
      if (for_final_link) record.linked = true;
      if (leaves && !job.output.empty()) last_output = job.output;
      if (job.tool == Job::Tool::bundler && program_name(job.argv[0]) == "clang-offload-packager")
        record.new_driver = true;
      if (has(job.argv, "-compress")) record.compressed = true;
      if (has(job.argv, "-fgpu-rdc")) record.rdc = true;
      record.jobs.push_back(job);
    }
    if (final_link < jobs_.size() && !record.linked) {
      // Consumed by way of a joint device link, or the link was never reached because something failed.
      record.linked = true;
    }
    record.output = output_path(record.linked && final_link < jobs_.size() ? jobs_[final_link].output : last_output);
    if (call_.line.action == Action::syntax_only) record.output.clear();

    SourceFileTable table(record.directory, system);
    for (std::size_t i : starts) {
      std::string language;
      Pass pass;
      pass.target = jobs_[i].target;
      std::uint32_t index = 0;
      if (source != "-" && table.add(source, index)) pass.files.push_back(index);
      add_headers(table, *headers_[i], pass.files);
      if (jobs_[i].tool == Job::Tool::cc1) input_of_cc1(jobs_[i].argv, &language);
      if (record.language.empty()) record.language = language.empty() ? "assembler" : language_of_cc1(language);
      if (pass.target != "host" && !pass.target.empty() &&
          std::ranges::find(record.device_targets, pass.target) == record.device_targets.end()) {
        record.device_targets.push_back(pass.target);
      }
      record.passes.push_back(std::move(pass));
    }
    if (call_.passes_interleaved) share_files(record.passes);
    if (!call_.line.user_headers_only && call_.line.writes_dependencies && headers_are_empty(starts)) {
      for (const std::string& file : call_.dependencies) {
        std::uint32_t index = 0;
        for (Pass& pass : record.passes) {
          if (table.add(file, index) && std::ranges::find(pass.files, index) == pass.files.end())
            pass.files.push_back(index);
        }
      }
    }
    table.hash_contents();
    record.files = table.take();
    records_.push_back(std::move(record));
  }

  bool headers_are_empty(const std::vector<std::size_t>& starts) const {
    return std::ranges::all_of(starts, [&](std::size_t i) { return headers_[i]->empty(); });
  }

  // clang writes names as in a string literal: a backslash, a quote and a newline are escaped (Lexer::Stringify).
  static std::string unescaped(std::string_view line) {
    std::string name;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool escaped = line[i] == '\\' && i + 1 < line.size();
      if (escaped) ++i;
      name.push_back(escaped && line[i] == 'n' ? '\n' : line[i]);
    }
    return name;
  }

  static void add_headers(SourceFileTable& table, const std::vector<std::string>& headers,
                          std::vector<std::uint32_t>& files) {
    std::set<std::uint32_t> seen(files.begin(), files.end());
    for (const std::string& line : headers) {
      std::uint32_t index = 0;
      const bool found = line.find('\\') != std::string::npos
                             ? table.add(unescaped(line), index) || table.add(line, index)
                             : table.add(line, index);
      if (found && seen.insert(index).second) files.push_back(index);
    }
  }

  static void share_files(std::vector<Pass>& passes) {
    std::vector<std::uint32_t> all;
    for (const Pass& pass : passes) {
      for (std::uint32_t file : pass.files) {
        if (std::ranges::find(all, file) == all.end()) all.push_back(file);
      }
    }
    for (Pass& pass : passes) pass.files = all;
  }

  void add_link(std::size_t final_link, const std::vector<bool>& taken) {
    Record record = start_record(RecordKind::link);
    record.output = output_path(jobs_[final_link].output);
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (!taken[i]) record.jobs.push_back(jobs_[i]);
    }
    for (const std::string& input : call_.line.link_inputs) record.inputs.push_back(absolute(input));
    record.device_targets = call_.line.device_targets;
    records_.push_back(std::move(record));
  }

  // The artefacts that a unit depends on are its inputs, as objects are those of a link.
  void add_inputs_of_unit(Record& record) const {
    std::vector<std::string> paths;
    add_artefacts(record.expanded_argv, paths);
    for (const Job& job : record.jobs) {
      if (job.tool == Job::Tool::cc1) add_artefacts(job.argv, paths);
    }
    if (record.compiler.family == "gcc") {
      // g++ 11 and later keep compiled modules there unless a mapper says otherwise (gcc's manual, "C++ Modules").
      for (const std::string& name : call_.dependencies_on_modules) paths.push_back("gcm.cache/" + name + ".gcm");
      for (std::size_t i = 1; i + 1 < record.expanded_argv.size(); ++i) {
        if (record.expanded_argv[i] == "-include") paths.push_back(record.expanded_argv[i + 1] + ".gch");
      }
      std::erase_if(paths, [&](const std::string& path) { return !identify(absolute(path)).exists; });
    }
    for (const std::string& path : paths) {
      std::string input = absolute(path);
      if (std::ranges::find(record.inputs, input) == record.inputs.end()) record.inputs.push_back(std::move(input));
    }
  }

  void finish(Record& record) {
    if (record.kind == RecordKind::translation_unit) add_inputs_of_unit(record);
    if (record.source == "-") {
      record.replayable = false;
      record.not_replayable_reason = "the source came from standard input and was not kept";
    }
    if (record.exit_status == 0) identify_output(record);
  }

  const FinishedCall& call_;
  std::vector<Job> jobs_;
  std::vector<const std::vector<std::string>*> headers_;  // beside jobs_
  std::vector<Record> records_;
};

}  // namespace

Job describe_job(std::vector<std::string> argv) {
  Job job;
  job.argv = std::move(argv);
  if (job.argv.empty()) return job;
  if (has(job.argv, "-cc1")) {
    job.tool = Job::Tool::cc1;
    job.target = target_of_cc1(job.argv);
  } else if (has(job.argv, "-cc1as")) {
    job.tool = Job::Tool::assembler;
    job.target = target_of_cc1(job.argv);
  } else {
    const std::string name = program_name(job.argv[0]);
    for (const ProgramTool& entry : program_tools) {
      if (entry.name == name) job.tool = entry.tool;
    }
    if (job.tool == Job::Tool::linker) job.target = target_of_device_link(job.argv);
  }
  if (const std::string* output = value_after(job.argv, "-o")) job.output = *output;
  for (std::size_t i = 1; i < job.argv.size(); ++i) {
    for (std::string_view option : {"-output=", "--output=", "-outputs="}) {
      if (job.argv[i].starts_with(option)) job.output = job.argv[i].substr(option.size());
    }
  }
  return job;
}

void identify_output(Record& record) {
  if (record.output.empty()) return;
  const FileIdentity output = identify(record.output);
  if (!output.regular) return;
  record.output_size = output.size;
  record.output_mtime = output.mtime;
  std::string content;
  if (record.kind == RecordKind::translation_unit && !record.linked &&
      read_file(record.output, largest_hashed_output, content)) {
    record.output_hash = hash_bytes(content);
  }
}

std::vector<Record> assemble_records(const FinishedCall& call) { return Assembler(call).assemble(); }

}  // namespace kerncap::compdb
