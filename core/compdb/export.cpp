#include <algorithm>

#include "core/compdb/file_system.h"
#include "core/compdb/operations.h"
#include "core/support/file.h"
#include "core/support/json.h"

namespace kerncap::compdb {
namespace {

using support::Json;

// A device pass for tools that read driver commands: the driver's own way to ask for one architecture only.
std::vector<std::string> arguments_of_pass(const Record& record, const std::string& target) {
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < record.expanded_argv.size(); ++i) {
    const std::string& argument = record.expanded_argv[i];
    const bool chooses_target = argument.starts_with("--offload-arch=") || argument.starts_with("--cuda-gpu-arch=") ||
                                argument.starts_with("--amdgpu-target=");
    if (!chooses_target || target == "host") arguments.push_back(argument);
  }
  if (target == "host") {
    arguments.insert(arguments.begin() + 1, "--cuda-host-only");
  } else {
    arguments.insert(arguments.begin() + 1, {"--cuda-device-only", "--offload-arch=" + target});
  }
  return arguments;
}

// A tool that reads the command must take the file for the language that the compiler took it for: hipcc says so to
// clang, not to us.
void state_language(std::vector<std::string>& arguments, const Record& record) {
  const bool said = std::ranges::any_of(arguments, [](const std::string& a) { return a.starts_with("-x"); });
  const bool evident = (record.language == "hip" && record.source.ends_with(".hip")) ||
                       (record.language == "cuda" && record.source.ends_with(".cu"));
  if ((record.language == "hip" || record.language == "cuda") && !said && !evident) {
    arguments.insert(arguments.begin() + 1, {"-x", record.language});
  }
}

Json entry_of(const Record& record, std::vector<std::string> arguments) {
  state_language(arguments, record);
  // Tools look for headers and built-ins beside the compiler; a bare name would be looked up on their PATH.
  if (!record.compiler.path.empty()) arguments[0] = record.compiler.path;
  Json entry;
  entry["directory"] = record.directory;
  entry["arguments"] = arguments;
  entry["file"] = absolute_path(record.directory, record.source);
  if (!record.output.empty()) entry["output"] = record.output;
  return entry;
}

}  // namespace

std::uint64_t export_compile_commands(const std::filesystem::path& folder, const std::filesystem::path& file,
                                      const ExportOptions& options) {
  const Database database(folder);
  support::AtomicFile out(file, 0644);
  std::uint64_t entries = 0;
  const auto write = [&](const Json& entry) {  // one after the other: all of a large build are gigabytes in memory
    out.write(entries++ == 0 ? "[\n" : ",\n");
    std::string text = support::dump_json(entry);
    text.pop_back();  // the line end
    out.write(text);
  };
  database.visit([&](Record&& record) {
    if (record.kind != RecordKind::translation_unit || record.expanded_argv.empty() || record.source == "-") return;
    if (record.configure_check && !options.configure_checks) return;
    if (options.per_pass && record.passes.size() > 1) {
      for (const Pass& pass : record.passes) write(entry_of(record, arguments_of_pass(record, pass.target)));
    } else {
      write(entry_of(record, record.expanded_argv));
    }
  });
  out.write(entries == 0 ? "[]\n" : "\n]\n");
  out.commit();
  return entries;
}

}  // namespace kerncap::compdb
