#include "cli/devices.h"

#include "cli/companions.h"
#include "softgpu/launch.h"

namespace kerncap::cli {

void Devices::add_flag(CLI::App& command) {
  command
      .add_option(
          "--softgpu", softgpu,
          "Use the software GPU; --softgpu=gfx90a,gfx1030 chooses its architectures (default: what the input needs)")
      ->type_name("[=ARCH,...]");
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    if (comma != 0) parts.emplace_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return parts;
}

Environment device_environment(const Devices& devices, const Settings& settings,
                               const std::vector<std::string>& automatic) {
  std::string choice = devices.softgpu;
  if (choice.empty() && settings.softgpu && !softgpu::real_gpu_present()) choice = *settings.softgpu;
  if (choice.empty()) return {};
  softgpu::LaunchOptions options;
  options.library_folder = companions().libraries;
  options.processors = choice == "auto" ? automatic : split_list(choice);
  return softgpu::launch_environment(options);
}

}  // namespace kerncap::cli
