// How fast the GPU's clock runs, where the driver tells: amdgpu's hwmon file freq1_input, in Hz ("Linux Kernel
// documentation", GPU Driver Developer's Guide, drm/amdgpu, "HWMON interfaces").
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace kerncap::replay {

// The file of a PCI device's folder in sysfs (/sys/bus/pci/devices/0000:c1:00.0); nullopt where there is none.
std::optional<std::filesystem::path> shader_clock_file(const std::filesystem::path& pci_device);

// "0000:c1:00.0" of HSA_AMD_AGENT_INFO_DOMAIN and HSA_AMD_AGENT_INFO_BDFID.
std::string pci_name(std::uint32_t domain, std::uint32_t bdf);

// Hz; nullopt when the file cannot be read or holds no positive number.
std::optional<double> read_clock(const std::filesystem::path& file);

}  // namespace kerncap::replay
