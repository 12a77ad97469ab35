#include "capture/memory_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kerncap::capture {
namespace {

using snapshot::RegionKind;

Allocation range(std::uint64_t address, std::uint64_t size, RegionKind kind = RegionKind::device_coarse) {
  Allocation a;
  a.address = address;
  a.size = size;
  a.kind = kind;
  return a;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges(const std::vector<Allocation>& all) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
  for (const Allocation& a : all) out.emplace_back(a.address, a.size);
  return out;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(MemoryMap, WhatIsFreedIsGone) {
  MemoryMap map;
  map.add(range(0x1000, 0x1000));
  map.add(range(0x3000, 0x1000));
  EXPECT_TRUE(map.remove(0x1000));
  EXPECT_FALSE(map.remove(0x1000));
  EXPECT_FALSE(map.remove(0x3800));  // not its beginning
  EXPECT_THAT(ranges(map.list()), ElementsAre(Pair(0x3000, 0x1000)));
}

TEST(MemoryMap, ANewRangeReplacesWhatWasFreedBehindOurBack) {
  MemoryMap map;
  map.add(range(0x1000, 0x3000));
  map.add(range(0x2000, 0x1000));
  EXPECT_THAT(ranges(map.list()), ElementsAre(Pair(0x1000, 0x1000), Pair(0x2000, 0x1000), Pair(0x3000, 0x1000)));
  EXPECT_EQ(map.bytes(), 0x3000u);
}

TEST(MemoryMap, APartlyUnmappedRangeKeepsItsRest) {
  MemoryMap map;
  Allocation a = range(0x10000, 0x4000, RegionKind::managed);
  a.host_address = 0x90000;
  map.add(a);
  map.remove_range(0x11000, 0x1000);
  EXPECT_THAT(ranges(map.list()), ElementsAre(Pair(0x10000, 0x1000), Pair(0x12000, 0x2000)));
  EXPECT_EQ(map.list()[1].host_address, 0x92000u);
  map.remove_range(0, UINT64_MAX);
  EXPECT_THAT(map.list(), IsEmpty());
}

TEST(MemoryMap, LockedPagesStayUntilTheLastUnlock) {
  MemoryMap map;
  Allocation a = range(0x7000, 0x1000, RegionKind::registered);
  a.host_address = 0x5000;
  map.add(a);
  map.add(a);
  EXPECT_TRUE(map.unlock(0x5000));
  EXPECT_NE(map.find(0x7800), nullptr);
  EXPECT_TRUE(map.unlock(0x5000));
  EXPECT_EQ(map.find(0x7800), nullptr);
  EXPECT_FALSE(map.unlock(0x5000));
}

TEST(MemoryMap, FindsTheRangeThatCoversAnAddress) {
  MemoryMap map;
  map.add(range(0x1000, 0x1000));
  EXPECT_EQ(map.find(0xfff), nullptr);
  ASSERT_NE(map.find(0x1fff), nullptr);
  EXPECT_EQ(map.find(0x2000), nullptr);
}

TEST(Without, CutsHolesOutOfAllocations) {
  const std::vector<Allocation> all = {range(0x1000, 0x3000), range(0x8000, 0x1000)};
  std::vector<snapshot::Region> holes(3);
  holes[0].address = 0x500;
  holes[0].size = 0xc00;
  holes[1].address = 0x2000;
  holes[1].size = 0x800;
  holes[2].address = 0x8000;
  holes[2].size = 0x1000;
  EXPECT_THAT(ranges(without(all, holes)), ElementsAre(Pair(0x1100, 0xf00), Pair(0x2800, 0x1800)));
  EXPECT_THAT(ranges(without(all, {})), ElementsAre(Pair(0x1000, 0x3000), Pair(0x8000, 0x1000)));
}

}  // namespace
}  // namespace kerncap::capture
