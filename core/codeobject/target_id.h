// Target identifiers ("gfx90a:sramecc+:xnack-") in one spelling.
#pragma once

#include <string>
#include <string_view>

namespace kerncap::codeobject {

// What follows the triple of a bundle entry ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+" -> "gfx90a:xnack+"). Compilers
// spell it with one or two dashes before the processor and sometimes one behind it.
std::string target_of_entry(std::string_view entry_id);

// Features in alphabetical order, as the compiler's own canonical form has them.
std::string normalise_target(std::string_view target);

bool is_host_entry(std::string_view entry_id);

}  // namespace kerncap::codeobject
