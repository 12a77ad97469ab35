// The environment variables that steer compilers: what a record keeps of the environment.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kerncap::compdb {

// Those of `environment` ("NAME=VALUE", null-terminated) that change what a compiler does, in the order of the table.
std::vector<std::pair<std::string, std::string>> steering_variables(const char* const* environment);

}  // namespace kerncap::compdb
