// Builds whose database is in a bad place or state: they go on, say so once, and what was recorded stays good.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "wrapper/build_for_test.h"

namespace kerncap::wrapper {
namespace {

using compdb::Record;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int units_of_a_build = 12;

class DamagedDatabase : public ::testing::Test {
 protected:
  DamagedDatabase() {
    std::string objects;
    for (int i = 0; i < units_of_a_build; ++i) {
      tree.write("u" + std::to_string(i) + ".c", "int u" + std::to_string(i) + ";\n");
      objects += " u" + std::to_string(i) + ".o";
    }
    tree.write("Makefile", "all:" + objects + "\n%.o: %.c\n\t$(CC) -c $< -o $(OUT)$@\n");
  }
  Words make(const std::string& out = "") const {
    return {"make", "-B", "-j4", "CC=" + program + " gcc", "OUT=" + out};
  }

  // `script` with mounts and a host name of its own; "$@" is the build. Skipped where the kernel does not let us.
  support::ProcessResult in_namespace(const std::string& flags, const std::string& script) const {
    Words command = {"unshare", flags, "/bin/sh", "-ec", script, "sh"};
    const Words build = make();
    command.insert(command.end(), build.begin(), build.end());
    return tree.run(command, {{"DB", tree.database_path().string()}, {"COPY", (tree.path() / "copy").string()}});
  }
  bool may_unshare(const std::string& flags) const { return tree.run({"unshare", flags, "true"}).exit_status == 0; }

  static std::size_t warnings(const support::ProcessResult& result) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = result.standard_error.find("kerncap-cc: warning", at)) != std::string::npos; ++at)
      ++count;
    return count;
  }
  void expect_all_objects() const {
    for (int i = 0; i < units_of_a_build; ++i) EXPECT_TRUE(tree.exists("u" + std::to_string(i) + ".o")) << i;
  }
  BuildTree tree;
};

TEST_F(DamagedDatabase, a_full_disk_costs_records_and_one_warning_and_what_was_written_stays_good) {
  if (!may_unshare("-m")) GTEST_SKIP() << "no mount namespaces for us here";
  // One page for VERSION, one for the log of a build that needs some more.
  const support::ProcessResult result =
      in_namespace("-m",
                   "mount -t tmpfs -o size=8k tmpfs \"$DB\"; echo '1 kerncap compilation database' > \"$DB/VERSION\"; "
                   "\"$@\"; cp -r \"$DB\" \"$COPY\"");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  expect_all_objects();
  EXPECT_EQ(warnings(result), 1U) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("No space left"));
  const std::vector<Record> kept = compdb::Database(tree.path() / "copy").records();
  EXPECT_GT(kept.size(), 0U);
  EXPECT_LT(kept.size(), std::size_t{units_of_a_build});
  // With room again the log goes on behind its torn end.
  ASSERT_EQ(tree.run(make(), {{"KERNCAP_DB", (tree.path() / "copy").string()}}).exit_status, 0);
  EXPECT_EQ(compdb::Database(tree.path() / "copy").records().size(), std::size_t{units_of_a_build});
}

TEST_F(DamagedDatabase, a_read_only_database_is_one_warning_a_build) {
  if (!may_unshare("-m")) GTEST_SKIP() << "no mount namespaces for us here";
  const std::string twice = "mount --bind \"$DB\" \"$DB\"; mount -o remount,bind,ro \"$DB\"; \"$@\"; \"$@\"";
  const support::ProcessResult result = in_namespace("-m", twice);
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  expect_all_objects();
  EXPECT_EQ(warnings(result), 1U) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("Read-only file system"));
}

TEST_F(DamagedDatabase, on_a_file_system_shared_by_hosts_each_record_is_a_file_of_its_own) {
  KERNCAP_NEEDS("bindfs");  // FUSE stands for them all: statfs(2) tells them apart from local ones
  if (!may_unshare("-m")) GTEST_SKIP() << "no mount namespaces for us here";
  if (in_namespace("-m", "bindfs \"$DB\" \"$DB\"").exit_status != 0) GTEST_SKIP() << "FUSE does not work here";
  const support::ProcessResult result = in_namespace("-m", "bindfs \"$DB\" \"$DB\"; \"$@\"; umount \"$DB\"");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(warnings(result), 0U) << result.standard_error;
  std::size_t fragments = 0;
  for (const auto& entry : std::filesystem::directory_iterator(tree.database_path() / "fragments"))
    fragments += entry.path().extension() == ".kclog" ? 1 : 0;
  EXPECT_EQ(fragments, std::size_t{units_of_a_build});
  EXPECT_THAT(tree.units(), SizeIs(units_of_a_build));
  EXPECT_EQ(compdb::compact(tree.database_path()).records_after, std::size_t{units_of_a_build});
  EXPECT_THAT(tree.units(), SizeIs(units_of_a_build));
}

TEST_F(DamagedDatabase, two_hosts_write_one_database_while_it_is_compacted) {
  if (!may_unshare("-u")) GTEST_SKIP() << "no host names for us here";
  std::filesystem::create_directory(tree.path() / "other");
  std::optional<support::ProcessResult> theirs;
  std::thread other([&] {
    Words command = {"unshare", "-u", "/bin/sh", "-ec", "hostname another-host; \"$@\"; \"$@\"", "sh"};
    const Words build = make("other/");
    command.insert(command.end(), build.begin(), build.end());
    theirs = tree.run(command);
  });
  const support::ProcessResult ours = tree.run(make());
  compdb::compact(tree.database_path());
  const support::ProcessResult again = tree.run(make());
  other.join();
  EXPECT_EQ(ours.exit_status, 0) << ours.standard_error;
  EXPECT_EQ(again.exit_status, 0) << again.standard_error;
  EXPECT_EQ(theirs->exit_status, 0) << theirs->standard_error;
  EXPECT_TRUE(std::filesystem::exists(tree.database_path() / "logs/another-host.kclog"));
  compdb::compact(tree.database_path());
  EXPECT_THAT(tree.units(), SizeIs(2 * units_of_a_build));
  EXPECT_EQ(tree.database().statistics().torn, 0U);
}

TEST_F(DamagedDatabase, a_log_of_garbage_is_written_behind_and_read_past) {
  std::filesystem::create_directories(tree.database_path() / "logs");
  ASSERT_EQ(tree.run(make()).exit_status, 0);
  std::mt19937 random(7);
  for (const auto& entry : std::filesystem::directory_iterator(tree.database_path() / "logs")) {
    std::ofstream log(entry.path(), std::ios::binary | std::ios::trunc);
    for (int i = 0; i < 5000; ++i) log << (i % 100 == 0 ? "KCDB" : std::string(1, static_cast<char>(random())));
  }
  const support::ProcessResult result = tree.run(make());
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(tree.units(), SizeIs(units_of_a_build));
}

TEST_F(DamagedDatabase, parallel_compiles_of_one_build_warn_once_also_without_a_session_of_kerncap_build) {
  for (const std::optional<std::string>& session : {std::optional<std::string>("s"), std::optional<std::string>()}) {
    const support::ProcessResult result =
        tree.run(make(), {{"KERNCAP_DB", (tree.path() / "u0.c" / (session ? "a" : "b")).string()},
                          {"KERNCAP_CC_SESSION", session},
                          {"TMPDIR", tree.path().string()}});
    EXPECT_EQ(result.exit_status, 0);
    EXPECT_EQ(warnings(result), 1U) << result.standard_error;
  }
}

// The wrapper itself, killed at any moment of its few milliseconds, thousands of times, while others go on.
TEST_F(DamagedDatabase, wrappers_killed_at_random_points_break_neither_the_log_nor_other_compiles) {
  tree.write("fakecc", "#!/bin/sh\n: > \"$5\"\n");
  std::filesystem::permissions(tree.path() / "fakecc", std::filesystem::perms::owner_all);
  std::mt19937 random(23);
  constexpr int rounds = 500, at_once = 4;
  std::size_t ended = 0, killed = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::pair<pid_t, std::string>> children;
    for (int i = 0; i < at_once; ++i) {
      const std::string output = "k" + std::to_string(round) + "_" + std::to_string(i) + ".o";
      const pid_t child = ::fork();
      if (child == 0) {
        if (::chdir(tree.path().c_str()) != 0) ::_exit(99);
        ::setenv("KERNCAP_DB", tree.database_path().c_str(), 1);
        ::execl(program.c_str(), program.c_str(), "./fakecc", "-O1", "-c", "c.c", "-o", output.c_str(), nullptr);
        ::_exit(98);
      }
      children.emplace_back(child, output);
    }
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (i % 2 == 0) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
      ::kill(children[i].first, SIGKILL);
    }
    for (const auto& [child, output] : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      if (WIFSIGNALED(status)) {
        ++killed;
      } else {
        EXPECT_EQ(status, 0);
        ++ended;
      }
    }
  }
  EXPECT_GT(killed, 300U);
  const compdb::Database database = tree.database();
  const std::vector<Record> records = database.records();
  EXPECT_GE(records.size(), ended);
  EXPECT_LE(records.size(), ended + killed);
  for (const Record& record : records) EXPECT_EQ(record.argv.at(3), "c.c");
  tree.compile({"gcc", "-c", "c.c"});
  EXPECT_THAT(tree.database().find_output(tree.path() / "c.o"), SizeIs(1));
}

}  // namespace
}  // namespace kerncap::wrapper
