// A project's sources cut down to what its kernel needs, when the compiler agrees that the kernel stays the same.
#pragma once

#include <filesystem>

#include "emit/emit.h"
#include "emit/kernel_finder.h"
#include "emit/project.h"
#include "emit/rebuild_check.h"

namespace kerncap::emit {

// Empties the proposed functions in src/ (the files as compiled go to whole/), builds, and compares the kernel's
// machine code with that of the whole translation unit, which `build` holds. Takes everything back unless the kernel is
// the same and the build was faster.
Slice slice_project(const std::filesystem::path& project, const Rebuild& rebuild, const SliceProposal& proposal,
                    RebuildFolder& build, const EmitReport& report);

}  // namespace kerncap::emit
