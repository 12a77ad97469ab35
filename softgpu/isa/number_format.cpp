#include "softgpu/isa/number_format.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "softgpu/isa/float_rules.h"

namespace kerncap::softgpu::isa {
namespace {

// BUF_DATA_FORMAT by number (GFX9). Names count from the highest bit, components from the lowest.
constexpr std::array<std::array<u8, 4>, 16> data_formats{{{},
                                                          {8},
                                                          {16},
                                                          {8, 8},
                                                          {32},
                                                          {16, 16},
                                                          {11, 11, 10},
                                                          {10, 11, 11},
                                                          {2, 10, 10, 10},
                                                          {10, 10, 10, 2},
                                                          {8, 8, 8, 8},
                                                          {32, 32},
                                                          {16, 16, 16, 16},
                                                          {32, 32, 32},
                                                          {32, 32, 32, 32},
                                                          {}}};

// RDNA numbers data formats in this order, each with the numeric formats that it has.
struct Group {
  u8 data_format;
  const char* numerics;  // n unorm, N snorm, c uscaled, C sscaled, u uint, i
                         // sint, f float
};
constexpr Group gfx10_groups[] = {{1, "nNcCui"},  {2, "nNcCuif"},  {3, "nNcCui"}, {4, "uif"},    {5, "nNcCuif"},
                                  {6, "nNcCuif"}, {7, "nNcCuif"},  {8, "nNcCui"}, {9, "nNcCui"}, {10, "nNcCui"},
                                  {11, "uif"},    {12, "nNcCuif"}, {13, "uif"},   {14, "uif"}};
constexpr Group gfx11_groups[] = {{1, "nNcCui"}, {2, "nNcCuif"},  {3, "nNcCui"}, {4, "uif"},    {5, "nNcCuif"},
                                  {6, "f"},      {7, "f"},        {8, "nNui"},   {9, "nNcCui"}, {10, "nNcCui"},
                                  {11, "uif"},   {12, "nNcCuif"}, {13, "uif"},   {14, "uif"}};

Numeric numeric_of(char letter) {
  switch (letter) {
    case 'n':
      return Numeric::unorm;
    case 'N':
      return Numeric::snorm;
    case 'c':
      return Numeric::uscaled;
    case 'C':
      return Numeric::sscaled;
    case 'u':
      return Numeric::uint;
    case 'i':
      return Numeric::sint;
    default:
      return Numeric::floating;
  }
}

template <std::size_t count>
std::vector<ElementFormat> numbered(const Group (&groups)[count]) {
  std::vector<ElementFormat> formats(1);
  for (const Group& group : groups)
    for (const char* letter = group.numerics; *letter != '\0'; ++letter)
      formats.push_back({data_formats[group.data_format], numeric_of(*letter)});
  return formats;
}

u64 field(const std::byte* element, unsigned at, unsigned bits) {
  u64 value = 0;
  for (unsigned k = 0; k < bits; k += 8 - (at + k) % 8) {
    const unsigned position = at + k, here = 8 - position % 8;
    value |= (u64{static_cast<u8>(element[position / 8])} >> position % 8 & ((1u << here) - 1)) << k;
  }
  return bits == 64 ? value : value & ((u64{1} << bits) - 1);
}
void set_field(std::byte* element, unsigned at, unsigned bits, u32 value) {
  for (unsigned k = 0; k < bits; ++k) {
    const unsigned position = at + k;
    const unsigned bit = 1u << position % 8, old = static_cast<unsigned>(element[position / 8]);
    element[position / 8] = static_cast<std::byte>(value >> k & 1 ? old | bit : old & ~bit);
  }
}

// Unsigned floats of 10 and 11 bits: 5 bits of exponent, as in a half without sign and with fewer digits.
float small_unsigned_float(u32 bits, unsigned width) {
  return half_to_float({static_cast<u16>(bits << (width == 11 ? 4 : 5))});
}
u32 to_small_unsigned_float(float x, unsigned width) {
  if (x < 0) return 0;
  const u32 half_bits = float_to_half(x).bits & 0x7fffu;
  const unsigned shift = width == 11 ? 4 : 5;
  const bool is_nan = half_bits > 0x7c00u;
  return is_nan ? (0x7c00u >> shift) | 1u : std::min(half_bits >> shift, 0x7c00u >> shift);
}

float srgb_to_linear(float x) { return x <= 0.04045f ? x / 12.92f : std::pow((x + 0.055f) / 1.055f, 2.4f); }
float linear_to_srgb(float x) { return x <= 0.0031308f ? x * 12.92f : 1.055f * std::pow(x, 1 / 2.4f) - 0.055f; }

}  // namespace

ElementFormat gfx9_format(u32 number) { return {data_formats[number & 15], static_cast<Numeric>(number >> 4 & 7)}; }

ElementFormat unified_format(u32 number, unsigned major) {
  static const auto* gfx10 = new std::vector(numbered(gfx10_groups));
  static const auto* gfx11 = new std::vector(numbered(gfx11_groups));
  const auto& formats = major >= 11 ? *gfx11 : *gfx10;
  return number < formats.size() ? formats[number] : ElementFormat{};
}

u32 decode_component(const std::byte* element, const ElementFormat& format, unsigned k) {
  unsigned at = 0;
  for (unsigned before = 0; before < k; ++before) at += format.bits[before];
  const unsigned bits = format.bits[k];
  const auto raw = static_cast<u32>(field(element, at, bits));
  const i32 as_signed = static_cast<i32>(raw << (32 - bits)) >> (32 - bits);
  const auto as_bits = [](double x) { return std::bit_cast<u32>(static_cast<float>(x)); };
  switch (format.numeric) {
    case Numeric::unorm:
      return as_bits(raw / static_cast<double>((u64{1} << bits) - 1));
    case Numeric::srgb:
      if (k == 3) return as_bits(raw / static_cast<double>((u64{1} << bits) - 1));
      return std::bit_cast<u32>(srgb_to_linear(static_cast<float>(raw) / 255.0f));
    case Numeric::snorm:
      return as_bits(std::max(as_signed / static_cast<double>((u64{1} << (bits - 1)) - 1), -1.0));
    case Numeric::uscaled:
      return as_bits(raw);
    case Numeric::sscaled:
      return as_bits(as_signed);
    case Numeric::sint:
      return static_cast<u32>(as_signed);
    case Numeric::floating:
      if (bits == 32) return raw;
      return std::bit_cast<u32>(bits == 16 ? half_to_float({static_cast<u16>(raw)}) : small_unsigned_float(raw, bits));
    default:
      return raw;
  }
}

void encode_component(std::byte* element, const ElementFormat& format, unsigned k, u32 value) {
  unsigned at = 0;
  for (unsigned before = 0; before < k; ++before) at += format.bits[before];
  const unsigned bits = format.bits[k];
  float x = std::bit_cast<float>(value);
  const double most_unsigned = static_cast<double>((u64{1} << bits) - 1),
               most_signed = static_cast<double>((u64{1} << (bits - 1)) - 1);
  const auto to_signed = [](double d) { return static_cast<u32>(static_cast<i32>(static_cast<i64>(d))); };
  u32 raw = 0;
  switch (format.numeric) {
    case Numeric::srgb:
      if (k != 3) x = linear_to_srgb(x);
      [[fallthrough]];
    case Numeric::unorm:
      raw = std::isnan(x) ? 0 : static_cast<u32>(round_even(std::clamp<double>(x, 0, 1) * most_unsigned));
      break;
    case Numeric::snorm:
      raw = std::isnan(x) ? 0 : to_signed(round_even(std::clamp<double>(x, -1, 1) * most_signed));
      break;
    case Numeric::uscaled:
      raw = std::isnan(x) ? 0 : static_cast<u32>(std::clamp<double>(x, 0, most_unsigned));
      break;
    case Numeric::sscaled:
      raw = std::isnan(x) ? 0 : to_signed(std::clamp<double>(x, -most_signed - 1, most_signed));
      break;
    case Numeric::uint:
      raw = bits == 32 ? value : std::min(value, static_cast<u32>((u64{1} << bits) - 1));
      break;
    case Numeric::sint: {
      const auto low = -(i64{1} << (bits - 1)), high = (i64{1} << (bits - 1)) - 1;
      raw = static_cast<u32>(std::clamp<i64>(static_cast<i32>(value), low, high));
      break;
    }
    case Numeric::floating:
      raw = bits == 32 ? value : bits == 16 ? float_to_half(x).bits : to_small_unsigned_float(x, bits);
      break;
    default:
      raw = value;
  }
  set_field(element, at, bits, raw);
}

}  // namespace kerncap::softgpu::isa
