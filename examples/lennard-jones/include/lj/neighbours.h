#pragma once

#include <vector>

#include "lj/system.h"

namespace lj {

// For each particle all others within `reach`, in ascending order. Found by cell lists.
std::vector<std::vector<int>> find_neighbours(const State& state, double reach);

}  // namespace lj
