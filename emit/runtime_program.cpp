#include "emit/runtime_program.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;
using support::Json;

constexpr std::uint64_t largest_text = std::uint64_t{256} << 20;

std::vector<std::string> texts(const Json& document, const char* key, const std::string& what) {
  std::vector<std::string> result;
  for (const auto& entry : support::array_member(document, key, what)) {
    if (!entry.is_string())
      support::fail(support::ExitCode::bad_input, "{}: '{}' holds something that is no text", what, key);
    result.push_back(entry.get<std::string>());
  }
  return result;
}

// Names are the application's free choice; files of a project have plain ones, each its own.
std::string file_name(const std::string& wanted, const std::string& otherwise, std::set<std::string>& taken) {
  std::string name;
  for (const auto& part : fs::path(wanted).lexically_normal().relative_path())
    if (part != ".." && part != ".") name += (name.empty() ? "" : "/") + part.string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::string_view("/._-+").find(c) == std::string_view::npos)
      c = '_';
  if (name.empty()) name = otherwise;
  const std::string plain = name;
  for (int i = 2; !taken.insert(name).second; ++i) name = plain + "." + std::to_string(i);
  return name;
}

bool names_a_target(const std::vector<std::string>& options) {
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return option.find("-offload-arch") != std::string::npos || option.find("-gpu-architecture") != std::string::npos ||
           option.starts_with("-arch");
  });
}

// A snapshot may be anybody's: what would make the compiler load code is refused.
bool loads_code(const std::string& option) {
  return option.find("plugin") != std::string::npos || option.find("-load") != std::string::npos;
}

// Entries of the job are lines.
bool fits_in_a_line(const std::string& text) { return text.find_first_of(std::string_view("\n\0", 2)) == text.npos; }

}  // namespace

std::optional<RuntimeProgram> runtime_program_of(const fs::path& snapshot, const std::string& digest,
                                                 const std::string& target) {
  const fs::path folder = snapshot / "runtime-compiled" / digest;
  const fs::path description = folder / "program.json";
  if (std::error_code ignored; !fs::is_regular_file(description, ignored)) return std::nullopt;
  const std::string what = description.string();
  const Json document = support::read_json_file(description);
  RuntimeProgram program;
  program.name = support::string_member(document, "name", what);
  program.library = support::string_member(document, "library", what);
  program.options = texts(document, "options", what);
  if (const auto loads = std::find_if(program.options.begin(), program.options.end(), loads_code);
      loads != program.options.end())
    support::fail(support::ExitCode::bad_input,
                  "the program in '{}' was compiled with '{}', which loads code into the compiler; remove that folder "
                  "from the snapshot to emit a project without sources",
                  what, *loads);
  program.name_expressions = texts(document, "name_expressions", what);
  program.source = support::read_text_file(folder / "source", largest_text);
  std::set<std::string> taken;
  program.project_path = "src/" + file_name(program.name, "program.hip", taken);
  const auto names = texts(document, "include_names", what);
  for (std::size_t i = 0; i < names.size(); ++i)
    program.headers.push_back({names[i],
                               support::read_text_file(folder / ("header." + std::to_string(i)), largest_text),
                               "src/" + file_name(names[i], "header.h", taken)});
  if (!names_a_target(program.options)) program.options.push_back("--offload-arch=" + target);
  return program;
}

void write_runtime_program(const fs::path& project, const Templates& templates, const RuntimeProgram& program) {
  const auto write = [&](const std::string& name, const std::string& text) {
    fs::create_directories((project / name).parent_path());
    support::write_file_atomically(project / name, text, 0644);
  };
  std::string job;
  const auto line = [&](const std::string& kind, const std::string& value) {
    if (!fits_in_a_line(value))
      support::fail(support::ExitCode::bad_input, "a {} of the program that was compiled at run time has several lines",
                    kind);
    job += kind + " " + value + "\n";
  };
  line("name", program.name);
  line("source", program.project_path);
  write(program.project_path, program.source);
  for (const auto& header : program.headers) {
    line("header", header.include_name + "\t" + header.project_path);
    write(header.project_path, header.content);
  }
  for (const auto& option : program.options) line("option", option);
  for (const auto& expression : program.name_expressions) line("name-expression", expression);
  line("library", program.library);
  write("jobs/hiprtc.txt", job);
  write("hiprtc/compile_program.cpp", support::read_text_file(templates.folder() / "hiprtc/compile_program.cpp"));
}

}  // namespace kerncap::emit
