// Sources that an application compiles while it runs (hipRTC), for the kernel that is captured.
#pragma once

#include <filesystem>

#include "cli/devices.h"
#include "core/support/file.h"

namespace kerncap::cli {

class RuntimeCompiled {
 public:
  // Has the application's hipRTC calls written down (capture/hiprtc_library.cpp).
  void add_to(Environment& environment) const;

  // Puts those that made a code object of the snapshot into SNAPSHOT/runtime-compiled/<digest>/. What is not there is
  // no error: most kernels come from a compiler.
  void keep(const std::filesystem::path& snapshot) const;

 private:
  support::TemporaryFolder folder_{"kerncap-hiprtc"};
};

}  // namespace kerncap::cli
