// Which compilation database a command means.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program.h"

namespace kerncap::cli {

// --db's value, else settings, else the nearest one upward from here. Throws Error{environment} when a named one does
// not exist, or when there is none at all.
std::filesystem::path required_database(const Program& program, const std::string& flag);

// For a captured kernel: the named one; otherwise the first database (upward from here, then upward from the
// application) that knows the code object; otherwise the first there is; empty when there is none.
std::filesystem::path database_for(const Program& program, const std::string& flag, std::string_view code_object,
                                   const std::vector<std::string>& application);

// For `kerncap build`: the named one; otherwise .kerncap in the build folder that the command names (cmake -B/--build,
// ninja -C, make -C), or in the working directory.
std::filesystem::path database_to_record(const Program& program, const std::string& flag,
                                         const std::vector<std::string>& command);

}  // namespace kerncap::cli
