// Asks the helper program (kerncap-find-kernel, LibTooling) where a kernel is defined. A process of its own: what
// another compiler's headers do to this Clang must never reach the tool itself.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "emit/emit.h"
#include "emit/project.h"

namespace kerncap::emit {

struct SliceEdit {
  std::string file;                // inside the project
  std::size_t begin = 0, end = 0;  // bytes
  std::string text;                // what takes their place
};

struct SliceProposal {
  std::vector<SliceEdit> edits;  // of each file in order, not overlapping
  std::string anchor;            // declaration for the end of the main file, may be empty
  std::string problem;           // why there is nothing to propose
};

struct FinderAnswer {
  std::optional<KernelDefinition> kernel;
  std::string problem;  // why there is no definition
  SliceProposal slice;  // when asked for
};

FinderAnswer find_kernel_definition(const std::filesystem::path& project, const Rebuild& rebuild,
                                    const std::string& symbol, const std::filesystem::path& helper_folder,
                                    bool propose_slice = false);

}  // namespace kerncap::emit
