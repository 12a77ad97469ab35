#include "replay/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kerncap::replay {
namespace {

template <typename T>
Statistics compared(ElementType type, std::vector<T> expected, std::vector<T> actual, Tolerance tolerance = {}) {
  Statistics result;
  compare(type, tolerance, std::as_bytes(std::span(expected)), std::as_bytes(std::span(actual)), 0, result);
  return result;
}

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Compare, equal_memory_has_no_differences) {
  const Statistics s = compared<float>(ElementType::f32, {1, 2, nan_value}, {1, 2, nan_value});
  EXPECT_EQ(s.elements, 3u);
  EXPECT_EQ(s.differing, 0u);
  EXPECT_EQ(s.outside, 0u);
}

TEST(Compare, is_exact_without_a_tolerance) {
  const Statistics s = compared<float>(ElementType::f32, {1, 2, 3}, {1, std::nextafter(2.f, 3.f), 3});
  EXPECT_EQ(s.differing, 1u);
  EXPECT_EQ(s.outside, 1u);
  EXPECT_EQ(s.max_ulps, 1u);
  ASSERT_TRUE(s.first);
  EXPECT_EQ(s.first->offset, 4u);
  EXPECT_EQ(s.first->expected, "2");
}

TEST(Compare, any_of_the_limits_lets_an_element_pass) {
  const std::vector<float> want{100, 1e-6f}, got{100.5f, 2e-6f};
  EXPECT_EQ(compared(ElementType::f32, want, got, {.absolute = 0.6}).outside, 0u);
  EXPECT_EQ(compared(ElementType::f32, want, got, {.absolute = 1e-5}).outside, 1u);
  EXPECT_EQ(compared(ElementType::f32, want, got, {.absolute = 1e-5, .relative = 0.01}).outside, 0u);
  EXPECT_EQ(compared<float>(ElementType::f32, {1}, {std::nextafter(1.f, 2.f)}, {.ulps = 1}).outside, 0u);
}

TEST(Compare, tolerances_never_touch_integers) {
  const Statistics s =
      compared<std::int32_t>(ElementType::i32, {7}, {8}, {.absolute = 100, .relative = 1, .ulps = 100});
  EXPECT_EQ(s.outside, 1u);
  EXPECT_EQ(s.max_absolute, 1.0);
}

TEST(Compare, an_unexpected_nan_never_passes) {
  const Tolerance wide{.absolute = 1e30, .relative = 1e30, .ulps = std::numeric_limits<std::uint64_t>::max()};
  const Statistics s = compared<float>(ElementType::f32, {1}, {nan_value}, wide);
  EXPECT_EQ(s.outside, 1u);
  EXPECT_EQ(s.nans, 1u);
  EXPECT_EQ(compared<float>(ElementType::f32, {nan_value}, {1}, wide).outside, 1u);
}

TEST(Compare, nan_policies_differ_where_both_are_nan) {
  const std::vector<std::uint32_t> want{0x7fc00000}, other{0x7fc00001};
  EXPECT_EQ(compared(ElementType::f32, want, other, {.nan = NanPolicy::equal}).outside, 0u);
  EXPECT_EQ(compared(ElementType::f32, want, other, {.nan = NanPolicy::same_bits}).outside, 1u);
  EXPECT_EQ(compared(ElementType::f32, want, want, {.nan = NanPolicy::same_bits}).outside, 0u);
  EXPECT_EQ(compared(ElementType::f32, want, want, {.nan = NanPolicy::forbidden}).outside, 1u);
}

TEST(Compare, an_overflow_is_no_rounding_error) {
  const Tolerance wide{.absolute = 1e300, .relative = 1e300, .ulps = 1u << 30};
  EXPECT_EQ(compared<float>(ElementType::f32, {3e38f}, {infinity}, wide).outside, 1u);
  EXPECT_EQ(compared<float>(ElementType::f32, {infinity}, {3e38f}, wide).outside, 1u);
  EXPECT_EQ(compared<float>(ElementType::f32, {infinity}, {-infinity}).outside, 1u);
}

TEST(Compare, signed_zeros_differ_in_bits_but_by_no_ulp) {
  EXPECT_EQ(compared<float>(ElementType::f32, {0.f}, {-0.f}).differing, 1u);
  EXPECT_EQ(compared<float>(ElementType::f32, {0.f}, {-0.f}).outside, 1u);
  EXPECT_EQ(compared<float>(ElementType::f32, {0.f}, {-0.f}, {.ulps = 1}).outside, 0u);
}

TEST(Compare, a_tail_shorter_than_an_element_is_compared_as_bytes) {
  std::vector<std::uint8_t> want(11, 0), got(11, 0);
  got[10] = 9;
  Statistics s;
  compare(ElementType::f64, {.absolute = 1}, std::as_bytes(std::span(want)), std::as_bytes(std::span(got)), 100, s);
  EXPECT_EQ(s.outside, 1u);
  ASSERT_TRUE(s.first);
  EXPECT_EQ(s.first->offset, 110u);
}

TEST(UlpDistance, counts_across_zero_and_for_every_width) {
  const auto distance = []<typename T>(ElementType type, T a, T b) {
    return ulp_distance(type, reinterpret_cast<std::byte*>(&a), reinterpret_cast<std::byte*>(&b));
  };
  EXPECT_EQ(
      distance(ElementType::f32, std::numeric_limits<float>::denorm_min(), -std::numeric_limits<float>::denorm_min()),
      2u);
  EXPECT_EQ(distance(ElementType::f64, 1.0, std::nextafter(1.0, 2.0)), 1u);
  EXPECT_EQ(distance(ElementType::f16, std::uint16_t{0x3c00}, std::uint16_t{0x3c05}), 5u);
  EXPECT_EQ(distance(ElementType::f64, -std::numeric_limits<double>::max(), std::numeric_limits<double>::max()),
            2 * 0x7fefffffffffffffull);
}

}  // namespace
}  // namespace kerncap::replay
