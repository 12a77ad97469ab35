// What kerncap-cc takes from kerncap.toml. Looked at only where the command line names no compiler.
#pragma once

#include <string>

namespace kerncap::wrapper {

// `compiler = "NAME or path"` of the nearest kerncap.toml from `folder` upwards; a relative path with a slash is
// relative to the file. Empty when there is none.
std::string compiler_of_settings(const std::string& folder);

}  // namespace kerncap::wrapper
