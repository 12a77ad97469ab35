#include "replay/patches.h"

#include <gtest/gtest.h>

#include <cstring>

namespace kerncap::replay {
namespace {

std::uint64_t word(const std::vector<std::byte>& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, 8);
  return value;
}

TEST(Patches, overwrite_words_also_across_the_ends_of_a_buffer) {
  Patches patches;
  patches.add_word(0x1000, 0, 0x0807060504030201);
  std::vector<std::byte> whole(32), tail(8), head(4);
  patches.apply(0xff8, whole);
  EXPECT_EQ(word(whole, 8), 0x0807060504030201u);
  patches.apply(0x1004, tail);
  EXPECT_EQ(word(tail, 0), 0x08070605u);
  patches.apply(0xffe, head);
  EXPECT_EQ(head, (std::vector<std::byte>{std::byte{0}, std::byte{0}, std::byte{1}, std::byte{2}}));
  EXPECT_TRUE(patches.touches(0x1007, 1));
  EXPECT_FALSE(patches.touches(0x1008, 8));
}

TEST(Patches, leave_words_alone_that_the_kernel_has_overwritten) {
  Patches patches;
  patches.add_word(0x1000, 5, 9);
  std::vector<std::byte> untouched(8), overwritten(8);
  untouched[0] = std::byte{5};
  overwritten[0] = std::byte{6};
  patches.apply_where_original(0x1000, untouched);
  patches.apply_where_original(0x1000, overwritten);
  EXPECT_EQ(word(untouched, 0), 9u);
  EXPECT_EQ(word(overwritten, 0), 6u);
}

}  // namespace
}  // namespace kerncap::replay
