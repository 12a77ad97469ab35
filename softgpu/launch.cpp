#include "softgpu/launch.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

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

std::optional<std::string> why_unreachable(const std::filesystem::path& program) {
  struct stat status {};
  if (stat(program.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0 && geteuid() != status.st_uid) {
    return program.string() +
           " runs with raised privileges, so the loader ignores LD_PRELOAD; run a copy without the set-user-ID bit";
  }
  std::ifstream file(program, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return std::nullopt;
  }
  if (!file.seekg(static_cast<std::streamoff>(header.e_phoff))) return std::nullopt;
  for (unsigned index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr segment{};
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return std::nullopt;
    if (segment.p_type == PT_INTERP) return std::nullopt;
  }
  return program.string() + " is statically linked, so the software GPU cannot be loaded into it; link it dynamically";
}

bool real_gpu_present() {
  const int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  close(fd);
  std::error_code ignored;
  return std::filesystem::exists("/dev/dri/renderD128", ignored);
}

}  // namespace kerncap::softgpu
