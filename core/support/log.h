// Messages to people go to standard error through spdlog; standard output belongs to a command's result.
#pragma once

#include <spdlog/spdlog.h>

#include <string_view>

namespace kerncap::support {

// "kerncap: warning: ..." on standard error; colour only on a terminal and without NO_COLOR. Level from `verbosity`
// (0 warnings, 1 info, 2 debug) or KERNCAP_LOG (a spdlog level name). Call once, first thing in main().
void start_logging(std::string_view program, int verbosity);

bool colour_allowed(int fd);

}  // namespace kerncap::support
