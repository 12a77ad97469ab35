// The way out when our own part fails in a way that nothing can be done about (no memory, a text longer than a string
// can be): the compile must not suffer. The program is built without exceptions; what the C++ library would throw ends
// here instead.
#pragma once

namespace kerncap::wrapper {

// Before the compiler has started: run it in our place, unrecorded. `program` and the array live as long as the
// process.
void bail_out_into(const char* program, char* const* arguments);

// After it has ended: end as it did. `status` is what waitpid() gave.
void bail_out_with(int status);

[[noreturn]] void bail_out(const char* why);

}  // namespace kerncap::wrapper
