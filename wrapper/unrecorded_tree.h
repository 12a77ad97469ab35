// For `kerncap build`: a build that succeeded and recorded nothing. What kind of tree is it, and what would record it?
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kerncap::wrapper {

struct UnrecordedTree {
  std::filesystem::path folder;  // with files that an import can read; empty when there is none
  bool goes_past_us = false;     // it was configured with compilers that do not lead to kerncap-cc
  std::string how_to_record;     // the exact commands where the tree tells them, else what to do in words
};

// `command`: the build that was run. `database`: its folder, which is in the tree unless the user chose another.
UnrecordedTree look_at_unrecorded_tree(const std::vector<std::string>& command, const std::filesystem::path& database,
                                       const std::filesystem::path& program_folder);

}  // namespace kerncap::wrapper
