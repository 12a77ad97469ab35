// How a program is started on the software GPU. Needs nothing but the standard library.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kerncap::softgpu {

struct LaunchOptions {
  std::filesystem::path library_folder;           // where libkerncap-softgpu.so lies: <prefix>/lib/kerncap
  std::vector<std::string> processors{"gfx90a"};  // one per device
  std::optional<std::string> vram;                // "8G"; default: the library's own
  std::optional<unsigned> threads;
  std::optional<std::uint64_t> seed;
};

// Changes to the environment, in the form of support::Command::environment. Keeps what LD_PRELOAD holds already: ours
// comes first. Throws support::Error when the library is not there (environment) or a processor is unknown (usage).
std::map<std::string, std::optional<std::string>> launch_environment(const LaunchOptions& options);

// Why the software GPU cannot reach this program: a static executable or one with raised privileges ignores LD_PRELOAD.
// Nullopt for everything else, scripts and unreadable files included. `program` is a path.
std::optional<std::string> why_unreachable(const std::filesystem::path& program);

// Is there a real AMD GPU whose driver answers? Then nothing should be preloaded.
bool real_gpu_present();

}  // namespace kerncap::softgpu
