#include "emit/kernel_finder.h"

#include <map>

#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/process.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;
using support::Json;

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Overlay and arguments as they would be in a build folder at `work`.
struct Request {
  std::string directory, main_file;
  Json mapping = Json::object();  // name for the compiler -> project path
  Json document;
};

Request request_for(const fs::path& project, const Rebuild& rebuild, const std::string& symbol, const fs::path& work) {
  Request request;
  const auto absolute = [&](const std::string& text) { return replaced(text, work_placeholder, work.string()); };
  request.directory = absolute(std::string(work_placeholder) + work_directory(rebuild.record->directory));
  Json files = Json::array();
  for (const auto& entry : rebuild.tree.overlay) {
    const std::string name = absolute(entry.name);
    files.push_back(
        {{"name", name}, {"content", (project / entry.project_path).string()}, {"label", entry.project_path}});
    if (entry.project_path == rebuild.tree.main_file && request.main_file.empty()) request.main_file = name;
  }
  request.document = {{"symbol", symbol},
                      {"directory", request.directory},
                      {"main_file", request.main_file},
                      {"options", rebuild.language_options},
                      {"name_expressions", rebuild.name_expressions},
                      {"files", files}};
  return request;
}

std::string text_at(const Json& object, const char* key) {
  return object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>() : std::string();
}

std::uint64_t number_at(const Json& object, const char* key) {
  return object.contains(key) && object.at(key).is_number_unsigned() ? object.at(key).get<std::uint64_t>() : 0;
}

bool flag_at(const Json& object, const char* key) {
  return object.contains(key) && object.at(key).is_boolean() && object.at(key).get<bool>();
}

KernelDefinition definition_from(const Json& answer) {
  KernelDefinition kernel;
  kernel.file = text_at(answer, "file");
  kernel.original_file = text_at(answer, "original_file");
  kernel.first_line = number_at(answer, "first_line");
  kernel.last_line = number_at(answer, "last_line");
  kernel.presumed_file = text_at(answer, "presumed_file");
  kernel.presumed_line = number_at(answer, "presumed_line");
  kernel.macro = text_at(answer, "macro");
  for (const auto& argument : support::array_member(answer, "template_arguments", "kernel finder"))
    if (argument.is_string()) kernel.template_arguments.push_back(argument.get<std::string>());
  for (const auto& entry : support::array_member(answer, "parameters", "kernel finder")) {
    Parameter parameter;
    parameter.index = static_cast<int>(number_at(entry, "index"));
    parameter.name = text_at(entry, "name");
    parameter.type = text_at(entry, "type");
    parameter.canonical = text_at(entry, "canonical");
    parameter.pointee = text_at(entry, "pointee");
    parameter.element = text_at(entry, "element");
    parameter.pointer = flag_at(entry, "pointer");
    parameter.is_const = flag_at(entry, "const");
    parameter.size = number_at(entry, "size");
    if (entry.contains("fields"))
      for (const auto& field : support::array_member(entry, "fields", "kernel finder"))
        parameter.fields.push_back({text_at(field, "name"), text_at(field, "type"), text_at(field, "pointee"),
                                    text_at(field, "element"), number_at(field, "offset"), flag_at(field, "pointer"),
                                    flag_at(field, "const")});
    kernel.parameters.push_back(std::move(parameter));
  }
  for (const auto& entry : support::array_member(answer, "callees", "kernel finder"))
    kernel.callees.push_back({text_at(entry, "name"), text_at(entry, "file"), number_at(entry, "first_line"),
                              number_at(entry, "last_line")});
  return kernel;
}

SliceProposal proposal_from(const Json& answer) {
  SliceProposal proposal;
  if (!answer.contains("slice")) {
    proposal.problem = "the kernel finder did not propose one";
    return proposal;
  }
  const Json& slice = answer.at("slice");
  proposal.problem = text_at(slice, "problem");
  if (!proposal.problem.empty()) return proposal;
  proposal.anchor = text_at(slice, "anchor");
  for (const auto& entry : support::array_member(slice, "edits", "kernel finder"))
    proposal.edits.push_back(
        {text_at(entry, "file"), number_at(entry, "begin"), number_at(entry, "end"), text_at(entry, "text")});
  return proposal;
}

}  // namespace

FinderAnswer find_kernel_definition(const fs::path& project, const Rebuild& rebuild, const std::string& symbol,
                                    const fs::path& helper_folder, bool propose_slice) {
  FinderAnswer answer;
  try {
    const fs::path program = helper_folder / "kerncap-find-kernel";
    if (std::error_code ignored; !fs::exists(program, ignored)) {
      answer.problem = "the helper '" + program.string() + "' is not installed";
      return answer;
    }
    const support::TemporaryFolder folder("kerncap-find");
    Request request = request_for(project, rebuild, symbol, folder.path());
    request.document["slice"] = propose_slice;
    fs::create_directories(request.directory);
    support::Command command;
    command.argv = {program.string()};
    command.standard_input = support::dump_json(request.document);
    command.standard_output = support::Stream::capture;
    command.standard_error = support::Stream::capture;
    command.timeout = std::chrono::minutes(5);
    const auto result = support::run(command);
    if (!result.succeeded()) {
      answer.problem = result.timed_out
                           ? "the kernel finder took more than 5 minutes"
                           : "the kernel finder ended with exit status " + std::to_string(result.exit_status);
      return answer;
    }
    const Json document = support::parse_json(result.standard_output, "the kernel finder's answer");
    if (const std::string problem = text_at(document, "problem"); !problem.empty())
      answer.problem = problem;
    else
      answer.kernel = definition_from(document);
    answer.slice.problem = answer.problem;
    if (propose_slice && answer.kernel) answer.slice = proposal_from(document);
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
  return answer;
}

}  // namespace kerncap::emit
