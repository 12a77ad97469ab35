// The tree of files that the amdgpu driver would show for a set of devices.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/configuration.h"
#include "softgpu/virtual_tree.h"

namespace kerncap::softgpu {

inline constexpr unsigned first_render_minor = 128;  // DRM render nodes start there

// The identity of device `index` in a configuration; stable across processes, as on one machine.
std::uint32_t gpu_id_of(unsigned index);

VirtualTree build_topology(const Configuration& configuration);

}  // namespace kerncap::softgpu
