#include "replay/perturbation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kerncap::replay {
namespace {

// splitmix64's finaliser: every bit of the result depends on every bit of the input.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// 1 +- 1/64 .. 1/32, by the random bits.
double factor(std::uint64_t random) {
  const double size = 1.0 / 64 + static_cast<double>(random >> 40) / static_cast<double>(1 << 24) / 64;
  return (random & 1) != 0 ? 1 + size : 1 - size;
}

constexpr double in_place_of_zero = 1.0 / (1 << 10);

template <typename Float>
void scale(std::byte* bytes, std::uint64_t random) {
  Float value;
  std::memcpy(&value, bytes, sizeof value);
  if (!std::isfinite(value)) return;
  const auto changed = static_cast<Float>(value == 0 ? in_place_of_zero : value * factor(random));
  if (std::isfinite(changed)) std::memcpy(bytes, &changed, sizeof changed);
}

// 16-bit formats: a step of the last bits changes the value by about as much, and needs no conversion.
void scale_narrow(std::byte* bytes, std::uint64_t random, std::uint16_t exponent_mask, std::uint16_t step) {
  std::uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  const auto magnitude = static_cast<std::uint16_t>(bits & 0x7fff);
  if ((magnitude & exponent_mask) == exponent_mask) return;  // infinity, NaN
  auto changed = static_cast<std::uint16_t>(magnitude + ((random & 1) != 0 || magnitude <= step ? step : -step));
  if ((changed & exponent_mask) == exponent_mask) changed = static_cast<std::uint16_t>(magnitude - step);
  bits = static_cast<std::uint16_t>((bits & 0x8000) | changed);
  std::memcpy(bytes, &bits, sizeof bits);
}

}  // namespace

bool Perturbation::touches(std::uint64_t address, std::uint64_t size) const {
  return std::any_of(stretches.begin(), stretches.end(),
                     [&](const Stretch& s) { return s.address < address + size && address < s.address + s.size; });
}

void Perturbation::apply(std::uint64_t address, std::span<std::byte> bytes) const {
  const std::uint64_t end = address + bytes.size();
  for (const Stretch& stretch : stretches) {
    const std::uint64_t element = stretch.kind == Kind::flip_bytes ? 1 : size_of(stretch.element);
    const std::uint64_t first = std::max(stretch.address, (address + element - 1) / element * element);
    const std::uint64_t last = std::min(stretch.address + stretch.size, end);
    for (std::uint64_t at = first; at + element <= last; at += element) {
      std::byte* const target = bytes.data() + (at - address);
      if (stretch.kind == Kind::flip_bytes) {
        *target ^= std::byte{0x5a};
        continue;
      }
      const std::uint64_t random = mixed(seed ^ mixed(at));
      switch (stretch.element) {
        case ElementType::f64:
          scale<double>(target, random);
          break;
        case ElementType::f32:
          scale<float>(target, random);
          break;
        case ElementType::f16:
          scale_narrow(target, random, 0x7c00, 0x0018);
          break;  // 24 of 1024: 2.3 %
        case ElementType::bf16:
          scale_narrow(target, random, 0x7f80, 0x0003);
          break;  // 3 of 128: 2.3 %
        default:
          break;
      }
    }
  }
}

}  // namespace kerncap::replay
