// Edit, save, see: rebuilds a project's kernel on every save and says whether it is still right.
#pragma once

#include "replay/options.h"

namespace kerncap::replay {

// Runs until SIGINT, SIGTERM or SIGHUP and returns the exit code of the last answer: 0 valid, 1 not valid or not
// compiled, 3 or 4 when the machine or the project cannot do it. Throws Error{usage} for what is no project with
// sources.
int watch(const Options& options);

}  // namespace kerncap::replay
