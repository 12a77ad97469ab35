// Which program a call of kerncap-cc stands for.
#pragma once

#include <string>
#include <vector>

namespace kerncap::wrapper {

struct Target {
  std::string program;  // what to run: an absolute path
  std::vector<std::string>
      command;                // its arguments, launchers such as ccache included; command[0] as the caller spelled it
  std::size_t compiler = 0;   // where in `command` the compiler itself stands
  std::string compiler_path;  // absolute; not one of ours
  std::string search_path;    // PATH without the folders in which the compilers are ours
  bool masquerading = false;  // PATH had such a folder
  std::string error;          // why there is none; then everything else is empty
};

// As launcher (`kerncap-cc [--] COMPILER ARGS`), as stand-in (`kerncap-cc ARGS`, the compiler named by
// --kerncap-compiler= in front, KERNCAP_CC_COMPILER or kerncap.toml, in this order) or by name (a link named `hipcc`:
// the next `hipcc` on PATH that isn't Kerncap's).
Target find_target(const std::vector<std::string>& argv);

}  // namespace kerncap::wrapper
