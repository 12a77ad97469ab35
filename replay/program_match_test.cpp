#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/support/error.h"
#include "replay/program.h"

namespace kerncap::replay {
namespace {

ImageSymbol function(std::string name, std::uint64_t address, std::uint64_t size) {
  return {std::move(name), address, size, true, false, false, false};
}
ImageSymbol object(std::string name, std::uint64_t address, std::uint64_t size) {
  return {std::move(name), address, size, false, true, false, true};
}

struct Example {
  static constexpr std::uint64_t base = 0x7e0000000000, other = 0x7d0000000000;
  snapshot::Dispatch dispatch;
  snapshot::CodeObjectLoad load{"code", 0, base, 0x4000, static_cast<std::int64_t>(base)};
  CodeImage captured, candidate;
  Example() {
    dispatch.code_object = "code";
    captured.memory_size = 0x4000;
    captured.symbols = {function("add", 0x1000, 0x100), function("mul", 0x1100, 0x100), object("table", 0x3000, 16),
                        object("weights", 0x3010, 64)};
    candidate.symbols = {function("add", 0x1000, 0x180), function("mul", 0x1200, 0x80), object("table", 0x3000, 16),
                         object("weights", 0x3040, 64)};
  }
  void pointer(std::uint64_t at, std::uint64_t offset) { dispatch.code_pointers.push_back({at, "code", offset, ""}); }
  std::uint64_t relocated(std::uint64_t at) {
    const Patches patches = relocate(dispatch, captured, load, candidate, other);
    std::vector<std::byte> bytes(8);
    patches.apply(at, bytes);
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), 8);
    return value;
  }
};

TEST(Relocate, pointers_follow_their_symbols) {
  Example e;
  e.pointer(0x1000, 0x1100);
  EXPECT_EQ(e.relocated(0x1000), Example::other + 0x1200);
}

TEST(Relocate, pointers_into_a_variable_keep_their_place_in_it) {
  Example e;
  e.pointer(0x1000, 0x3018);
  EXPECT_EQ(e.relocated(0x1000), Example::other + 0x3048);
}

TEST(Relocate, words_of_copied_variables_are_relocated_and_other_words_of_the_image_left) {
  Example e;
  e.pointer(Example::base + 0x3000, 0x1000);  // in 'table'
  e.pointer(Example::base + 0x2000, 0x1000);  // in no symbol: the loader's
  EXPECT_EQ(e.relocated(Example::base + 0x3000), Example::other + 0x1000);
  EXPECT_EQ(e.relocated(Example::base + 0x2000), 0u);
}

TEST(Relocate, a_pointer_without_counterpart_is_refused) {
  Example e;
  e.candidate.symbols.erase(e.candidate.symbols.begin() + 1);
  e.pointer(0x1000, 0x1100);
  EXPECT_THROW(e.relocated(0x1000), support::Error);
}

TEST(Relocate, a_pointer_into_the_middle_of_code_is_refused) {
  Example e;
  e.pointer(0x1000, 0x1110);
  EXPECT_THROW(e.relocated(0x1000), support::Error);
}

TEST(Relocate, pointers_into_other_code_objects_stay) {
  Example e;
  e.dispatch.code_pointers.push_back({0x1000, "another", 0x10, ""});
  EXPECT_EQ(e.relocated(0x1000), 0u);
}

TEST(MatchVariables, by_name_and_size_only) {
  Example e;
  e.captured.symbols.push_back(object("kernel.kd", 0x100, 64));
  e.captured.symbols.back().is_writable = false;
  e.captured.symbols.push_back(object("gone", 0x3800, 4));
  for (const char* name : {"constants", "literals"}) {
    for (CodeImage* image : {&e.captured, &e.candidate}) {
      image->symbols.push_back(object(name, name[0] == 'c' ? 0x400 : 0x500, 16));
      image->symbols.back().is_writable = false;
    }
  }
  std::vector<std::string> missing;
  const auto pairs = match_variables(
      e.captured, Example::base, e.candidate, Example::other,
      [](const ImageSymbol& symbol) { return symbol.name == "constants"; }, missing);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[1].name, "weights");
  EXPECT_EQ(pairs[1].captured_address, Example::base + 0x3010);
  EXPECT_EQ(pairs[1].candidate_address, Example::other + 0x3040);
  EXPECT_THAT(missing, testing::ElementsAre("gone"));
  // Read-only data: only what the host has written.
  EXPECT_EQ(pairs[2].name, "constants");
}

TEST(SameLayout, needs_every_symbol_where_it_was) {
  Example e;
  EXPECT_FALSE(same_layout(e.captured, e.candidate));
  EXPECT_TRUE(same_layout(e.captured, e.captured));
}

}  // namespace
}  // namespace kerncap::replay
