// --softgpu[=ARCH]: the same on every command that runs GPU code.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/program.h"

namespace kerncap::cli {

using Environment = std::map<std::string, std::optional<std::string>>;

struct Devices {
  std::string softgpu;  // empty: the real devices; "auto"; or a list of architectures

  void add_flag(CLI::App& command);
};

// The environment that gives a child the chosen devices; empty for the real ones. `automatic` are the architectures
// that "auto" stands for. kerncap.toml's and KERNCAP_SOFTGPU's choice applies when the flag is absent and no real GPU
// is there.
Environment device_environment(const Devices& devices, const Settings& settings,
                               const std::vector<std::string>& automatic);

// "gfx90a,gfx1030" -> two names.
std::vector<std::string> split_list(const std::string& text);

}  // namespace kerncap::cli
