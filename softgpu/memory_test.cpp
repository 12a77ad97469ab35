#include "softgpu/memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace kerncap::softgpu {
namespace {

constexpr std::uint64_t page = AddressSpace::page_size;

struct alignas(4096) Pages {
  std::byte bytes[8 * page];
};

class AddressSpaceTest : public ::testing::Test {
 protected:
  AddressSpace space;
  std::unique_ptr<Pages> host = std::make_unique<Pages>();
};

TEST_F(AddressSpaceTest, NothingIsMappedAtFirst) {
  for (const std::uint64_t address : {std::uint64_t{0}, page, std::uint64_t{0x7fffffffffff}, ~std::uint64_t{0}}) {
    EXPECT_EQ(space.translate(address, 0), nullptr) << std::hex << address;
    EXPECT_EQ(space.translate(address, permission_read), nullptr);
  }
}

TEST_F(AddressSpaceTest, TranslatesEveryByteOfAMappingAndNoneBeside) {
  const std::uint64_t at = 0x7e0000000000;
  space.map(at, 3 * page, host->bytes, permission_read | permission_write);
  EXPECT_EQ(space.translate(at, permission_read), host->bytes);
  EXPECT_EQ(space.translate(at + 3 * page - 1, permission_write), host->bytes + 3 * page - 1);
  EXPECT_EQ(space.translate(at - 1, permission_read), nullptr);
  EXPECT_EQ(space.translate(at + 3 * page, permission_read), nullptr);
}

TEST_F(AddressSpaceTest, RefusesWhatAPageDoesNotAllow) {
  space.map(page, page, host->bytes, permission_read);
  EXPECT_NE(space.translate(page, permission_read), nullptr);
  EXPECT_EQ(space.translate(page, permission_write), nullptr);
  EXPECT_EQ(space.translate(page, permission_execute), nullptr);
  EXPECT_EQ(space.translate(page, permission_read | permission_write), nullptr);
  EXPECT_NE(space.translate(page, 0), nullptr) << "present, whatever it allows";
}

TEST_F(AddressSpaceTest, ARangeMustBeContiguousInTheHost) {
  space.map(page, page, host->bytes, permission_read);
  space.map(2 * page, page, host->bytes + page, permission_read);
  space.map(3 * page, page, host->bytes + 5 * page, permission_read);
  EXPECT_EQ(space.translate_range(page + 8, 2 * page - 8, permission_read), host->bytes + 8);
  EXPECT_EQ(space.translate_range(page, 3 * page, permission_read), nullptr);
  EXPECT_EQ(space.translate_range(3 * page, page + 1, permission_read), nullptr) << "its last byte is not mapped";
}

TEST_F(AddressSpaceTest, ALaterMappingReplacesAnEarlierOneAndUnmapTakesPartsAway) {
  space.map(page, 4 * page, host->bytes, permission_read);
  space.map(2 * page, page, host->bytes + 6 * page, permission_read | permission_write);
  EXPECT_EQ(space.translate(2 * page, permission_write), host->bytes + 6 * page);
  space.unmap(3 * page, page);
  EXPECT_EQ(space.translate(3 * page, permission_read), nullptr);
  EXPECT_EQ(space.translate(4 * page, permission_read), host->bytes + 3 * page);
}

TEST_F(AddressSpaceTest, MappingsCrossTableBoundaries) {
  // Tables hold 4096 pages, so 16 MiB; and 4096 tables, so 64 GiB.
  for (const std::uint64_t boundary : {std::uint64_t{16} << 20, std::uint64_t{64} << 30}) {
    space.map(boundary - 2 * page, 4 * page, host->bytes, permission_read);
    EXPECT_EQ(space.translate_range(boundary - 2 * page, 4 * page, permission_read), host->bytes);
    space.unmap(boundary - page, 2 * page);
    EXPECT_EQ(space.translate(boundary - page, permission_read), nullptr);
    EXPECT_EQ(space.translate(boundary, permission_read), nullptr);
    EXPECT_NE(space.translate(boundary + page, permission_read), nullptr);
  }
}

TEST_F(AddressSpaceTest, EveryChangeGrowsTheGeneration) {
  const std::uint64_t first = space.generation();
  space.map(page, page, host->bytes, permission_read);
  const std::uint64_t second = space.generation();
  space.unmap(page, page);
  EXPECT_GT(second, first);
  EXPECT_GT(space.generation(), second);
}

}  // namespace
}  // namespace kerncap::softgpu
