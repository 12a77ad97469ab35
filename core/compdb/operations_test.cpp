#include "core/compdb/operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "core/compdb/codec.h"
#include "core/compdb/file_system.h"
#include "core/compdb/folder.h"
#include "core/compdb/frame.h"
#include "core/compdb/log_reader.h"
#include "core/compdb/log_writer.h"
#include "core/support/error.h"
#include "core/support/file.h"
#include "core/support/json.h"
#include "core/support/process.h"

namespace kerncap::compdb {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Operations : public ::testing::Test {
 protected:
  Operations() {
    create_database(folder());
    fs::create_directory(build());
  }
  fs::path folder() const { return scratch_.path() / "db"; }
  fs::path build() const { return scratch_.path() / "build"; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((build() / name).parent_path());
    support::write_file_atomically(build() / name, text, 0644);
  }
  // A unit as the wrapper would record it; its object is written too.
  Record unit(const std::string& name, std::uint64_t time, int exit_status = 0) const {
    Record record;
    record.host = "box";
    record.database = folder().string();
    record.started = time;
    record.directory = build().string();
    record.argv = record.expanded_argv = {"cc", "-c", name + ".c", "-DT=" + std::to_string(time)};
    record.compiler.family = "gcc";
    record.source = name + ".c";
    record.output = (build() / (name + ".o")).string();
    record.exit_status = exit_status;
    record.language = "c";
    return record;
  }
  void append(const Record& record) const { ASSERT_EQ(append_record(folder().string(), record), 0); }
  fs::path only_log() const {
    const std::vector<fs::path> logs = log_files(folder());
    EXPECT_EQ(logs.size(), 1U);
    return logs.empty() ? fs::path() : logs.front();
  }
  static void run(std::vector<std::string> argv, const fs::path& where) {
    support::Command command;
    command.argv = std::move(argv);
    command.working_directory = where;
    command.standard_output = support::Stream::capture;
    command.standard_error = support::Stream::capture;
    const support::ProcessResult result = support::run(command);
    ASSERT_TRUE(result.succeeded()) << result.standard_output << result.standard_error;
  }

 private:
  support::TemporaryFolder scratch_;
};

// --- which record counts
TEST_F(Operations, the_newest_good_record_of_an_output_wins) {
  append(unit("a", 20));
  append(unit("a", 10));
  append(unit("a", 30, 1));
  append(unit("b", 5, 1));
  const Database database(folder());
  const std::vector<Record> records = database.records();
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(records[0].started + records[1].started, 25U);
  EXPECT_EQ(database.statistics().superseded, 2U);
  EXPECT_EQ(database.statistics().failed, 2U);
}

TEST_F(Operations, what_the_wrapper_recorded_wins_over_what_was_imported) {
  append(unit("a", 10));
  Record imported = unit("a", 99);
  imported.origin = Origin::compile_commands;
  append(imported);
  EXPECT_EQ(Database(folder()).records().at(0).origin, Origin::recorded);
}

TEST_F(Operations, a_database_that_is_missing_or_newer_is_said_so) {
  EXPECT_THROW(Database(folder() / "none"), support::Error);
  support::write_file_atomically(folder() / "VERSION", "2 kerncap compilation database\n");
  try {
    Database database(folder());
    FAIL();
  } catch (const support::Error& error) {
    EXPECT_EQ(error.code(), support::ExitCode::bad_input);
    EXPECT_THAT(error.what(), HasSubstr("has version 2"));
  }
}

TEST_F(Operations, logs_of_several_hosts_and_fragments_are_one_database) {
  append(unit("a", 1));
  fs::create_directories(folder() / "fragments");
  support::write_file_atomically(folder() / "logs/other.kclog",
                                 make_frame(FrameType::record, encode_record(unit("b", 2))));
  support::write_file_atomically(folder() / "fragments/1-x-2.kclog",
                                 make_frame(FrameType::record, encode_record(unit("c", 3))));
  support::write_file_atomically(folder() / "fragments/half.kclog.tmp", "half");
  EXPECT_THAT(Database(folder()).records(), SizeIs(3));
}

// --- damage
TEST_F(Operations, verify_finds_every_kind_of_damage) {
  append(unit("a", 1));
  append(unit("b", 2));
  EXPECT_TRUE(verify(folder()).good());
  EXPECT_EQ(verify(folder()).records, 2U);

  std::string log = support::read_text_file(only_log());
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::string damaged = log;
    const std::size_t at = random() % damaged.size();
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    support::write_file_atomically(only_log(), damaged, 0644);
    const VerifyReport report = verify(folder());
    EXPECT_THAT(report.damage, SizeIs(1)) << "byte " << at;
    EXPECT_EQ(Database(folder()).records().size(), 1U);
  }
  support::write_file_atomically(only_log(), log.substr(0, log.size() - 1), 0644);
  EXPECT_THAT(verify(folder()).damage, ElementsAre(HasSubstr("are no record")));
}

TEST_F(Operations, verify_checks_archived_sources) {
  fs::create_directories(folder() / "blobs");
  const std::string name(64, 'a');
  support::write_file_atomically(folder() / "blobs" / name, "not that digest");
  EXPECT_THAT(verify(folder()).damage, ElementsAre(HasSubstr("another digest than its name")));
  EXPECT_THROW(Database(folder()).blob(name), support::Error);
  EXPECT_THROW(Database(folder()).blob("../VERSION"), support::Error);
}

TEST_F(Operations, writers_killed_at_random_points_lose_no_good_record_and_none_is_torn) {
  // Each child appends records of very different sizes until it is killed; it tells of each one that was written.
  std::mt19937 random(11);
  std::uint64_t promised = 0;
  for (int round = 0; round < 300; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      std::mt19937 sizes(static_cast<unsigned>(round));
      for (std::uint64_t i = 1;; ++i) {
        Record record = unit("k" + std::to_string(round) + "_" + std::to_string(i), i);
        std::string noise(sizes() % 200'000, ' ');
        for (char& c : noise) c = static_cast<char>(sizes());
        record.argv.push_back(noise);
        if (append_record(folder().string(), record) != 0) ::_exit(1);
        if (::write(ends[1], "x", 1) != 1) ::_exit(1);
      }
    }
    ::close(ends[1]);
    char first = 0;
    const bool began = ::read(ends[0], &first, 1) == 1;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    std::uint64_t told = began ? 1 : 0;
    char buffer[256];
    for (ssize_t count = 0; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;)
      told += static_cast<std::uint64_t>(count);
    ::close(ends[0]);
    promised += told;
  }
  EXPECT_GE(Database(folder()).records().size(), promised);
  EXPECT_GT(promised, 300U);
}

TEST_F(Operations, many_writers_at_once_interleave_whole_records) {
  constexpr int writers = 16, each = 50;
  std::vector<pid_t> children;
  for (int writer = 0; writer < writers; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0; i < each; ++i) {
        if (append_record(folder().string(), unit("w" + std::to_string(writer) + "_" + std::to_string(i), 1)) != 0)
          ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const Database database(folder());
  EXPECT_EQ(database.records().size(), std::size_t{writers} * each);
  EXPECT_EQ(database.statistics().torn, 0U);
}

// --- compaction
TEST_F(Operations, compaction_keeps_what_counts_and_drops_the_rest) {
  for (std::uint64_t time = 1; time <= 50; ++time) append(unit("a", time));
  append(unit("b", 1));
  std::ofstream(only_log(), std::ios::app) << "damage";
  const CompactReport report = compact(folder());
  EXPECT_EQ(report.records_before, 51U);
  EXPECT_EQ(report.records_after, 2U);
  EXPECT_LT(report.bytes_after, report.bytes_before);
  EXPECT_TRUE(verify(folder()).good());
  const std::vector<Record> records = Database(folder()).records();
  ASSERT_THAT(records, SizeIs(2));
  append(unit("c", 3));
  EXPECT_THAT(Database(folder()).records(), SizeIs(3));
  EXPECT_EQ(compact(folder()).records_after, 3U);
}

TEST_F(Operations, compaction_of_a_database_without_records_does_nothing) {
  const CompactReport report = compact(folder());
  EXPECT_EQ(report.records_before, 0u);
  EXPECT_EQ(report.records_after, 0u);
  append(unit("later", 1));
  EXPECT_THAT(Database(folder()).records(), SizeIs(1));
}

TEST_F(Operations, compaction_while_writers_write_loses_nothing) {
  constexpr int writers = 4, each = 300;
  std::vector<pid_t> children;
  for (int writer = 0; writer < writers; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0; i < each; ++i) {
        if (append_record(folder().string(), unit("w" + std::to_string(writer) + "_" + std::to_string(i), 1)) != 0)
          ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  int rounds = 0;
  for (pid_t child : children) {
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      compact(folder());
      Database(folder()).records();
      ++rounds;
    }
    EXPECT_EQ(status, 0);
  }
  EXPECT_GT(rounds, 0);
  compact(folder());
  EXPECT_EQ(Database(folder()).records().size(), std::size_t{writers} * each);
}

// --- the index
TEST_F(Operations, a_damaged_or_foreign_index_changes_no_answer) {
  for (int i = 0; i < 20; ++i) append(unit("u" + std::to_string(i), static_cast<std::uint64_t>(i)));
  ASSERT_THAT(Database(folder()).find_output(build() / "u7.o"), SizeIs(1));
  const std::string good = support::read_text_file(folder() / "index");
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::string bad = good;
    if (round % 4 == 0) bad.resize(random() % bad.size());
    for (int i = 0; i < 3 && !bad.empty(); ++i) bad[random() % bad.size()] = static_cast<char>(random());
    support::write_file_atomically(folder() / "index", bad, 0644);
    // Damage inside may cost an answer, but never gives a wrong one.
    for (const Match& match : Database(folder()).find_output(build() / "u7.o")) EXPECT_EQ(match.record.source, "u7.c");
  }
  fs::remove(folder() / "index");
  EXPECT_THAT(Database(folder()).find_output(build() / "u7.o"), SizeIs(1));
}

TEST_F(Operations, the_index_follows_the_logs) {
  append(unit("a", 1));
  EXPECT_THAT(Database(folder()).find_source(build() / "a.c"), SizeIs(1));
  append(unit("b", 2));
  Record later = unit("a", 3);
  later.source = "other.c";
  append(later);
  const Database database(folder());
  EXPECT_THAT(database.find_source(build() / "b.c"), SizeIs(1));
  EXPECT_THAT(database.find_source(build() / "a.c"), IsEmpty());
  EXPECT_THAT(database.find_source(build() / "other.c"), SizeIs(1));
  EXPECT_EQ(database.statistics().records, 3U);
  EXPECT_EQ(database.statistics().superseded, 1U);
}

TEST_F(Operations, incremental_and_full_index_give_the_same_answers) {
  std::mt19937 random(9);
  for (std::uint64_t time = 1; time <= 60; ++time) {
    Record record = unit("m" + std::to_string(random() % 10), time, random() % 4 == 0 ? 1 : 0);
    record.cached = random() % 3 == 0;
    record.expanded_argv = {"cc", std::to_string(random() % 2)};
    for (int i = 0; i < 3; ++i) {
      SourceFile file;
      file.spelling = file.path = "/h/" + std::to_string(random() % 6) + ".h";
      record.files.push_back(file);
    }
    append(record);
    const auto answers = [&] {
      const Database database(folder());
      std::string all =
          std::to_string(database.statistics().records) + " " + std::to_string(database.statistics().failed);
      for (int i = 0; i < 10; ++i) {
        for (const Match& m : database.find_output(build() / ("m" + std::to_string(i) + ".o")))
          all += " " + std::to_string(m.record.started);
      }
      for (int i = 0; i < 6; ++i) {
        std::vector<std::string> found;
        for (const UnitSummary& unit : database.find_header("/h/" + std::to_string(i) + ".h"))
          found.push_back(unit.output);
        std::ranges::sort(found);
        all += " |";
        for (const std::string& output : found) all += " " + base_name(output);
      }
      return all;
    };
    const std::string incremental = answers();
    fs::remove(folder() / "index");
    EXPECT_EQ(answers(), incremental) << "after " << time;
  }
}

TEST_F(Operations, a_record_that_is_read_late_counts_by_its_time) {
  append(unit("a", 50));
  append(unit("b", 50, 1));
  EXPECT_THAT(Database(folder()).records(), SizeIs(2));  // indexed now
  // Another host's log arrives with records of an earlier time.
  Record of_a = unit("a", 10), of_b = unit("b", 10);
  of_a.source = of_b.source = "earlier.c";
  support::write_file_atomically(folder() / "logs/other.kclog", make_frame(FrameType::record, encode_record(of_a)) +
                                                                    make_frame(FrameType::record, encode_record(of_b)));
  const auto check = [&] {
    const Database database(folder());
    EXPECT_EQ(database.find_output(build() / "a.o").at(0).record.source, "a.c");
    EXPECT_EQ(database.find_output(build() / "b.o").at(0).record.source, "earlier.c");  // the other one had failed
    EXPECT_EQ(database.statistics().superseded, 2U);
    EXPECT_EQ(database.index_report().records, 2U);
  };
  check();
  fs::remove(folder() / "index");
  check();
}

TEST_F(Operations, a_cache_hit_keeps_the_jobs_of_the_compile_before_it_through_compaction) {
  Record compiled = unit("a", 10);
  compiled.expanded_argv = {"clang", "-c", "a.c"};
  compiled.jobs = {{.tool = Job::Tool::cc1, .argv = {"clang", "-cc1"}, .target = "host", .output = "a.o"}};
  SourceFile header;
  header.spelling = header.path = "/h/a.h";
  compiled.files = {header};
  append(compiled);
  EXPECT_THAT(Database(folder()).records(), SizeIs(1));
  for (std::uint64_t time : {20U, 30U}) {
    Record hit = compiled;
    hit.started = time;
    hit.cached = true;
    hit.jobs.clear();
    hit.files.clear();
    append(hit);
    const auto check = [&] {
      const Database database(folder());
      const std::vector<Match> matches = database.find_output(build() / "a.o");
      ASSERT_THAT(matches, SizeIs(1));
      EXPECT_EQ(matches[0].record.started, time);
      EXPECT_THAT(matches[0].record.jobs, SizeIs(1));
      EXPECT_THAT(database.find_header("/h/a.h"), SizeIs(1));
    };
    check();
    fs::remove(folder() / "index");
    check();
  }
  EXPECT_EQ(compact(folder()).records_after, 1U);
  EXPECT_THAT(Database(folder()).find_output(build() / "a.o").at(0).record.jobs, SizeIs(1));
  EXPECT_THAT(Database(folder()).find_header("/h/a.h"), SizeIs(1));
}

TEST_F(Operations, a_unit_is_known_by_its_target) {
  Record record = unit("a", 1);
  record.output = (build() / "sub/CMakeFiles/fast.dir/deep/a.o").string();
  record.device_targets = {"gfx90a:xnack+", "gfx1030"};
  append(record);
  const Database database(folder());
  for (const char* target : {"fast", "gfx90a", "gfx90a:xnack+", "gfx1030"}) {
    EXPECT_THAT(database.find_target(target), SizeIs(1)) << target;
  }
  for (const char* target : {"deep", "gfx9", "gfx90a:xnack-", "fast.dir", ""}) {
    EXPECT_THAT(database.find_target(target), IsEmpty()) << target;
  }
}

// --- import and export
TEST_F(Operations, compile_commands_are_imported_and_jobs_recovered) {
  if (!support::find_program("clang-15")) GTEST_SKIP() << "clang-15 is not installed";
  write("i.c", "#include \"i.h\"\nint i = I;\n");
  write("i.h", "#define I 1\n");
  const std::string where = build().string();
  write("compile_commands.json",
        "[{\"directory\":\"" + where +
            "\",\"file\":\"i.c\",\"command\":\"ccache clang-15 -DX=\\\\\\\"a\\\\\\\" -o i.o -c i.c\"},"
            " {\"directory\":\"" +
            where +
            "\",\"file\":\"j.c\",\"arguments\":[\"clang-15\",\"-c\",\"j.c\"],\"output\":\"j.o\"},"
            " {\"directory\":\"" +
            where + "\",\"file\":\"k.c\",\"command\":\"cc $(flags) -c k.c\"}, 7]");
  const ImportReport report = import_build(folder(), build() / "compile_commands.json");
  EXPECT_EQ(report.imported, 2U);
  EXPECT_EQ(report.skipped, 2U);
  const auto matches = Database(folder()).find_source(build() / "i.c");
  ASSERT_THAT(matches, SizeIs(1));
  Record record = matches[0].record;
  EXPECT_EQ(record.origin, Origin::compile_commands);
  EXPECT_EQ(record.output, (build() / "i.o").string());
  EXPECT_THAT(record.argv, ElementsAre("clang-15", "-DX=\"a\"", "-o", "i.o", "-c", "i.c"));
  std::string reason;
  ASSERT_TRUE(recover_jobs(record, &reason)) << reason;
  ASSERT_THAT(record.jobs, SizeIs(1));
  EXPECT_THAT(record.jobs[0].argv, Contains("X=\"a\""));
  ASSERT_THAT(record.passes, SizeIs(1));
  EXPECT_THAT(record.passes[0].files, SizeIs(2));
  EXPECT_FALSE(fs::exists(build() / "i.o"));  // a dry run builds nothing
  Record gone = Database(folder()).find_source(build() / "j.c").at(0).record;
  EXPECT_FALSE(recover_jobs(gone, &reason));
  EXPECT_THAT(reason, HasSubstr("dry run"));
}

TEST_F(Operations, a_ninja_tree_is_imported_with_its_dependencies) {
  if (!support::find_program("ninja")) GTEST_SKIP() << "ninja is not installed";
  write("n.c", "#include \"n.h\"\nint main(void) { return N; }\n");
  write("n.h", "#define N 0\n");
  write("build.ninja",
        "rule cc\n  command = gcc -MD -MF $out.d -c $in -o $out\n  depfile = $out.d\n  deps = gcc\nrule link\n  "
        "command = gcc $in -o $out\n"
        "build n.o: cc n.c\nbuild app: link n.o\n");
  run({"ninja"}, build());
  const ImportReport report = import_build(folder(), build());
  EXPECT_EQ(report.imported, 1U);
  EXPECT_EQ(report.skipped, 0U);
  const auto matches = Database(folder()).find_header(build() / "n.h");
  ASSERT_THAT(matches, SizeIs(1));
  EXPECT_EQ(matches[0].origin, Origin::ninja);
  EXPECT_FALSE(matches[0].stale);
}

TEST_F(Operations, cmakes_file_api_is_the_last_resort) {
  if (!support::find_program("cmake")) GTEST_SKIP() << "cmake is not installed";
  write("src/CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.25)\nproject(p C)\nadd_library(l STATIC "
        "sub/f.c)\ntarget_compile_definitions(l PRIVATE F=\"a b\")\n"
        "target_include_directories(l PRIVATE inc)\n");
  write("src/sub/f.c", "#include <f.h>\nconst char* f = F;\n");
  write("src/inc/f.h", "\n");
  write("out/.cmake/api/v1/query/codemodel-v2", "");
  write("out/.cmake/api/v1/query/toolchains-v1", "");
  run({"cmake", "-S", "src", "-B", "out", "-G", "Unix Makefiles", "-DCMAKE_BUILD_TYPE=Release",
       "-DCMAKE_C_COMPILER=gcc"},
      build());
  run({"cmake", "--build", "out"}, build());
  const ImportReport report = import_build(folder(), build() / "out");
  EXPECT_EQ(report.imported, 1U);
  const Record record = Database(folder()).find_source(build() / "src/sub/f.c").at(0).record;
  EXPECT_EQ(record.origin, Origin::cmake_file_api);
  EXPECT_EQ(record.output, (build() / "out/CMakeFiles/l.dir/sub/f.c.o").string());
  EXPECT_TRUE(fs::exists(record.output));
  EXPECT_THAT(record.argv, Contains("-I" + (build() / "src/inc").string()));
}

TEST_F(Operations, a_folder_that_is_no_build_tree_is_said_so) {
  EXPECT_THROW(import_build(folder(), build()), support::Error);
  EXPECT_THROW(import_build(folder(), build() / "none"), support::Error);
}

TEST_F(Operations, the_export_is_a_compile_commands_json) {
  Record hip = unit("h", 1);
  hip.language = "hip";
  hip.expanded_argv = {"hipcc", "-c", "h.c", "--offload-arch=gfx90a", "-DX=\"y\""};
  hip.compiler.path = "/usr/bin/hipcc";
  hip.passes = {{.target = "gfx90a", .files = {}}, {.target = "host", .files = {}}};
  append(hip);
  Record probe = unit("p", 2);
  probe.configure_check = true;
  append(probe);
  const fs::path file = build() / "cc.json";
  EXPECT_EQ(export_compile_commands(folder(), file, {}), 1U);
  support::Json entries = support::read_json_file(file);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0]["file"], (build() / "h.c").string());
  EXPECT_EQ(entries[0]["output"], (build() / "h.o").string());
  EXPECT_EQ(entries[0]["arguments"],
            (support::Json{"/usr/bin/hipcc", "-x", "hip", "-c", "h.c", "--offload-arch=gfx90a", "-DX=\"y\""}));
  EXPECT_EQ(export_compile_commands(folder(), file, {.per_pass = true, .configure_checks = true}), 3U);
  entries = support::read_json_file(file);
  EXPECT_EQ(entries[0]["arguments"], (support::Json{"/usr/bin/hipcc", "-x", "hip", "--cuda-device-only",
                                                    "--offload-arch=gfx90a", "-c", "h.c", "-DX=\"y\""}));
}

}  // namespace
}  // namespace kerncap::compdb
