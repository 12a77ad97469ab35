// The process that runs the kernel: restores the captured memory, dispatches, compares, and may die of it.
//
// Messages, one JSON object a line. From the worker: {"event": "phase", "text"}, "occupied", "error" (code, sentence),
// "ready" (agent, code_object, notes), "ran" (device_ns, host_ns, verdict when compared), "fault", "hang". To it:
// {"command": "run", "compare": "none"|"outputs"|"everything"|"record", "cold", "timeout_ms", "noise"}, {"command":
// "quit"}. A run on changed inputs has "trial" ("floats" or an argument's label), "seed" and "outcome" (a file: written
// by "record", read by the others) too; its answer is "nothing" where there is nothing to change.
#pragma once

#include "replay/options.h"

namespace kerncap::replay {

// Returns when told to quit; the process should then _exit(), because the runtime's tear-down has nothing left to save.
int run_worker(const Options& options);

}  // namespace kerncap::replay
