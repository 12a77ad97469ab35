#include "replay/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kerncap::replay {
namespace {

Verdict example() {
  Verdict v;
  v.outcome = Outcome::differs;
  v.sentence = "NOT valid";
  v.kernel = "add(float*)";
  v.code_object = "x.hsaco";
  v.agent = "amdgcn-amd-amdhsa--gfx90a";
  v.dispatch = 2;
  v.runs = 3;
  v.compared_bytes = 4096;
  v.first =
      FirstDifference{0x7f0000001004, 0x7f0000001000, "device_coarse", 1, "argument 1 'out'", 1, "float", "1", "2"};
  Part part;
  part.what = "argument 1 'out'";
  part.argument = 1;
  part.type = "float";
  part.address = 0x7f0000001000;
  part.size = 4096;
  part.tolerance = {.ulps = 4};
  part.statistics.elements = 1024;
  part.statistics.differing = part.statistics.outside = 1;
  part.statistics.max_absolute = HUGE_VAL;
  part.statistics.max_ulps = UINT64_MAX;
  part.statistics.first = Difference{4, "1", "2"};
  v.parts.push_back(part);
  v.skipped.push_back({0xffff800000000000, 1, "because"});
  v.notes.emplace_back("note");
  v.device_times = {1000.5};
  BenchResult bench;
  bench.caches = "cold";
  bench.first = {"captured", {10, 11}, {10.5, 10, 11, 0.5}, true, {}};
  bench.second = Timing{"x.hsaco", {9, 9}, {9, 9, 9, 0.5}, true, {}};
  bench.comparison = Comparison{Answer::cannot_tell, {0.9, 0.8, 1.0, 0.5}, 0.01};
  bench.stopped_because = "the time is up";
  v.bench = bench;
  return v;
}

TEST(Verdict, survives_json_unchanged) {
  const support::Json first = to_json(example());
  const Verdict read = verdict_from_json(support::parse_json(support::dump_json(first), "test"));
  EXPECT_EQ(to_json(read), first);
  EXPECT_EQ(read.skipped.at(0).address, 0xffff800000000000u);
  EXPECT_TRUE(std::isinf(read.parts.at(0).statistics.max_absolute));
}

TEST(Verdict, text_names_argument_element_and_values) {
  const std::string text = to_text(example());
  for (const char* needle : {"NOT valid", "argument 1 'out'", "element 1", "expected 1, got 2", "0x7f0000001004",
                             "because", "cannot tell"}) {
    EXPECT_THAT(text, testing::HasSubstr(needle));
  }
}

TEST(Verdict, outcomes_have_the_documented_exit_codes) {
  EXPECT_EQ(static_cast<int>(exit_code(Outcome::matches)), 0);
  EXPECT_EQ(static_cast<int>(exit_code(Outcome::ran)), 0);
  EXPECT_EQ(static_cast<int>(exit_code(Outcome::differs)), 1);
  EXPECT_EQ(static_cast<int>(exit_code(Outcome::fault)), 1);
  EXPECT_EQ(static_cast<int>(exit_code(Outcome::hang)), 1);
  EXPECT_EQ(static_cast<int>(exit_code(Outcome::refused)), 3);
  EXPECT_EQ(static_cast<int>(exit_code(Outcome::bad_input)), 4);
}

TEST(Verdict, malformed_json_is_refused) {
  const auto read = [](const char* text) { return verdict_from_json(support::parse_json(text, "test")); };
  EXPECT_THROW(read("{}"), support::Error);
  EXPECT_THROW(read(R"({"schema": "kerncap.verdict/9"})"), support::Error);
  EXPECT_THROW(read(R"({"schema": "kerncap.verdict/1", "outcome": "matches"})"), support::Error);
  EXPECT_THROW(read(R"({"schema": "kerncap.verdict/1", "outcome": "splendid"})"), support::Error);
}

}  // namespace
}  // namespace kerncap::replay
