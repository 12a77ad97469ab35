#include "capture/reachable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace kerncap::capture {
namespace {

using snapshot::Region;
using snapshot::RegionKind;

// Allocations with 64-bit words in them; what the owner of a Reach does with it.
class Memory {
 public:
  std::size_t add(std::uint64_t address, std::uint64_t size, RegionKind kind = RegionKind::device_coarse) {
    Region region;
    region.address = address;
    region.size = size;
    region.kind = kind;
    regions_.push_back(region);
    bytes_.emplace_back(size);
    return regions_.size() - 1;
  }
  void put(std::size_t region, std::uint64_t offset, std::uint64_t word) {
    std::memcpy(bytes_[region].data() + offset, &word, sizeof word);
  }
  std::uint64_t address(std::size_t region) const { return regions_[region].address; }

  // The regions that are reached from these arguments; memory is shown in pieces of `piece` bytes.
  std::vector<std::size_t> reached(const std::vector<std::uint64_t>& arguments, std::size_t piece = 4096) const {
    Reach reach(regions_);
    reach.scan_arguments(std::as_bytes(std::span(arguments)));
    std::vector<std::size_t> order;
    while (const auto region = reach.next()) {
      order.push_back(*region);
      const std::vector<std::byte>& all = bytes_[*region];
      for (std::size_t at = 0; at < all.size(); at += piece)
        reach.scan(regions_[*region].address + at, std::span(all).subspan(at, std::min(piece, all.size() - at)));
    }
    std::ranges::sort(order);
    for (std::size_t r = 0; r < regions_.size(); ++r)
      EXPECT_EQ(reach.reached(r), std::ranges::binary_search(order, r)) << r;
    return order;
  }

 private:
  std::vector<Region> regions_;
  std::vector<std::vector<std::byte>> bytes_;
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t base = 0x7f0000000000;

TEST(Reach, FollowsATableOfPointersAndLeavesTheRest) {
  Memory m;
  const auto table = m.add(base, 4096), used = m.add(base + 0x10000, 4096);
  m.add(base + 0x20000, 4096);  // nobody points there
  const auto deep = m.add(base + 0x30000, 4096);
  m.put(table, 4088, m.address(used));
  m.put(used, 0, m.address(deep));
  EXPECT_THAT(m.reached({42, m.address(table)}), ElementsAre(table, used, deep));
}

TEST(Reach, APointerIntoTheMiddleReachesAllOfIt) {
  Memory m;
  const auto a = m.add(base, 4096), b = m.add(base + 0x10000, 4096), c = m.add(base + 0x20000, 4096);
  m.put(a, 0, m.address(b) + 4095);  // the last byte
  m.put(a, 8, m.address(c) + 4096);  // one past the end is somebody else's
  EXPECT_THAT(m.reached({m.address(a) + 2048}), ElementsAre(a, b));
}

TEST(Reach, APointerToFreedMemoryReachesNothing) {
  Memory m;
  const auto a = m.add(base, 4096);
  m.add(base + 0x20000, 4096);
  m.put(a, 16, base + 0x10000);      // was an allocation once
  m.put(a, 24, base - 8);            // before all of them
  m.put(a, 32, base + 0x100000000);  // behind all of them
  EXPECT_THAT(m.reached({m.address(a), 0, ~std::uint64_t{0}}), ElementsAre(a));
}

TEST(Reach, CyclesEnd) {
  Memory m;
  const auto a = m.add(base, 4096), b = m.add(base + 0x10000, 4096);
  m.put(a, 0, m.address(b));
  m.put(b, 0, m.address(a));
  m.put(b, 8, m.address(b));
  EXPECT_THAT(m.reached({m.address(b)}), ElementsAre(a, b));
}

TEST(Reach, NothingPointsNowhere) {
  Memory m;
  m.add(base, 4096);
  EXPECT_THAT(m.reached({}), IsEmpty());
  EXPECT_THAT(Memory().reached({base}), IsEmpty());
}

TEST(Reach, PackedArgumentsAreSeen) {
  Memory m;
  const auto a = m.add(base, 4096);
  const std::uint64_t address = m.address(a) + 64;
  EXPECT_THAT(m.reached({address << 32, address >> 32}), ElementsAre(a));
}

TEST(Reach, MappedPartsThatTouchAreOneAllocationAndOthersAreNot) {
  Memory m;
  const auto a = m.add(base, 4096, RegionKind::vmem), b = m.add(base + 4096, 4096, RegionKind::vmem);
  m.add(base + 0x3000, 4096, RegionKind::vmem);  // behind a hole
  const auto target = m.add(base + 0x10000, 4096), neighbour = m.add(base + 0x11000, 4096);
  m.put(b, 0, m.address(target));
  EXPECT_THAT(m.reached({m.address(a)}), ElementsAre(a, b, target));
  EXPECT_THAT(m.reached({m.address(neighbour)}), ElementsAre(neighbour));
}

TEST(Reach, AWordAcrossTwoPiecesOfAnUnalignedRegionIsSeen) {
  Memory m;
  const auto a = m.add(base + 3, 4096 + 5), b = m.add(base + 0x10000, 4096);
  m.put(a, 5 + 8 * 7, m.address(b));  // aligned in memory, not in the region
  for (const std::size_t piece : {8u, 16u, 64u, 4096u})
    EXPECT_THAT(m.reached({m.address(a)}, piece), ElementsAre(a, b)) << piece;
  Memory last;
  const auto c = last.add(base + 3, 64), d = last.add(base + 0x10000, 64);
  last.put(c, 5, last.address(d));
  EXPECT_THAT(last.reached({last.address(c)}), ElementsAre(c, d));
}

}  // namespace
}  // namespace kerncap::capture
