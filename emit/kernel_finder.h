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

struct FinderAnswer {
  std::optional<KernelDefinition> kernel;
  std::string problem;  // why there is no definition
};

FinderAnswer find_kernel_definition(const std::filesystem::path& project, const Rebuild& rebuild,
                                    const std::string& symbol, const std::filesystem::path& helper_folder);

}  // namespace kerncap::emit
