// The small text formats that the wrapper and the importers read: driver log, depfile, response file, shell words,
// ninja deps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/compdb/depfile.h"
#include "core/compdb/driver_log.h"
#include "core/compdb/import.h"
#include "core/compdb/response_file.h"
#include "core/support/file.h"

namespace kerncap::compdb {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DriverLog, headers_belong_to_the_job_before_them) {
  const auto jobs = parse_driver_log(
      "[Logging clang options]\n \"/usr/bin/clang\" \"-cc1\" \"a.hip\"\n/usr/include/a.h\n./b.h\n"
      "[Logging clang options]\n \"/usr/bin/lld\" \"-o\" \"x\"\n"
      "[Logging clang options]\n (in-process)\n \"/usr/bin/clang\" \"-cc1\" \"a.hip\"\n/usr/include/a.h\n");
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_THAT(jobs[0].argv, ElementsAre("/usr/bin/clang", "-cc1", "a.hip"));
  EXPECT_THAT(jobs[0].headers, ElementsAre("/usr/include/a.h", "./b.h"));
  EXPECT_THAT(jobs[1].headers, IsEmpty());
  EXPECT_THAT(jobs[2].headers, ElementsAre("/usr/include/a.h"));
}

TEST(DriverLog, quoted_arguments_come_back_as_they_were) {
  const auto jobs =
      parse_driver_log("[Logging clang options]\n \"c c\" \"A=\\\"x y\\$z\\\"\" \"B=a\\\\b\" \"N=a\nb\" \"\"\n");
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_THAT(jobs[0].argv, ElementsAre("c c", "A=\"x y$z\"", "B=a\\b", "N=a\nb", ""));
}

TEST(DriverLog, a_log_cut_off_anywhere_is_read_as_far_as_it_goes) {
  const std::string log =
      "[Logging clang options]\n (in-process)\n \"clang\" \"-cc1\" \"a\\\\.c\"\n/usr/include/a.h\n[Logging clang "
      "options]\n \"lld\"\n";
  for (std::size_t size = 0; size <= log.size(); ++size) {
    EXPECT_LE(parse_driver_log(std::string_view(log).substr(0, size)).size(), 2U);
  }
}

TEST(DriverLog, what_the_log_added_to_a_job_is_removed_and_nothing_else) {
  std::vector<std::string> argv = {"clang",
                                   "-cc1",
                                   "-dependency-file",
                                   "d",
                                   "-sys-header-deps",
                                   "-header-include-file",
                                   "/tmp/l",
                                   "-sys-header-deps",
                                   "-header-include-format=textual",
                                   "-header-include-filtering=none",
                                   "-O2"};
  remove_logging_options(argv, "/tmp/l");
  EXPECT_THAT(argv, ElementsAre("clang", "-cc1", "-dependency-file", "d", "-sys-header-deps", "-O2"));
  std::vector<std::string> own = {"clang", "-cc1", "-header-include-file", "mine", "-sys-header-deps"};
  remove_logging_options(own, "/tmp/l");
  EXPECT_EQ(own.size(), 5U);
}

TEST(DryRun, commands_are_found_between_other_lines) {
  bool failed = true;
  const auto jobs = parse_dry_run(
      "Debian clang version 15.0.6\nTarget: x\n \"/usr/bin/clang\" \"-cc1\" \"a b\"\nwarning: x\n", &failed);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_THAT(jobs[0].argv, ElementsAre("/usr/bin/clang", "-cc1", "a b"));
  EXPECT_FALSE(failed);
  parse_dry_run("clang: error: no such file or directory: 'x.c'\n", &failed);
  EXPECT_TRUE(failed);
}

TEST(Depfile, names_with_special_characters_are_read_back) {
  const Dependencies read = parse_depfile(
      "out.o: a.c dir/with\\ blank.h \\\n  tab\\#hash.h dollar$$.h \\\n back\\slash.h C:drive.h\n\nother.h:\n");
  EXPECT_THAT(read.targets, ElementsAre("out.o"));
  EXPECT_THAT(read.files,
              ElementsAre("a.c", "dir/with blank.h", "tab#hash.h", "dollar$.h", "back\\slash.h", "C:drive.h"));
}

TEST(Depfile, phony_rules_and_repetitions_add_nothing) {
  const Dependencies read = parse_depfile("a.h:\nout.o other.o : a.c a.h a.h\na.h:\n");
  EXPECT_THAT(read.targets, ElementsAre("out.o", "other.o"));
  EXPECT_THAT(read.files, ElementsAre("a.c", "a.h"));
}

TEST(Depfile, windows_line_ends_and_damage_are_survived) {
  EXPECT_THAT(parse_depfile("o: a.c \\\r\n b.h\r\n").files, ElementsAre("a.c", "b.h"));
  EXPECT_THAT(parse_depfile("").files, IsEmpty());
  EXPECT_THAT(parse_depfile("no rule").files, IsEmpty());
  EXPECT_THAT(parse_depfile("o: a\\").files, ElementsAre("a\\"));
  EXPECT_THAT(parse_depfile(std::string_view("\0:\0\\\n", 6)).files, ::testing::SizeIs(::testing::Le(1)));
}

TEST(ResponseFile, words_are_split_the_gnu_way) {
  EXPECT_THAT(split_response_text("-DA=\"x y\" '-DB=z w' c\\ d \\\"q\\\" \"\" 'it''s'\n\t-o"),
              ElementsAre("-DA=x y", "-DB=z w", "c d", "\"q\"", "", "its", "-o"));
}

TEST(ResponseFile, nested_files_are_inlined_and_missing_ones_stay) {
  const support::TemporaryFolder folder;
  support::write_file_atomically(folder.path() / "inner.rsp", "-DX '@missing'");
  support::write_file_atomically(folder.path() / "outer.rsp", "-c @inner.rsp a.c");
  EXPECT_THAT(expand_response_files({"clang", "@outer.rsp", "@none", "@"}, folder.path().string()),
              ElementsAre("clang", "-c", "-DX", "@missing", "a.c", "@none", "@"));
}

TEST(ResponseFile, a_file_that_names_itself_ends) {
  const support::TemporaryFolder folder;
  support::write_file_atomically(folder.path() / "self.rsp", "-a @self.rsp");
  EXPECT_LT(expand_response_files({"clang", "@self.rsp"}, folder.path().string()).size(), 40U);
}

TEST(ShellWords, quoting_is_undone) {
  std::vector<std::string> words;
  ASSERT_TRUE(split_shell_words(R"(c++ -DA=\"x\" "-DB=a b\"c\\d" '-DC=$x' e\ f)", words));
  EXPECT_THAT(words, ElementsAre("c++", "-DA=\"x\"", "-DB=a b\"c\\d", "-DC=$x", "e f"));
}

TEST(ShellWords, what_needs_a_shell_is_refused) {
  std::vector<std::string> words;
  for (const char* text : {": && c++ a.o", "c++ $(x)", "c++ `x`", "a | b", "a > b", "\"$x\"", "'open", "\"open", ""}) {
    EXPECT_FALSE(split_shell_words(text, words)) << text;
  }
}

TEST(NinjaDeps, only_valid_entries_count) {
  const auto deps = read_ninja_deps(
      "a.o: #deps 2, deps mtime 17 (VALID)\n    a.c\n    a b.h\n\nb.o: #deps 1, deps mtime 3 (STALE)\n    b.c\n\n");
  ASSERT_EQ(deps.size(), 1U);
  EXPECT_THAT(deps.at("a.o"), ElementsAre("a.c", "a b.h"));
}

}  // namespace
}  // namespace kerncap::compdb
