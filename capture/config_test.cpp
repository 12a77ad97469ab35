#include "capture/config.h"

#include <gtest/gtest.h>

#include "capture/status.h"
#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::capture {
namespace {

using support::Error;

TEST(DispatchList, ReadsNumbersRangesAndSteps) {
  const DispatchList list = DispatchList::parse("1,4,10-12,100-300:100");
  for (const std::uint64_t yes : {1, 4, 10, 11, 12, 100, 200, 300}) EXPECT_TRUE(list.contains(yes)) << yes;
  for (const std::uint64_t no : {0, 2, 13, 101, 400}) EXPECT_FALSE(list.contains(no)) << no;
  EXPECT_FALSE(list.finished_after(299));
  EXPECT_TRUE(list.finished_after(300));
  EXPECT_TRUE(DispatchList::parse("0-:100").contains(7000));
  EXPECT_FALSE(DispatchList::parse("0-:100").finished_after(7000));
  EXPECT_TRUE(DispatchList().contains(0));
  EXPECT_TRUE(DispatchList::parse("0-5:4").finished_after(4));
}

TEST(DispatchList, NonsenseIsAUsageError) {
  for (const char* text : {"", "x", "1,", "5-3", "1-2:0", "-1", "1--2", "1:", "99999999999999999999"}) {
    try {
      (void)DispatchList::parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), support::ExitCode::usage) << text;
    }
  }
}

TEST(Config, SaysTheSameAfterWritingAndReading) {
  Config c;
  c.status_folder = "/tmp/s";
  c.pattern = "add*";
  c.code_object = "abc";
  c.dispatches = DispatchList::parse("3,7-:2");
  c.output = "/tmp/o.kcap";
  c.replace = true;
  c.grid = ShapePattern::parse("1024x*");
  c.block = ShapePattern::parse("64x4");
  c.range = "step *";
  c.after_ms = 1500;
  c.before_ms = 9000;
  c.max_bytes = 1ull << 40;
  c.reachable_only = true;
  c.drain_timeout_ms = 5;
  c.kernel_timeout_ms = 6;
  c.threads = 3;
  c.compression_level = 9;
  c.process = "*worker*";
  const support::Json written = support::parse_json(support::dump_json(to_json(c)), "t");
  const Config back = config_from_json(written, "t");
  EXPECT_EQ(to_json(back), to_json(c));
  EXPECT_EQ(back.dispatches, c.dispatches);
}

TEST(ShapePattern, MatchesTheExtentsThatItNames) {
  EXPECT_TRUE(ShapePattern{}.matches({7, 8, 9}));
  EXPECT_TRUE(ShapePattern::parse("256").matches({256, 1, 1}));
  EXPECT_FALSE(ShapePattern::parse("256").matches({256, 2, 1}));
  EXPECT_TRUE(ShapePattern::parse("64x*x2").matches({64, 77, 2}));
  EXPECT_FALSE(ShapePattern::parse("64x*x2").matches({64, 77, 1}));
  EXPECT_TRUE(ShapePattern::parse("*x*x*").matches({3, 2, 1}));
  for (const char* wrong : {"", "x", "0", "1x", "1x2x3x4", "-1", "12a", "1 x2", "4294967296"})
    EXPECT_THROW(ShapePattern::parse(wrong), Error) << wrong;
}

TEST(Config, RelativePathsAndUnknownModesAreRefused) {
  Config c;
  c.status_folder = "/tmp/s";
  c.pattern = "x";
  c.output = "relative";
  EXPECT_THROW(config_from_json(to_json(c), "t"), Error);
  c.output = "/o";
  support::Json document = support::parse_json(support::dump_json(to_json(c)), "t");
  document["mode"] = "other";
  EXPECT_THROW(config_from_json(document, "t"), Error);
}

TEST(Status, SaysTheSameAfterWritingAndReading) {
  Status s;
  s.process = 42;
  s.command_line = {"app", "-n"};
  s.state = StatusState::failed;
  s.reason = "two kernels match";
  s.ambiguous = true;
  s.captured = {0, 5};
  s.bytes_total = 9;
  s.held_ns = 8;
  KernelStatus k;
  k.symbol = "a.kd";
  k.matches = true;
  k.dispatches = 3;
  k.shapes.push_back({{1, 2, 3}, {4, 5, 6}, 7});
  k.dispatch_times.push_back({1, 2, 3});
  k.vgprs = 11;
  s.kernels.push_back(k);
  s.notes = {"n"};
  s.refused.by_shape = 4;
  s.refused.by_time = 5;
  s.refused.shapes.push_back({{9, 1, 1}, {3, 1, 1}, 2});
  s.refused.ranges = {"step 1"};
  const support::Json written = support::parse_json(support::dump_json(to_json(s)), "t");
  EXPECT_EQ(support::dump_json(to_json(status_from_json(written, "t"))), support::dump_json(written));
}

TEST(Status, OtherFilesOfTheFolderAreSkipped) {
  const support::TemporaryFolder folder;
  support::write_file_atomically(folder.path() / "status-1.json", support::dump_json(to_json(Status{})));
  support::write_file_atomically(folder.path() / "status-2.json", "{");
  support::write_file_atomically(folder.path() / "other", "x");
  EXPECT_EQ(read_statuses(folder.path()).size(), 1u);
}

}  // namespace
}  // namespace kerncap::capture
