// Where the parts of Kerncap that are not in this program lie: relative to it, the same in a build tree and an
// installed prefix.
#pragma once

#include <filesystem>

namespace kerncap::cli {

struct Companions {
  std::filesystem::path programs;    // bin: kerncap-cc, kerncap-replay
  std::filesystem::path libraries;   // lib/kerncap: libkerncap-capture.so, libkerncap-softgpu.so
  std::filesystem::path masquerade;  // libexec/kerncap/masquerade
  std::filesystem::path data;        // share/kerncap: templates, replayer's sources
};
Companions companions();

// `path` when it is there; otherwise Error{environment}: the installation is incomplete.
std::filesystem::path require_companion(const std::filesystem::path& path);

}  // namespace kerncap::cli
