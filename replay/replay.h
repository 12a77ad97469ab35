// Replaying from another program: starts kerncap-replay and reads its verdict. The caller's process is never the one
// that runs a kernel.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "replay/options.h"
#include "replay/verdict.h"

namespace kerncap::replay {

// Runs `program` (empty: kerncap-replay beside the caller's own executable) with these options and returns what it
// found out. `environment`: changes to the caller's, e.g. those that preload the software GPU. Throws Error when the
// program cannot be started, is told something wrong (usage) or answers no verdict.
Verdict run_replay(Options options, const std::filesystem::path& program = {},
                   const std::map<std::string, std::optional<std::string>>& environment = {});

}  // namespace kerncap::replay
