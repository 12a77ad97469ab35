// Built with steering.cpp, so this program's mmap() is the steered one, as in kerncap-replay.
#include "replay/steering.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace kerncap::replay {
namespace {

constexpr std::uint64_t page = 4096, mib = 1 << 20;

// What libhsakmt does for an allocation: reserve with surplus, align, give the surplus back.
std::uint64_t allocate_like_the_runtime(std::uint64_t size, std::uint64_t alignment) {
  const std::uint64_t padded = size + alignment + page;
  const auto begin = reinterpret_cast<std::uint64_t>(
      ::mmap(nullptr, padded, PROT_NONE, MAP_ANONYMOUS | MAP_NORESERVE | MAP_PRIVATE, -1, 0));
  const std::uint64_t aligned = (begin + page + alignment - 1) / alignment * alignment;
  if (aligned > begin) ::munmap(reinterpret_cast<void*>(begin), aligned - begin);
  if (begin + padded > aligned + size)
    ::munmap(reinterpret_cast<void*>(aligned + size), begin + padded - aligned - size);
  return aligned;
}

bool is_mapped(std::uint64_t address, std::uint64_t size) {
  return !overlapping(own_mappings(), address, size).empty();
}

constexpr std::uint64_t wanted = 0x6e0000200000;

TEST(Steering, puts_the_next_allocation_where_it_is_wanted) {
  ASSERT_TRUE(reserve_range(wanted, 4 * mib));
  {
    const Steer steer(wanted, 4 * mib);
    EXPECT_EQ(allocate_like_the_runtime(4 * mib, 2 * mib), wanted);
    EXPECT_TRUE(steer.used());
  }
  EXPECT_TRUE(is_mapped(wanted, 4 * mib));
  EXPECT_FALSE(is_mapped(wanted - page, page));
  EXPECT_FALSE(is_mapped(wanted + 4 * mib, page));
  release_range(wanted, 4 * mib);
}

TEST(Steering, leaves_close_neighbours_alone) {
  ASSERT_TRUE(reserve_range(wanted - 2 * mib, 6 * mib));
  for (const std::uint64_t at : {wanted, wanted - 2 * mib, wanted + 2 * mib}) {
    const Steer steer(at, 2 * mib);
    EXPECT_EQ(allocate_like_the_runtime(2 * mib, 2 * mib), at);
  }
  EXPECT_EQ(::mprotect(reinterpret_cast<void*>(wanted - 2 * mib), 6 * mib, PROT_READ), 0);  // all of it is mapped
  release_range(wanted - 2 * mib, 6 * mib);
}

TEST(Steering, serves_one_allocation_and_only_a_fitting_one) {
  ASSERT_TRUE(reserve_range(wanted, 2 * mib));
  const Steer steer(wanted, 2 * mib);
  EXPECT_NE(allocate_like_the_runtime(page, page), wanted);
  EXPECT_FALSE(steer.used());
  EXPECT_EQ(allocate_like_the_runtime(2 * mib, 2 * mib), wanted);
  EXPECT_NE(allocate_like_the_runtime(2 * mib, 2 * mib), wanted);
  release_range(wanted, 2 * mib);
}

TEST(Reserve, does_not_take_what_is_in_use) {
  int on_the_stack = 0;
  const std::uint64_t here = reinterpret_cast<std::uint64_t>(&on_the_stack) / page * page;
  EXPECT_FALSE(reserve_range(here, page));
  const auto who = overlapping(own_mappings(), here, page);
  ASSERT_EQ(who.size(), 1u);
  EXPECT_NE(describe(who[0]).find("stack"), std::string::npos);
}

TEST(ParseMaps, reads_names_with_spaces_and_skips_nonsense) {
  const auto maps = parse_maps("1000-2000 r-xp 00000000 fe:00 12   /a b/c.so\nnonsense\n3000-4000 rw-p 0 0:0 0\n");
  ASSERT_EQ(maps.size(), 2u);
  EXPECT_EQ(maps[0].begin, 0x1000u);
  EXPECT_EQ(maps[0].name, "/a b/c.so");
  EXPECT_EQ(maps[1].name, "");
}

}  // namespace
}  // namespace kerncap::replay
