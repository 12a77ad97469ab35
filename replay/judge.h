// The judging process: asks workers to run kernels and makes one verdict of what they answer.
#pragma once

#include "replay/options.h"
#include "replay/verdict.h"

namespace kerncap::replay {

// Never throws for what a kernel or a snapshot does; throws Error{usage} for options that do not fit.
Verdict judge(const Options& options);

// The same with processes that may have served earlier questions. `options.code_object` is used as it is; a project's
// rebuilt one is not looked for.
class WorkerPool;
Verdict judge(const Options& options, WorkerPool& pool);

}  // namespace kerncap::replay
