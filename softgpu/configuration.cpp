#include "softgpu/configuration.h"

#include <sched.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>

#include "softgpu/shared_usage.h"

namespace kerncap::softgpu {
namespace {

constexpr std::uint64_t smallest_vram = std::uint64_t{64} << 20;
constexpr unsigned most_devices = SharedUsage::most_devices, most_threads = 256;

std::uint64_t parse_number(const char* text, std::uint64_t fallback) {
  if (text == nullptr) return fallback;
  const std::string value = text;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc{} && end == value.data() + value.size() ? number : fallback;
}

unsigned cores_of_this_process() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

std::uint64_t physical_memory() {
  struct sysinfo info {};
  return sysinfo(&info) == 0 ? static_cast<std::uint64_t>(info.totalram) * info.mem_unit : ~std::uint64_t{0};
}

}  // namespace

bool parse_size(const std::string& text, std::uint64_t* bytes) {
  std::uint64_t number = 0;
  const char* last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || number == 0) return false;
  unsigned shift = 0;
  if (end != last) {
    constexpr std::string_view units = "KMGT";
    const std::size_t unit = units.find(static_cast<char>(*end & ~0x20));
    if (unit == std::string_view::npos) return false;
    shift = 10 * (static_cast<unsigned>(unit) + 1);
    ++end;
    if (std::string_view(end, static_cast<std::size_t>(last - end)) == "iB") end = last;
  }
  if (end != last || number > (~std::uint64_t{0} >> shift)) return false;
  *bytes = number << shift;
  return true;
}

Configuration read_configuration(EnvironmentLookup lookup) {
  Configuration result;
  const char* wanted = lookup("KERNCAP_SOFTGPU_ARCH");
  if (wanted == nullptr || *wanted == '\0') return result;

  const std::string list = wanted;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    const std::string name = list.substr(start, comma - start);
    start = comma + 1;
    if (name.empty()) continue;
    const Architecture* architecture = find_architecture(name);
    if (architecture == nullptr) {
      result.problem = "KERNCAP_SOFTGPU_ARCH names '" + name + "', which the software GPU does not know; it knows";
      for (const Architecture& row : architectures()) result.problem += std::string(" ") + row.processor;
      result.devices.clear();
      return result;
    }
    result.devices.push_back(architecture);
  }
  if (result.devices.size() > most_devices) result.devices.resize(most_devices);

  if (const char* size = lookup("KERNCAP_SOFTGPU_VRAM"); size != nullptr && *size != '\0') {
    if (!parse_size(size, &result.vram) || result.vram < smallest_vram) {
      result.problem =
          std::string("KERNCAP_SOFTGPU_VRAM is '") + size + "'; it must be a size of at least 64M, such as 8G";
      result.devices.clear();
      return result;
    }
    // Memory that the machine does not have would be granted now and missing when it is written.
    if (const std::uint64_t physical = physical_memory(); result.vram > physical) {
      result.problem = std::string("KERNCAP_SOFTGPU_VRAM is '") + size + "', but this machine has only " +
                       std::to_string(physical >> 20) + "M of memory";
      result.devices.clear();
      return result;
    }
    result.vram &= ~((std::uint64_t{1} << 21) - 1);
  }
  if (const char* machine = lookup("KERNCAP_SOFTGPU_MACHINE"); machine != nullptr) result.machine = machine;
  const unsigned cores = cores_of_this_process();
  result.seed = parse_number(lookup("KERNCAP_SOFTGPU_SEED"), 0);
  result.poison = parse_number(lookup("KERNCAP_SOFTGPU_POISON"), 0);
  const char* clock = lookup("KERNCAP_SOFTGPU_CLOCK");
  result.counter_clock = clock != nullptr && std::string(clock) == "counters";
  // An order can be reproduced only when one thread does everything.
  result.threads = static_cast<unsigned>(parse_number(lookup("KERNCAP_SOFTGPU_THREADS"), result.seed != 0 ? 1 : cores));
  if (result.threads == 0) result.threads = cores;
  result.threads = std::min(result.threads, most_threads);
  result.patience = parse_number(lookup("KERNCAP_SOFTGPU_PATIENCE"), 0) * 1'000'000'000;
  result.large_bar = parse_number(lookup("KERNCAP_SOFTGPU_LARGE_BAR"), 0) != 0;
  result.shared_virtual_memory = parse_number(lookup("KERNCAP_SOFTGPU_SVM"), 0) != 0;
  result.counters = parse_number(lookup("KERNCAP_SOFTGPU_COUNTERS"), 0) != 0;
  return result;
}

}  // namespace kerncap::softgpu
