#include "replay/gpu_clock.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

namespace kerncap::replay {

namespace fs = std::filesystem;

std::optional<fs::path> shader_clock_file(const fs::path& pci_device) {
  std::error_code error;
  for (fs::directory_iterator it(pci_device / "hwmon", error), end; !error && it != end; it.increment(error)) {
    std::string label;
    std::ifstream(it->path() / "freq1_label") >> label;
    std::error_code ignored;
    // Old drivers have no label; the first frequency is the shader clock in all of them.
    if ((label.empty() || label == "sclk") && fs::exists(it->path() / "freq1_input", ignored))
      return it->path() / "freq1_input";
  }
  return std::nullopt;
}

std::string pci_name(std::uint32_t domain, std::uint32_t bdf) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bdf >> 8 & 0xff, bdf >> 3 & 0x1f, bdf & 7);
}

std::optional<double> read_clock(const fs::path& file) {
  double hertz = 0;
  std::ifstream stream(file);
  if (!(stream >> hertz) || !(hertz > 0)) return std::nullopt;
  return hertz;
}

}  // namespace kerncap::replay
