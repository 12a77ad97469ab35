#include "replay/perturbation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace kerncap::replay {
namespace {

template <typename T>
std::vector<T> perturbed(const Perturbation& p, std::uint64_t address, std::vector<T> values) {
  p.apply(address, std::as_writable_bytes(std::span(values)));
  return values;
}

Perturbation floats(std::uint64_t address, std::uint64_t size, ElementType type = ElementType::f32,
                    std::uint64_t seed = 1) {
  return {seed, {{address, size, type, Perturbation::Kind::scale_floats}}};
}

TEST(Perturbation, changes_every_finite_value_by_a_few_percent) {
  const std::vector<float> values{1, -2, 1e-20f, 3e30f};
  const auto changed = perturbed(floats(0x1000, 16), 0x1000, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double ratio = changed[i] / values[i];
    EXPECT_GT(std::abs(ratio - 1), 0.01) << i;
    EXPECT_LT(std::abs(ratio - 1), 0.04) << i;
  }
}

TEST(Perturbation, keeps_infinities_and_nan_and_moves_zero) {
  const auto infinity = std::numeric_limits<float>::infinity();
  const auto changed =
      perturbed<float>(floats(0, 16), 0, {infinity, std::nanf(""), 0, std::numeric_limits<float>::max()});
  EXPECT_EQ(changed[0], infinity);
  EXPECT_TRUE(std::isnan(changed[1]));
  EXPECT_GT(changed[2], 0);
  EXPECT_TRUE(std::isfinite(changed[3]));
}

TEST(Perturbation, is_the_same_however_memory_is_cut) {
  std::vector<float> whole(64, 7), pieces = whole;
  const auto p = floats(0x1010, 100);
  p.apply(0x1000, std::as_writable_bytes(std::span(whole)));
  for (std::size_t at = 0; at < 256; at += 8)
    p.apply(0x1000 + at, std::as_writable_bytes(std::span(pieces)).subspan(at, 8));
  EXPECT_EQ(whole, pieces);
  EXPECT_EQ(whole[3], 7);
  EXPECT_NE(whole[4], 7);
  EXPECT_NE(whole[28], 7);
  EXPECT_EQ(whole[29], 7);
}

TEST(Perturbation, depends_on_the_seed) {
  const std::vector<float> values(100, 1);
  EXPECT_NE(perturbed(floats(0, 400, ElementType::f32, 1), 0, values),
            perturbed(floats(0, 400, ElementType::f32, 2), 0, values));
}

TEST(Perturbation, narrow_formats_stay_finite_and_plausible) {
  for (const auto type : {ElementType::f16, ElementType::bf16}) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
      auto value = static_cast<std::uint16_t>(bits);
      const double before = element_value(type, reinterpret_cast<std::byte*>(&value));
      floats(0, 2, type, bits).apply(0, std::as_writable_bytes(std::span(&value, 1)));
      const double after = element_value(type, reinterpret_cast<std::byte*>(&value));
      if (!std::isfinite(before)) continue;
      ASSERT_TRUE(std::isfinite(after)) << bits;
      ASSERT_NE(before, after) << bits;
      if (std::abs(before) > 1e-3) {
        ASSERT_NEAR(after / before, 1, 0.05) << bits;
      }
    }
  }
}

TEST(Perturbation, flipping_changes_every_byte_of_the_stretch_only) {
  const Perturbation p{0, {{0x1001, 2, ElementType::bytes, Perturbation::Kind::flip_bytes}}};
  const auto changed = perturbed<std::uint8_t>(p, 0x1000, {1, 1, 1, 1});
  EXPECT_EQ(changed, (std::vector<std::uint8_t>{1, 0x5b, 0x5b, 1}));
  EXPECT_TRUE(p.touches(0x1002, 8));
  EXPECT_FALSE(p.touches(0x1003, 8));
}

}  // namespace
}  // namespace kerncap::replay
