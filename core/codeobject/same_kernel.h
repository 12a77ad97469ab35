// Whether two relocatable AMD GPU objects hold the same machine code for one kernel, whatever else is in them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace kerncap::codeobject {

// Compares the kernel's descriptor, its code, and, through their relocations, everything defined that these reach:
// functions it calls, constants, variables. Empty when all of it is equal; else one sentence on the first difference.
// Throws support::Error{bad_input} for a damaged object and for one that is not relocatable.
std::string kernel_difference(std::span<const std::byte> one, std::span<const std::byte> other,
                              std::string_view kernel);

}  // namespace kerncap::codeobject
