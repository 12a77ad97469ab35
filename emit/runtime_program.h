// A kernel that the application compiled while it ran: what hipRTC was given, kept by the capture, as a project.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "emit/emit.h"
#include "emit/template_engine.h"

namespace kerncap::emit {

struct RuntimeHeader {
  std::string include_name, content, project_path;
};

struct RuntimeProgram {
  std::string name, source, project_path;  // project_path: of the source
  std::vector<RuntimeHeader> headers;
  std::vector<std::string> options, name_expressions;
  std::string library;  // that compiled it
};

// What SNAPSHOT/runtime-compiled/<digest>/ holds; nothing when the code object was not compiled at run time, or not
// while Kerncap watched. Throws support::Error{bad_input} when it is damaged. `target` is added to the options where
// these leave it to the device.
std::optional<RuntimeProgram> runtime_program_of(const std::filesystem::path& snapshot, const std::string& digest,
                                                 const std::string& target);

void write_runtime_program(const std::filesystem::path& project, const Templates& templates,
                           const RuntimeProgram& program);

}  // namespace kerncap::emit
