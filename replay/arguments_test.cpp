#include "replay/arguments.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

constexpr std::uint64_t base = 0x7e0000000000;

// void axpy(float const* x, float* y, int n) with x and y in one region, and a hidden argument.
struct Example {
  snapshot::Dispatch dispatch;
  std::vector<std::byte> kernarg = std::vector<std::byte>(32);
  Example() {
    dispatch.kernel_demangled = "axpy(float const*, float*, int)";
    dispatch.kernel.arguments = {{"", "", "global_buffer", 0, 8, "", "", false},
                                 {"", "", "global_buffer", 8, 8, "", "", false},
                                 {"", "", "by_value", 16, 4, "", "", false},
                                 {"", "", "hidden_block_count_x", 24, 4, "", "", false}};
    snapshot::Region region;
    region.address = base;
    region.size = 0x3000;
    dispatch.regions = {region};
    set(0, base + 0x100);
    set(8, base + 0x1000);
  }
  void set(std::size_t offset, std::uint64_t value) { std::memcpy(kernarg.data() + offset, &value, 8); }
};

TEST(Arguments, types_come_from_the_demangled_name) {
  Example e;
  const auto arguments = kernel_arguments(e.dispatch, e.kernarg, std::nullopt, {});
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_EQ(arguments[1].element, ElementType::f32);
  EXPECT_EQ(arguments[1].pointer, base + 0x1000);
  EXPECT_EQ(arguments[1].label(), "argument 1");
  EXPECT_EQ(arguments[2].pointer, std::nullopt);
}

TEST(Arguments, the_source_knows_better) {
  Example e;
  KernelSource source;
  source.parameters = {{1, "y", "Vector y", "double"}};
  const auto arguments = kernel_arguments(e.dispatch, e.kernarg, source, {});
  EXPECT_EQ(arguments[1].label(), "argument 1 'y'");
  EXPECT_EQ(arguments[1].element, ElementType::f64);
  EXPECT_EQ(arguments[0].element, ElementType::f32);
}

TEST(Arguments, a_rule_sets_type_and_tolerance_of_one_argument) {
  Example e;
  ValidateRules rules;
  add_rule(rules, "ulp=1");
  add_rule(rules, "1:ulp=4");
  add_rule(rules, "1:type=int");
  const auto arguments = kernel_arguments(e.dispatch, e.kernarg, std::nullopt, rules);
  const auto spans = spans_of(e.dispatch.regions[0], arguments, rules);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[2].element, ElementType::i32);
  EXPECT_EQ(spans[2].tolerance.ulps, 4u);
  EXPECT_EQ(spans[1].tolerance.ulps, 1u);
}

TEST(Arguments, a_rule_for_an_unknown_argument_is_refused) {
  Example e;
  ValidateRules rules;
  add_rule(rules, "yy:ulp=4");
  const auto arguments = kernel_arguments(e.dispatch, e.kernarg, std::nullopt, rules);
  EXPECT_THROW(check_rules(arguments, rules), support::Error);
}

TEST(Arguments, pointers_inside_structures_are_found) {
  Example e;
  e.dispatch.kernel_demangled = "k(View)";
  e.dispatch.kernel.arguments = {{"view", "", "by_value", 0, 24, "", "", false}};
  e.set(0, 42);
  e.set(8, base + 0x1000);
  e.set(16, 0);
  const auto arguments = kernel_arguments(e.dispatch, e.kernarg, std::nullopt, {});
  ASSERT_EQ(arguments.size(), 2u);
  EXPECT_EQ(arguments[1].label(), "argument 0 'view', member at byte 8");
  EXPECT_EQ(arguments[1].pointer, base + 0x1000);
  EXPECT_EQ(spans_of(e.dispatch.regions[0], arguments, {}).back().argument, 1);
}

TEST(Arguments, constness_is_read_from_the_type) {
  Example e;
  const auto arguments = kernel_arguments(e.dispatch, e.kernarg, std::nullopt, {});
  EXPECT_TRUE(arguments[0].points_to_const);
  EXPECT_FALSE(arguments[1].points_to_const);
}

TEST(Spans, cover_a_region_without_holes) {
  Example e;
  const auto arguments = kernel_arguments(e.dispatch, e.kernarg, std::nullopt, {});
  const auto spans = spans_of(e.dispatch.regions[0], arguments, {});
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].argument, -1);
  EXPECT_EQ(spans[0].size, 0x100u);
  EXPECT_EQ(spans[1].argument, 0);
  EXPECT_EQ(spans[1].size, 0xf00u);
  EXPECT_EQ(spans[2].argument, 1);
  EXPECT_EQ(spans[2].address + spans[2].size, base + 0x3000);
}

TEST(Spans, the_same_pointer_twice_takes_the_type_that_is_known) {
  Example e;
  e.dispatch.kernel_demangled = "f(Opaque*, float*, int)";
  e.set(0, base);
  e.set(8, base);
  const auto spans = spans_of(e.dispatch.regions[0], kernel_arguments(e.dispatch, e.kernarg, std::nullopt, {}), {});
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].element, ElementType::f32);
}

TEST(Spans, ignoring_is_per_argument) {
  Example e;
  ValidateRules rules;
  add_rule(rules, "0:ignore");
  const auto spans =
      spans_of(e.dispatch.regions[0], kernel_arguments(e.dispatch, e.kernarg, std::nullopt, rules), rules);
  EXPECT_TRUE(spans[1].ignore);
  EXPECT_FALSE(spans[2].ignore);
}

}  // namespace
}  // namespace kerncap::replay
