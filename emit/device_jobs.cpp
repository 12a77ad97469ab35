#include "emit/device_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "core/codeobject/target_id.h"

namespace kerncap::emit {
namespace {

using compdb::Job;
using compdb::Record;

enum class Treatment {
  drop,    // writes a report or a log that nobody asks of the rebuild
  refuse,  // reads something that the project does not carry
};

struct OptionRule {
  std::string_view option;  // "--x" alone, with a value in the next argument, or ending in '=' when the value is joined
  bool separate_value;
  Treatment treatment;
  std::string_view reason;  // of refuse
};

// Of cc1, cc1as and lld. clang/include/clang/Driver/Options.td, lld/ELF/Options.td. `-o` and the inputs are handled
// apart.
constexpr auto option_rules = std::to_array<OptionRule>({
    {"-dependency-file", true, Treatment::drop, ""},
    {"-MT", true, Treatment::drop, ""},
    {"-MQ", true, Treatment::drop, ""},
    {"-MF", true, Treatment::drop, ""},
    {"-MP", false, Treatment::drop, ""},
    {"-MG", false, Treatment::drop, ""},
    {"-MV", false, Treatment::drop, ""},
    {"-H", false, Treatment::drop, ""},
    {"-sys-header-deps", false, Treatment::drop, ""},
    {"-module-file-deps", false, Treatment::drop, ""},
    {"-header-include-file", true, Treatment::drop, ""},
    {"-header-include-format=", false, Treatment::drop, ""},
    {"-header-include-filtering=", false, Treatment::drop, ""},
    {"-dependency-dot", true, Treatment::drop, ""},
    {"-module-dependency-dir", true, Treatment::drop, ""},
    {"--show-includes", false, Treatment::drop, ""},
    {"-show-includes", false, Treatment::drop, ""},
    {"-diagnostic-log-file", true, Treatment::drop, ""},
    {"-serialize-diagnostic-file", true, Treatment::drop, ""},
    {"-opt-record-file", true, Treatment::drop, ""},
    {"-opt-record-passes", true, Treatment::drop, ""},
    {"-opt-record-format", true, Treatment::drop, ""},
    {"-stats-file=", false, Treatment::drop, ""},
    {"-stats-file-append", false, Treatment::drop, ""},
    {"-print-stats", false, Treatment::drop, ""},
    {"-stack-usage-file", true, Treatment::drop, ""},
    {"-ftime-trace", false, Treatment::drop, ""},
    {"-ftime-trace=", false, Treatment::drop, ""},
    {"-ftime-report", false, Treatment::drop, ""},
    {"-save-temps=", false, Treatment::drop, ""},
    {"-coverage-notes-file", true, Treatment::drop, ""},
    {"-coverage-notes-file=", false, Treatment::drop, ""},
    {"-fsystem-module", false, Treatment::drop, ""},
    {"--dependency-file=", false, Treatment::drop, ""},
    {"-Map", true, Treatment::drop, ""},
    {"-Map=", false, Treatment::drop, ""},
    {"--Map=", false, Treatment::drop, ""},
    {"--time-trace=", false, Treatment::drop, ""},
    {"--save-temps", false, Treatment::drop, ""},
    {"-plugin-opt=save-temps", false, Treatment::drop, ""},
    {"-include-pch", true, Treatment::refuse,
     "the device pass read a precompiled header, which the project does not carry"},
    {"-fmodule-file=", false, Treatment::refuse, "the device pass read a C++ module, which the project does not carry"},
    {"-fmodules-cache-path=", false, Treatment::refuse,
     "the device pass used Clang modules, which the project does not carry"},
    {"-load", true, Treatment::refuse, "the device pass loaded a compiler plugin"},
    {"-fpass-plugin=", false, Treatment::refuse, "the device pass loaded a compiler plugin"},
});

const OptionRule* rule_for(std::string_view argument) {
  for (const auto& rule : option_rules)
    if (argument == rule.option || (rule.option.ends_with('=') && argument.starts_with(rule.option))) return &rule;
  return nullptr;
}

std::string_view processor(std::string_view target) { return target.substr(0, target.find(':')); }

// The wrapper writes the processor alone where a job does not say its features.
bool same_target(std::string_view job, std::string_view wanted) {
  if (job == wanted) return true;
  return processor(job) == processor(wanted) && (job.find(':') == job.npos || wanted.find(':') == wanted.npos);
}

class Planner {
 public:
  // Adds the jobs of `record` that are about `target`; `prefix` keeps step names of several records apart.
  void add(const Record& record, std::string_view target, const std::string& prefix) {
    // An exact target wins: gfx90a:xnack+ and gfx90a:xnack- in one compile differ only there.
    const bool exact =
        std::any_of(record.jobs.begin(), record.jobs.end(), [&](const Job& job) { return job.target == target; });
    for (const Job& job : record.jobs) {
      if (job.argv.empty() || job.tool == Job::Tool::bundler) continue;
      if (exact ? job.target != target : !same_target(job.target, target)) continue;
      add_job(job, prefix, record.directory);
    }
  }

  // Names under which a link knows an output of ours (the pieces that a bundler took out of an object).
  void alias(const std::string& path, const std::string& step_output) { produced_[path] = step_output; }
  const std::map<std::string, std::string>& produced() const { return produced_; }

  DeviceJobs finish(const std::string& output) {
    if (result_.impossible.empty() && result_.steps.empty())
      result_.impossible = "the record has no compiler jobs for this architecture";
    if (!result_.steps.empty()) {
      Step& last = result_.steps.back();
      const std::string old = last.output;
      last.output = output;
      for (auto* list : {&last.arguments, &last.leading})
        for (auto& argument : *list)
          if (argument == in_build(old)) argument = in_build(output);
    }
    return std::move(result_);
  }

  DeviceJobs& result() { return result_; }
  void set_unit(std::size_t unit) { unit_ = unit; }

 private:
  static std::string in_build(const std::string& name) { return std::string(build_placeholder) + "/" + name; }

  void add_job(const Job& job, const std::string& prefix, const std::string& directory) {
    Step step;
    step.tool = job.tool;
    step.program = job.argv[0];
    step.directory = directory;
    step.unit = unit_;
    const bool compiles = job.tool == Job::Tool::cc1;
    step.name = fmt::format("{}{}-{}", prefix, result_.steps.size() + 1,
                            compiles                        ? "compile"
                            : job.tool == Job::Tool::linker ? "link"
                                                            : "assemble");
    const std::string extension = std::filesystem::path(job.output).extension().string();
    step.output = step.name + (extension.size() > 1 && extension.size() < 8 ? extension : ".out");
    std::size_t i = 1;
    // "-cc1", "-cc1as" and lld's flavour choose the tool before response files are read.
    if (i < job.argv.size() && job.argv[i].starts_with("-cc1")) step.leading.push_back(job.argv[i++]);
    if (i + 1 < job.argv.size() && job.argv[i] == "-flavor") {
      step.leading.insert(step.leading.end(), {job.argv[i], job.argv[i + 1]});
      i += 2;
    }
    for (; i < job.argv.size(); ++i) {
      const std::string& argument = job.argv[i];
      if (argument.find("@KERNCAP_") != std::string::npos)
        return refuse("an argument of the recorded job looks like a placeholder of ours");
      if (argument == "-o" && i + 1 < job.argv.size()) {
        step.arguments.insert(step.arguments.end(), {"-o", in_build(step.output)});
        ++i;
        continue;
      }
      if (const OptionRule* rule = rule_for(argument)) {
        if (rule->treatment == Treatment::refuse) return refuse(std::string(rule->reason));
        if (rule->separate_value) ++i;
        continue;
      }
      if (const auto found = produced_.find(argument); found != produced_.end()) {
        step.inputs.push_back(found->second);
        step.arguments.push_back(in_build(found->second));
        continue;
      }
      if (compiles && argument == "-x" && i + 2 < job.argv.size() && job.argv[i + 2] == "-")
        return refuse("the source came from standard input");
      step.arguments.push_back(argument);
    }
    step.front_end = compiles && step.inputs.empty();
    if (!job.output.empty()) produced_[job.output] = step.output;
    result_.steps.push_back(std::move(step));
  }

  void refuse(std::string reason) {
    if (result_.impossible.empty()) result_.impossible = std::move(reason);
  }

  DeviceJobs result_;
  std::size_t unit_ = 0;
  std::map<std::string, std::string> produced_;  // recorded output -> file name in the build folder
};

}  // namespace

DeviceJobs device_jobs(const Record& record, std::string_view target, const std::string& output,
                       const std::string& prefix) {
  Planner planner;
  planner.add(record, target, prefix);
  return planner.finish(output);
}

namespace {

// What a bundler job took out of objects for one target: `-targets=a,b -input=x.o -output=1 -output=2 -unbundle`.
struct Unbundling {
  std::string object;
  std::string piece;  // the output for our target
};

std::optional<Unbundling> unbundling_of(const Job& job, std::string_view target) {
  std::vector<std::string> targets, outputs;
  Unbundling result;
  bool unbundles = false;
  const auto value = [](const std::string& argument, std::string_view option) -> std::optional<std::string> {
    for (const std::string dashes : {"-", "--"})
      if (argument.starts_with(dashes + std::string(option) + "="))
        return argument.substr(dashes.size() + option.size() + 1);
    return std::nullopt;
  };
  for (const auto& argument : job.argv) {
    if (argument == "-unbundle" || argument == "--unbundle") unbundles = true;
    if (const auto list = value(argument, "targets")) {
      for (std::size_t start = 0; start <= list->size();) {
        const std::size_t end = std::min(list->find(',', start), list->size());
        targets.push_back(list->substr(start, end - start));
        start = end + 1;
      }
    }
    for (const char* option : {"input", "inputs"})
      if (const auto input = value(argument, option)) result.object = *input;
    for (const char* option : {"output", "outputs"})
      if (const auto output = value(argument, option)) outputs.push_back(*output);
  }
  if (!unbundles) return std::nullopt;
  for (std::size_t i = 0; i < targets.size() && i < outputs.size(); ++i)
    if (!codeobject::is_host_entry(targets[i]) && codeobject::target_of_entry(targets[i]) == target) {
      result.piece = outputs[i];
      return result;
    }
  return std::nullopt;
}

}  // namespace

DeviceJobs rdc_jobs(const Record& link, const std::vector<RdcUnit>& units, std::string_view target,
                    const std::string& output) {
  Planner planner;
  std::map<std::string, std::string> device_code;  // object, absolute -> output of its device pass
  for (std::size_t i = 0; i < units.size(); ++i) {
    const RdcUnit& unit = units[i];
    const std::size_t before = planner.result().steps.size();
    planner.set_unit(i);
    planner.add(*unit.record, target, unit.name);
    auto& steps = planner.result().steps;
    if (steps.size() > before) device_code[unit.record->output] = steps.back().output;
  }
  const auto absolute = [&](const std::string& path) {
    return (std::filesystem::path(link.directory) / path).lexically_normal().string();
  };
  std::set<std::string> pieces;  // of objects that nobody recorded
  for (const Job& job : link.jobs) {
    if (job.tool != Job::Tool::bundler) continue;
    const auto unbundled = unbundling_of(job, target);
    if (!unbundled) continue;
    if (const auto found = device_code.find(absolute(unbundled->object)); found != device_code.end())
      planner.alias(unbundled->piece, found->second);
    else
      pieces.insert(unbundled->piece);
  }
  for (const Job& job : link.jobs) {
    if (job.tool != Job::Tool::linker || !same_target(job.target, target)) continue;
    for (const auto& argument : job.argv)
      if (pieces.contains(argument)) {
        DeviceJobs result;
        result.impossible = "the device link took code out of an object that was not compiled under kerncap-cc";
        return result;
      }
  }
  const std::size_t compiled = planner.result().steps.size();
  planner.add(link, target, "");
  const auto& steps = planner.result().steps;
  if (planner.result().impossible.empty() && (steps.size() == compiled || steps.back().inputs.empty()))
    planner.result().impossible =
        "clang-linker-wrapper (new offload driver) compiled the linked device code inside itself, and does not tell "
        "how";
  return planner.finish(output);
}

std::string response_file_line(std::string_view argument) {
  std::string line = "\"";
  for (char c : argument) {
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  return line + "\"\n";
}

}  // namespace kerncap::emit
