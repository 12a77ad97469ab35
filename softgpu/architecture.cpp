#include "softgpu/architecture.h"

namespace kerncap::softgpu {
namespace {

// AMDGPU_FAMILY_* of <libdrm/amdgpu_drm.h>.
constexpr std::uint32_t family_ai = 141, family_nv = 143, family_gc_11_0_0 = 145;

// Counts and clocks from the product pages and from public KFD topology dumps of the cards named in the row.
// clang-format off
constexpr Architecture table[] = {
    // processor  name                        target  device  rev   family          CU  simd SE SA waves wave slots  clk   mclk  bus   L1  L2    sdma xgmi q  xcc ecc  asic
    {"gfx90a",  "AMD Instinct MI210",         90010, 0x740f, 0x02, family_ai,      104, 4,  8, 1,  8,   64,  32,   1700, 1600, 4096, 16, 8192,  2,   3,  8, 1, true,  1},
    {"gfx942",  "AMD Instinct MI300X",        90402, 0x74a1, 0x00, family_ai,      304, 4, 32, 1,  8,   64,  32,   2100, 1300, 8192, 32, 4096,  2,   6,  8, 8, true,  1},
    {"gfx908",  "AMD Instinct MI100",         90008, 0x738c, 0x01, family_ai,      120, 4,  8, 1, 10,   64,  32,   1502, 1200, 4096, 16, 8192,  2,   6,  8, 1, true,  2},
    {"gfx906",  "AMD Instinct MI50",          90006, 0x66a1, 0x02, family_ai,       60, 4,  4, 1, 10,   64,  32,   1725, 1000, 4096, 16, 4096,  2,   0,  8, 1, false, 1},
    {"gfx1030", "AMD Radeon RX 6800 XT",     100300, 0x73bf, 0xc1, family_nv,       72, 2,  4, 2, 16,   32,  32,   2575, 1000,  256, 16, 4096,  2,   0,  8, 1, false, 1},
    {"gfx1100", "AMD Radeon RX 7900 XTX",    110000, 0x744c, 0xc8, family_gc_11_0_0, 96, 2,  6, 2, 16,   32,  32,   2482, 1249,  384, 32, 6144,  2,   0,  8, 1, false, 1},
};
// clang-format on

}  // namespace

std::span<const Architecture> architectures() { return table; }

const Architecture* find_architecture(std::string_view processor) {
  for (const Architecture& row : table) {
    if (processor == row.processor) return &row;
  }
  return nullptr;
}

}  // namespace kerncap::softgpu
