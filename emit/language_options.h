// What decides how a source reads, out of an exact front-end job: include folders, macros, language, target.
// Driver-level spelling, so that another version of Clang (the kernel finder, clangd) understands it.
#pragma once

#include <string>
#include <vector>

namespace kerncap::emit {

// Without program, input and output. `cc1_arguments`: of a device pass, anything after "-cc1".
std::vector<std::string> language_options(const std::vector<std::string>& cc1_arguments, const std::string& target);

}  // namespace kerncap::emit
