// The GPUs that can be emulated: what the kernel driver reports about each of them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kerncap::softgpu {

// One row per processor. Units as in the KFD topology files: counts, KiB for LDS, bytes for caches, MHz for clocks.
struct Architecture {
  const char* processor;              // LLVM's name, "gfx90a"
  const char* marketing_name;         // for people; the runtime takes its own from libdrm's amdgpu.ids by device id
  std::uint32_t gfx_target_version;   // decimal major * 10000 + minor * 100 + stepping
  std::uint32_t device_id, revision;  // PCI ids that libdrm's amdgpu.ids and libhsakmt's tables know
  std::uint32_t family;               // AMDGPU_FAMILY_*, see <libdrm/amdgpu_drm.h>
  std::uint32_t compute_units, simd_per_cu, shader_engines, arrays_per_engine;
  std::uint32_t waves_per_simd, wave_size, scratch_slots_per_cu;
  std::uint32_t engine_clock, memory_clock, memory_bus_width;
  std::uint32_t l1_kib, l2_kib;
  std::uint32_t sdma_engines, xgmi_sdma_engines, sdma_queues_per_engine;
  std::uint32_t xccs;
  bool sram_ecc;
  std::uint32_t asic_revision;
};

std::span<const Architecture> architectures();
const Architecture* find_architecture(std::string_view processor);

}  // namespace kerncap::softgpu
