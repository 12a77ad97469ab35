// Formats of memory elements that buffers and images name: components of some bits, read as some kind of number.
#pragma once

#include <array>

#include "softgpu/isa/scalar_types.h"

namespace kerncap::softgpu::isa {

// GFX9's BUF_NUM_FORMAT numbers; srgb is IMG_NUM_FORMAT_SRGB.
enum class Numeric : u8 { unorm, snorm, uscaled, sscaled, uint, sint, reserved, floating, srgb };

struct ElementFormat {
  std::array<u8, 4> bits{};  // of the components x, y, z, w, from the lowest bit
                             // on; 0: not there
  Numeric numeric = Numeric::unorm;

  unsigned total_bits() const { return unsigned{bits[0]} + bits[1] + bits[2] + bits[3]; }
  unsigned bytes() const { return total_bits() / 8; }
};

// GFX9: a data format (bits 0-3 of the number) and a numeric format (bits 4-6).
ElementFormat gfx9_format(u32 number);
// RDNA: one number for both. Buffers of GFX10 and GFX11 number differently.
ElementFormat unified_format(u32 number, unsigned major);

// Component number `k` of an element as the bits of an f32 or of a 32-bit integer.
u32 decode_component(const std::byte* element, const ElementFormat& format, unsigned k);
// Puts a component into an element; the element's other bits stay.
void encode_component(std::byte* element, const ElementFormat& format, unsigned k, u32 value);

inline bool is_integer(Numeric numeric) { return numeric == Numeric::uint || numeric == Numeric::sint; }

}  // namespace kerncap::softgpu::isa
