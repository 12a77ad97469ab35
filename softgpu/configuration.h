// What the environment asks for. Read once, when the first file of ours is opened; docs/softgpu.md lists the variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "softgpu/architecture.h"

namespace kerncap::softgpu {

struct Configuration {
  std::vector<const Architecture*> devices;     // KERNCAP_SOFTGPU_ARCH, "gfx90a,gfx1030"; empty: the library is inert
  std::uint64_t vram = std::uint64_t{4} << 30;  // KERNCAP_SOFTGPU_VRAM, bytes per device
  std::string machine;                          // KERNCAP_SOFTGPU_MACHINE: whose processes share the device memory
  unsigned threads = 1;                         // KERNCAP_SOFTGPU_THREADS; 0 in the environment: one per core
  std::uint64_t seed = 0;                       // KERNCAP_SOFTGPU_SEED
  std::uint64_t poison = 0;                     // KERNCAP_SOFTGPU_POISON
  bool counter_clock = false;                   // KERNCAP_SOFTGPU_CLOCK=counters
  std::uint64_t patience = 0;                   // KERNCAP_SOFTGPU_PATIENCE, nanoseconds; see DispatchRequest
  bool large_bar = false;                       // KERNCAP_SOFTGPU_LARGE_BAR: device memory that the CPU can address
  bool shared_virtual_memory = false;           // KERNCAP_SOFTGPU_SVM: managed memory through the driver's SVM calls
  bool counters = false;                        // KERNCAP_SOFTGPU_COUNTERS: one JSON line per dispatch on stderr
  std::string problem;                          // why `devices` is empty although something was asked for
};

// From the given environment values (null: unset). Never fails: what cannot be understood becomes `problem`.
using EnvironmentLookup = const char* (*)(const char* name);
Configuration read_configuration(EnvironmentLookup lookup);

// "8G", "512M", "1073741824" -> bytes. False when it is neither.
bool parse_size(const std::string& text, std::uint64_t* bytes);

}  // namespace kerncap::softgpu
