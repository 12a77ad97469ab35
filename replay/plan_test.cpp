#include "replay/plan.h"

#include <gtest/gtest.h>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

using snapshot::Region;
using snapshot::RegionKind;

Region region(std::uint64_t address, std::uint64_t size, RegionKind kind = RegionKind::device_coarse) {
  Region r;
  r.address = address;
  r.size = size;
  r.kind = kind;
  const bool host = kind == RegionKind::host_fine || kind == RegionKind::host_kernarg || kind == RegionKind::registered;
  r.agent = host ? -1 : 0;
  return r;
}

Plan plan_of(std::vector<Region> regions, PlanOptions options = {}) {
  snapshot::Dispatch dispatch;
  dispatch.regions = std::move(regions);
  return make_plan(dispatch, options);
}

constexpr std::uint64_t base = 0x7e0000000000, mib = 1 << 20;

TEST(Plan, small_neighbours_share_one_block_of_2_mib) {
  const Plan plan =
      plan_of({region(base + 0x1000, 0x1000), region(base + 0x3000, 0x3000), region(base + 2 * mib, 4 * mib)});
  ASSERT_EQ(plan.placements.size(), 2u);
  EXPECT_EQ(plan.placements[0].address, base);
  EXPECT_EQ(plan.placements[0].size, 2 * mib);
  EXPECT_TRUE(plan.placements[0].whole_block);
  EXPECT_EQ(plan.placements[0].regions, (std::vector<std::size_t>{0, 1}));
  EXPECT_FALSE(plan.placements[1].whole_block);
  EXPECT_FALSE(plan.needs_page_alignment);
  EXPECT_EQ(plan.reserve, (std::vector<Range>{{base, 6 * mib}}));
  EXPECT_EQ(plan.agent_bytes, (std::vector<std::uint64_t>{6 * mib}));
}

TEST(Plan, a_block_with_other_memory_in_it_is_not_grouped) {
  const Plan plan = plan_of({region(base + 0x1000, 0x1000), region(base + 0x3000, 0x3000),
                             region(base + 0x10000, 0x1000, RegionKind::host_fine)});
  ASSERT_EQ(plan.placements.size(), 3u);
  EXPECT_TRUE(plan.needs_page_alignment);  // 0x3000 bytes at 0x...3000: the runtime would align them to 0x2000
  EXPECT_EQ(plan.host_bytes, 0x1000u);
}

TEST(Plan, a_large_allocation_that_reaches_into_a_block_stays_outside_it) {
  const Plan plan = plan_of({region(base, 3 * mib), region(base + 3 * mib + 0x1000, 0x1000)});
  ASSERT_EQ(plan.placements.size(), 2u);
  EXPECT_EQ(plan.placements[0].size, 3 * mib);
  EXPECT_EQ(plan.placements[1].size, 0x1000u);
}

TEST(Plan, blocks_are_optional) {
  PlanOptions options;
  options.group_blocks = false;
  EXPECT_EQ(plan_of({region(base + 0x1000, 0x1000)}, options).placements.at(0).address, base + 0x1000);
}

TEST(Plan, code_objects_take_the_whole_load) {
  snapshot::Dispatch dispatch;
  Region code = region(base + 0x1000, 0x2000, RegionKind::code_object);
  dispatch.regions = {code};
  dispatch.loads.push_back({"d1", 0, base, 0x5000, static_cast<std::int64_t>(base)});
  const Plan plan = make_plan(dispatch, {});
  ASSERT_EQ(plan.placements.size(), 1u);
  EXPECT_EQ(plan.placements[0].method, Method::code_object);
  EXPECT_EQ(plan.placements[0].size, 0x5000u);
  EXPECT_EQ(plan.placements[0].regions, (std::vector<std::size_t>{0}));
}

TEST(Plan, registered_memory_also_reserves_its_own_pages) {
  Region r = region(base, 0x1000, RegionKind::registered);
  r.host_address = 0x555500000010;
  const Plan plan = plan_of({r});
  EXPECT_EQ(plan.reserve, (std::vector<Range>{{base, 0x1000}, {0x555500000000, 0x1000}}));
}

TEST(Plan, two_registrations_in_one_page_become_one_mapping) {
  const Plan plan = plan_of(
      {region(base + 0x10, 0x20, RegionKind::registered), region(base + 0x800, 0x1000, RegionKind::registered)});
  ASSERT_EQ(plan.placements.size(), 1u);
  EXPECT_EQ(plan.placements[0].address, base);
  EXPECT_EQ(plan.placements[0].size, 0x2000u);
  EXPECT_EQ(plan.placements[0].regions.size(), 2u);
}

TEST(Plan, substitutions_are_said) {
  PlanOptions no_vmem;
  no_vmem.vmem_available = false;
  const Plan plan =
      plan_of({region(base, 2 * mib, RegionKind::vmem), region(base + 4 * mib, 0x1000, RegionKind::managed)}, no_vmem);
  EXPECT_EQ(plan.placements[0].method, Method::pool);
  EXPECT_EQ(plan.placements[1].method, Method::registered);
  EXPECT_EQ(plan.notes.size(), 2u);
}

TEST(Plan, overlapping_memory_is_refused) {
  EXPECT_THROW(plan_of({region(base, 0x2000, RegionKind::host_fine), region(base + 0x1000, 0x1000)}), support::Error);
}

}  // namespace
}  // namespace kerncap::replay
