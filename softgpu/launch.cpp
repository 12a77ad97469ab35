#include "softgpu/launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "core/support/error.h"
#include "softgpu/architecture.h"

namespace kerncap::softgpu {

std::map<std::string, std::optional<std::string>> launch_environment(const LaunchOptions& options) {
  const std::filesystem::path library = options.library_folder / "libkerncap-softgpu.so";
  std::error_code ignored;
  if (!std::filesystem::exists(library, ignored)) {
    support::fail(support::ExitCode::environment,
                  "the software GPU's library {} does not exist; build or install Kerncap with softgpu/",
                  library.string());
  }
  if (options.processors.empty())
    support::fail(support::ExitCode::usage, "the software GPU needs at least one architecture, such as gfx90a");
  std::string list;
  for (const std::string& processor : options.processors) {
    if (find_architecture(processor) == nullptr) {
      std::string known;
      for (const Architecture& row : architectures()) known += std::string(known.empty() ? "" : ", ") + row.processor;
      support::fail(support::ExitCode::usage, "the software GPU does not know the architecture '{}'; it knows {}",
                    processor, known);
    }
    list += (list.empty() ? "" : ",") + processor;
  }
  std::map<std::string, std::optional<std::string>> changes;
  const char* before = std::getenv("LD_PRELOAD");
  changes["LD_PRELOAD"] = before == nullptr || *before == '\0' ? library.string() : library.string() + ":" + before;
  changes["KERNCAP_SOFTGPU_ARCH"] = list;
  if (options.vram) changes["KERNCAP_SOFTGPU_VRAM"] = *options.vram;
  if (options.threads) changes["KERNCAP_SOFTGPU_THREADS"] = std::to_string(*options.threads);
  if (options.seed) changes["KERNCAP_SOFTGPU_SEED"] = std::to_string(*options.seed);
  return changes;
}

bool real_gpu_present() {
  const int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  close(fd);
  std::error_code ignored;
  return std::filesystem::exists("/dev/dri/renderD128", ignored);
}

}  // namespace kerncap::softgpu
