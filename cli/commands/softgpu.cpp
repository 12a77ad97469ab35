// kerncap softgpu: run any ROCm program on the software GPU.
#include "cli/captured_run.h"
#include "cli/companions.h"
#include "cli/program.h"
#include "core/support/process.h"
#include "softgpu/launch.h"

namespace kerncap::cli {

void add_softgpu(Program& program) {
  CLI::App& command =
      program.add("softgpu", "Run any ROCm program on the software GPU",
                  "  kerncap softgpu -- rocminfo\n  kerncap softgpu --arch gfx90a,gfx1030 --vram 8G -- ./app\n"
                  "The exit code is the program's own. Limits: docs/softgpu.md.\n");
  struct Options {
    std::string architectures = "gfx90a", vram;
    std::optional<unsigned> threads;
    std::optional<std::uint64_t> seed;
  };
  auto options = std::make_shared<Options>();
  command.add_option("--arch", options->architectures, "One architecture for each device")
      ->capture_default_str()
      ->type_name("ARCH,...");
  command.add_option("--vram", options->vram, "Device memory, e.g. 8G")->type_name("SIZE");
  command.add_option("--threads", options->threads, "Engine threads")->type_name("N");
  command.add_option("--seed", options->seed, "Scheduling order of workgroups and waves, to reproduce a race")
      ->type_name("N");
  program.run_with(command, [&program, options] {
    softgpu::LaunchOptions launch;
    launch.library_folder = companions().libraries;
    launch.processors = split_list(options->architectures);
    if (!options->vram.empty()) launch.vram = options->vram;
    launch.threads = options->threads;
    launch.seed = options->seed;
    support::Command child;
    child.argv = program.required_application("softgpu");
    child.environment = softgpu::launch_environment(launch);
    return static_cast<support::ExitCode>(support::run(child).exit_status);
  });
}

}  // namespace kerncap::cli
