// Make-style dependency files, as compilers write them with -MD.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kerncap::compdb {

struct Dependencies {
  std::vector<std::string> targets;
  std::vector<std::string> files;    // in order, without repetitions; the main file first
  std::vector<std::string> modules;  // named C++ modules that were imported (g++ writes them as "NAME.c++m")
};

// Reads the first rule that has prerequisites (what -MP adds after it is for make only), and the modules among those of
// the later ones. Understands "\ " "\#" "$$",
// line continuations and ":" inside Windows-free paths. Never fails: a damaged file gives what could be read.
Dependencies parse_depfile(std::string_view text);

}  // namespace kerncap::compdb
