// Proof that a project makes the captured code: configure it, build the kernel, compare SHA-256.
#pragma once

#include <filesystem>
#include <string>

#include "core/compdb/record.h"
#include "emit/emit.h"
#include "emit/project.h"

namespace kerncap::emit {

// Builds in a temporary folder; the project itself is only read. Never throws for a build that fails: that is an
// answer.
RebuildCheck check_rebuild(const std::filesystem::path& project, const Rebuild& rebuild, const std::string& digest);

}  // namespace kerncap::emit
