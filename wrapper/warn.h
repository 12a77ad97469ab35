// What kerncap-cc says for itself, on standard error.
#pragma once

#include <string>

namespace kerncap::wrapper {

void say(const std::string& message);

// At most once per build and database, however many compilers run: the first to create a marker file speaks.
void warn_once(const std::string& database, const std::string& message);

}  // namespace kerncap::wrapper
