#include "core/snapshot/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/snapshot/test_data.h"
#include "core/snapshot/writer.h"
#include "core/support/file.h"
#include "core/support/hash.h"

namespace kerncap::snapshot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two regions, the second with a short last chunk; the kernel changes two bytes of the first.
struct Recipe {
  std::vector<Region> regions = {testing::region(0x100000, 3 * chunk_size), testing::region(0x900000, chunk_size + 5)};
  std::vector<std::byte> first = testing::random_bytes(3 * chunk_size, 1),
                         second = testing::random_bytes(chunk_size + 5, 2);
  std::vector<std::byte> first_after;
  std::string kernarg = "ABCDEFGHIJKLMNOP";
  Dispatch dispatch = testing::small_manifest({}).dispatches[0];

  Recipe() {
    first_after = first;
    first_after[chunk_size + 7] ^= std::byte{1};
    first_after[2 * chunk_size + 9] ^= std::byte{1};
    dispatch.kernel.kernarg_size = 16;
    dispatch.kernel.arguments.push_back({"out", "", "global_buffer", 0, 8, "global", "", false});
    dispatch.kernel.arguments.push_back({"n", "", "by_value", 8, 4, "", "", false});
  }
};

class DifferenceTest : public ::testing::Test {
 protected:
  Reader make(const Recipe& recipe, const char* name) const {
    const std::filesystem::path path = folder_.path() / name;
    Writer writer(path, {.replace = true});
    const auto d = writer.begin_dispatch(recipe.regions);
    writer.put(d, 0, State::before, 0, std::span(recipe.first).first(recipe.regions[0].size), {});
    if (recipe.regions.size() > 1) writer.put(d, 1, State::before, 0, recipe.second, {});
    writer.drain();
    writer.put(d, 0, State::after, 0, std::span(recipe.first_after).first(recipe.regions[0].size), {});
    writer.set_kernarg(d, support::bytes_of(recipe.kernarg));
    Manifest m = testing::small_manifest({});
    m.dispatches[0] = recipe.dispatch;
    m.dispatches[0].regions = recipe.regions;
    writer.commit(m);
    return Reader(path);
  }
  Difference between(const Recipe& a, const Recipe& b) const {
    return compare(make(a, "a.kcap"), 0, make(b, "b.kcap"), 0, {});
  }
  support::TemporaryFolder folder_;
};

TEST_F(DifferenceTest, TheSameTwiceIsTheSame) { EXPECT_TRUE(between({}, {}).same()); }

TEST_F(DifferenceTest, WhatTheKernelChangedIsCountedByByte) {
  std::uint64_t seen = 0;
  const auto found = changes(make({}, "a.kcap"), 0, [&](std::uint64_t bytes) { seen += bytes; });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].bytes, 2u);
  EXPECT_EQ(found[0].first, 0x100000 + chunk_size + 7);
  EXPECT_EQ(found[0].last, 0x100000 + 2 * chunk_size + 9);
  EXPECT_EQ(seen, 4 * chunk_size + 5);
}

TEST_F(DifferenceTest, WithoutAStateAfterNothingChanged) {
  Recipe r;
  r.dispatch.has_after = false;
  r.dispatch.incomplete_reason = "it hung";
  EXPECT_THAT(changes(make(r, "a.kcap"), 0, {}), IsEmpty());
  const Difference d = between({}, r);
  EXPECT_THAT(d.launch, ElementsAre(FieldDifference{"state after the kernel", "captured", "it hung"}));
  EXPECT_THAT(d.after, IsEmpty());
}

TEST_F(DifferenceTest, OneByteBeforeTheKernelIsFound) {
  Recipe b;
  b.second.back() ^= std::byte{0x80};
  const Difference d = between({}, b);
  EXPECT_FALSE(d.same());
  const std::uint64_t at = 0x900000 + chunk_size + 4;
  const MemoryDifference expected{0x900000, chunk_size + 5, 1, at, at, 1, 1};
  EXPECT_THAT(d.before, ElementsAre(expected));
  EXPECT_THAT(d.after, ElementsAre(expected));
  EXPECT_THAT(d.launch, IsEmpty());
}

TEST_F(DifferenceTest, ADifferenceAfterTheKernelOnlyIsOne) {
  Recipe b;
  b.first_after = b.first;
  const Difference d = between({}, b);
  EXPECT_THAT(d.before, IsEmpty());
  ASSERT_EQ(d.after.size(), 1u);
  EXPECT_EQ(d.after[0].bytes, 2u);
}

TEST_F(DifferenceTest, ZerosDifferFromBytes) {
  Recipe a, b;
  a.first = a.first_after = std::vector<std::byte>(3 * chunk_size);
  b.first = b.first_after = a.first;
  b.first[3] = b.first_after[3] = std::byte{1};
  const Difference d = between(a, b);
  ASSERT_EQ(d.before.size(), 1u);
  EXPECT_EQ(d.before[0].first, 0x100003u);
}

TEST_F(DifferenceTest, RegionsThatComeAndGoAreNamed) {
  Recipe b;
  b.regions[1].address = 0xa00000;
  const Difference d = between({}, b);
  EXPECT_THAT(d.removed, ElementsAre(1u));
  EXPECT_THAT(d.added, ElementsAre(1u));
  EXPECT_THAT(d.before, IsEmpty());
}

TEST_F(DifferenceTest, AShorterRegionIsComparedAsFarAsItGoes) {
  Recipe b;
  b.regions = {testing::region(0x100000, 2 * chunk_size + 100)};
  b.regions[0].kind = RegionKind::vmem;
  b.first[2 * chunk_size] ^= std::byte{1};
  const Difference d = between({}, b);
  EXPECT_THAT(d.removed, ElementsAre(1u));
  ASSERT_EQ(d.regions.size(), 2u);
  EXPECT_EQ(d.regions[0].field, "size of 0x100000");
  EXPECT_EQ(d.regions[1], (FieldDifference{"kind of 0x100000", "device_coarse", "vmem"}));
  ASSERT_EQ(d.before.size(), 1u);
  EXPECT_EQ(d.before[0].bytes, 1u);
}

TEST_F(DifferenceTest, ArgumentsAreComparedByTheLayoutAndWhatLiesBetween) {
  Recipe b;
  b.kernarg = "ABCDEFGHijklMNoP";
  EXPECT_THAT(between({}, b).kernarg, ElementsAre(KernargDifference{8, 4, 1}, KernargDifference{14, 1, std::nullopt}));
  b.dispatch.kernel.arguments.pop_back();
  EXPECT_THAT(between({}, b).kernarg,
              ElementsAre(KernargDifference{8, 4, std::nullopt}, KernargDifference{14, 1, std::nullopt}));
}

TEST_F(DifferenceTest, TheLaunchIsCompared) {
  Recipe b;
  b.dispatch.grid = {512, 1, 1};
  b.dispatch.code_object = std::string(64, 'b');
  b.dispatch.index = 77;  // another position in the run is no difference
  b.dispatch.process = 78;
  const Difference d = between({}, b);
  EXPECT_THAT(d.launch, ElementsAre(FieldDifference{"code object", std::string(64, 'a'), std::string(64, 'b')},
                                    FieldDifference{"grid", "256 x 1 x 1", "512 x 1 x 1"}));
}

}  // namespace
}  // namespace kerncap::snapshot
