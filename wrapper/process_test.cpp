// kerncap-cc as a process: what it hands on, how it ends, and that nothing on our side can break a build.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "core/compdb/folder.h"
#include "wrapper/build_for_test.h"
#include "wrapper/masquerade.h"

namespace kerncap::wrapper {
namespace {

using compdb::Record;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class Process : public ::testing::Test {
 protected:
  // A compiler that is a shell script, for everything that a real one does not do on request.
  void fake_compiler(const std::string& script) const {
    tree.write("fakecc", "#!/bin/sh\n" + script + "\n");
    ::chmod((tree.path() / "fakecc").c_str(), 0755);
  }
  BuildTree tree;
};

TEST_F(Process, the_exit_status_is_the_compilers) {
  for (int status : {0, 1, 42, 254}) {
    fake_compiler("exit " + std::to_string(status));
    EXPECT_EQ(tree.run({program, "./fakecc", "-c", "c.c"}).exit_status, status);
  }
}

TEST_F(Process, a_crash_stays_the_same_signal_and_is_recorded_as_failed) {
  fake_compiler("kill -SEGV $$");
  const support::ProcessResult result = tree.run({program, "./fakecc", "-c", "c.c"});
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.exit_status, 128 + SIGSEGV);
  EXPECT_EQ(tree.unit().exit_status, 128 + SIGSEGV);
}

TEST_F(Process, an_interrupt_reaches_the_compiler_and_ends_the_wrapper_after_it) {
  fake_compiler("trap 'echo seen > caught; exit 9' TERM\necho ready > ready\nwhile :; do sleep 0.05; done");
  const pid_t child = ::fork();
  if (child == 0) {
    ::chdir(tree.path().c_str());
    ::setenv("KERNCAP_DB", tree.database_path().c_str(), 1);
    ::execl(program.c_str(), program.c_str(), "./fakecc", "-c", "c.c", nullptr);
    ::_exit(99);
  }
  for (int i = 0; i < 400 && !tree.exists("ready"); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(25));
  ASSERT_TRUE(tree.exists("ready"));
  ::kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 9);
  EXPECT_TRUE(tree.exists("caught"));
  EXPECT_EQ(tree.unit().exit_status, 9);
}

TEST_F(Process, descriptors_standard_input_and_arguments_are_handed_on) {
  fake_compiler("cat\nfor a; do printf '[%s]' \"$a\"; done\necho from-3 >&3");
  const support::ProcessResult result =
      tree.run({"/bin/sh", "-c", "exec 3>three; exec \"$@\"", "sh", program, "./fakecc", "-c", "a b.c", "", "$x\n"}, {},
               "typed");
  EXPECT_EQ(result.standard_output, "typed[-c][a b.c][][$x\n]");
  EXPECT_EQ(tree.read("three"), "from-3\n");
}

TEST_F(Process, no_temporary_file_is_left_behind) {
  std::filesystem::create_directory(tree.path() / "tmp");
  tree.compile({"clang-15", "-c", "c.c"}, {{"TMPDIR", (tree.path() / "tmp").string()}});
  EXPECT_TRUE(std::filesystem::is_empty(tree.path() / "tmp"));
}

TEST_F(Process, an_unusable_temporary_folder_does_not_matter) {
  tree.compile({"gcc", "-c", "c.c", "-pipe"}, {{"TMPDIR", "/nonexistent"}});
  EXPECT_THAT(tree.units(), SizeIs(1));
}

TEST_F(Process, without_a_database_the_compiler_just_runs) {
  const support::ProcessResult result = tree.run({program, "gcc", "-c", "c.c"}, {{"KERNCAP_DB", std::nullopt}});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.standard_error, "");
  EXPECT_TRUE(tree.exists("c.o"));
  EXPECT_THAT(tree.database().records(), IsEmpty());
}

TEST_F(Process, the_nearest_database_above_the_working_directory_is_used) {
  compdb::create_database(tree.path() / ".kerncap");
  std::filesystem::create_directories(tree.path() / "deep/er");
  support::Command command;
  command.argv = {program, "gcc", "-c", "../../c.c"};
  command.working_directory = tree.path() / "deep/er";
  command.environment["KERNCAP_DB"] = std::nullopt;
  ASSERT_EQ(support::run(command).exit_status, 0);
  EXPECT_THAT(compdb::Database(tree.path() / ".kerncap").records(), SizeIs(1));
}

TEST_F(Process, a_database_that_cannot_be_written_is_one_warning_per_build_and_no_failure) {
  const Variables broken = {{"KERNCAP_DB", (tree.path() / "c.c" / "db").string()}};
  const support::ProcessResult first = tree.run({program, "gcc", "-c", "c.c"}, broken);
  EXPECT_EQ(first.exit_status, 0);
  EXPECT_THAT(first.standard_error, HasSubstr("kerncap-cc: warning: compiles are not recorded"));
  const support::ProcessResult second = tree.run({program, "gcc", "-c", "d.cpp"}, broken);
  EXPECT_EQ(second.exit_status, 0);
  EXPECT_EQ(second.standard_error, "");
  EXPECT_TRUE(tree.exists("d.o"));
}

TEST_F(Process, a_full_disk_is_one_warning_and_no_failure) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  std::filesystem::create_directories(tree.database_path() / "logs");
  char host[65] = {};
  ::gethostname(host, sizeof host - 1);
  std::filesystem::create_symlink("/dev/full", tree.database_path() / "logs" / (std::string(host) + ".kclog"));
  const support::ProcessResult result = tree.run({program, "gcc", "-c", "c.c"});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_THAT(result.standard_error, HasSubstr("No space left"));
}

TEST_F(Process, a_missing_compiler_is_said_in_one_sentence) {
  const support::ProcessResult named = tree.run({program, "no-such-compiler", "-c", "c.c"});
  EXPECT_EQ(named.exit_status, 127);
  EXPECT_THAT(named.standard_error, HasSubstr("there is no program 'no-such-compiler' on PATH"));
  const support::ProcessResult none = tree.run({program}, {{"KERNCAP_CC_COMPILER", std::nullopt}});
  EXPECT_EQ(none.exit_status, 127);
  EXPECT_THAT(none.standard_error, HasSubstr("no compiler named"));
}

TEST_F(Process, the_compiler_may_be_named_by_a_variable) {
  const Variables named = {{"KERNCAP_CC_COMPILER", "gcc"}};
  EXPECT_EQ(tree.run({program, "-c", "c.c"}, named).exit_status, 0);
  EXPECT_EQ(tree.run({program, "main.c", "-o", "app"}, named).exit_status, 0);
  // A program that is named all the same wins.
  EXPECT_EQ(tree.run({program, "clang-15", "-c", "main.c"}, named).exit_status, 0);
  const std::vector<Record> units = tree.units();
  ASSERT_THAT(units, SizeIs(3));
  EXPECT_EQ(units[0].compiler.family, "gcc");
  EXPECT_EQ(units[2].compiler.family, "clang");
}

TEST_F(Process, the_compiler_may_be_named_by_an_option_or_a_settings_file) {
  tree.write("kerncap.toml", "# settings\nsources = 'reference'\ncompiler = \"gcc\"\n[replay]\ncompiler = 'no'\n");
  tree.write("deep/kerncap.toml", "compiler = '../my cc'\n");
  tree.write("deep/c.c", "int c;\n");
  std::filesystem::create_symlink(*support::find_program("clang-15"), tree.path() / "my cc");
  const Variables unnamed = {{"KERNCAP_CC_COMPILER", std::nullopt}};
  EXPECT_EQ(tree.run({program, "-c", "c.c", "-o", "by_file.o"}, unnamed).exit_status, 0);
  EXPECT_EQ(tree.run({"/bin/sh", "-c", "cd deep && exec " + program + " -c c.c"}, unnamed).exit_status, 0);
  // The option is first, then the environment, then the file.
  EXPECT_EQ(tree.run({program, "-c", "d.cpp", "-o", "e.o"}, {{"KERNCAP_CC_COMPILER", "g++"}}).exit_status, 0);
  EXPECT_EQ(tree.run({program, "--kerncap-compiler=clang-15", "-c", "c.c", "-o", "by_option.o"},
                     {{"KERNCAP_CC_COMPILER", "g++"}})
                .exit_status,
            0);
  std::map<std::string, std::string> compilers;
  for (const Record& unit : tree.units())
    compilers[std::filesystem::path(unit.output).filename()] = std::filesystem::path(unit.compiler.path).filename();
  EXPECT_THAT(compilers, ElementsAre(std::pair("by_file.o", "gcc"), std::pair("by_option.o", "clang-15"),
                                     std::pair("c.o", "my cc"), std::pair("e.o", "g++")));
  for (const char* broken : {"compiler = 7\n", "compiler = \"open\n", "[x]\ncompiler = 'gcc'\n", ""}) {
    tree.write("kerncap.toml", broken);
    const support::ProcessResult result = tree.run({program, "-c", "c.c"}, unnamed);
    EXPECT_EQ(result.exit_status, 127);
    EXPECT_THAT(result.standard_error, HasSubstr("'compiler' in kerncap.toml"));
  }
}

// --- by name
class Masquerade : public Process {
 protected:
  Variables masked() const {
    const char* path = std::getenv("PATH");
    return {{"PATH", masquerade_folder + ":" + path}};
  }
};

TEST_F(Masquerade, the_next_compiler_of_that_name_is_run) {
  for (const char* name : {"cc", "gcc", "g++", "c++", "clang", "clang++"}) {
    const std::string output = std::string(name) + ".o";
    ASSERT_EQ(tree.run({masquerade_folder + "/" + name, "-x", "c", "-c", "c.c", "-o", output}, masked()).exit_status, 0)
        << name;
  }
  EXPECT_THAT(tree.units(), SizeIs(6));
  for (const Record& unit : tree.units()) EXPECT_THAT(unit.compiler.path, Not(HasSubstr("masquerade")));
}

TEST_F(Masquerade, hipcc_and_the_clang_it_calls_give_one_record) {
  KERNCAP_NEEDS("hipcc");
  const support::ProcessResult result =
      tree.run({"/bin/sh", "-c", "hipcc -nogpuinc -nogpulib --offload-arch=gfx90a -c b.hip"}, masked());
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const Record unit = tree.unit();
  EXPECT_EQ(unit.compiler.family, "hipcc");
  EXPECT_EQ(targets_of_passes(unit), (Words{"gfx90a", "host"}));
  for (const auto& [name, value] : unit.environment) EXPECT_THAT(value, Not(HasSubstr(masquerade_folder)));
}

TEST_F(Masquerade, every_way_to_meet_oneself_ends) {
  // As launcher of its own link, twice in a row, through a copy, and through a hard link.
  EXPECT_EQ(tree.run({program, masquerade_folder + "/gcc", "-c", "c.c"}, masked()).exit_status, 0);
  EXPECT_EQ(tree.run({program, program, "gcc", "-c", "c.c"}, masked()).exit_status, 0);
  EXPECT_EQ(tree.units().size(), 1U);
  std::filesystem::create_directories(tree.path() / "one");
  std::filesystem::create_directories(tree.path() / "two");
  for (const char* folder : {"one", "two"}) {
    std::filesystem::copy_file(program, tree.path() / folder / "gcc");
  }
  const std::string path = (tree.path() / "one").string() + ":" + (tree.path() / "two").string();
  const support::ProcessResult circle = tree.run({(tree.path() / "one/gcc").string(), "-c", "c.c"}, {{"PATH", path}});
  EXPECT_EQ(circle.exit_status, 127);
  EXPECT_THAT(circle.standard_error, HasSubstr("no program 'gcc' on PATH besides Kerncap's own"));
  const support::ProcessResult deep = tree.run({program, "gcc", "-c", "c.c"}, {{"KERNCAP_CC_ACTIVE", "16"}});
  EXPECT_EQ(deep.exit_status, 127);
  EXPECT_THAT(deep.standard_error, HasSubstr("again and again"));
}

TEST_F(Masquerade, a_compiler_cache_on_the_path_behind_it_still_works) {
  if (!std::filesystem::exists("/usr/lib/ccache/gcc")) GTEST_SKIP() << "no ccache links";
  Variables variables = masked();
  variables["PATH"] = masquerade_folder + ":/usr/lib/ccache:" + std::getenv("PATH");
  variables["CCACHE_DIR"] = (tree.path() / "ccache").string();
  ASSERT_EQ(tree.run({"/bin/sh", "-c", "gcc -MD -c c.c"}, variables).exit_status, 0);
  EXPECT_THAT(own_files(tree.unit(), "host"), ElementsAre("c.c", "c.h"));
}

// --- the environment of `kerncap build`
class RecordedBuild : public Process {
 protected:
  support::ProcessResult build(Words command, Variables extra = {}) const {
    Environment environment = build_environment({.program_folder = std::filesystem::path(program).parent_path(),
                                                 .database = tree.database_path(),
                                                 .command = command});
    environment.merge(extra);
    return tree.run(std::move(command), environment);
  }
};

TEST_F(RecordedBuild, plain_make_is_recorded_whatever_it_calls_its_compiler) {
  tree.write("Makefile",
             "all: c.o d.o main.o\nc.o: c.c\n\tgcc -c c.c\nd.o: d.cpp\n\t$(CXX) -c d.cpp\nmain.o: main.c\n\tclang-15 "
             "-c main.c\n");
  const support::ProcessResult result = build({"make"});
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_THAT(tree.units(), SizeIs(3));
}

TEST_F(RecordedBuild, cmake_keeps_the_real_compiler_in_its_cache_and_links_with_lto) {
  tree.write("CMakeLists.txt",
             "cmake_minimum_required(VERSION 3.25)\nproject(p C CXX)\nset(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)\n"
             "add_library(l STATIC c.c d.cpp)\nadd_executable(app main.c)\ntarget_link_libraries(app l)\n");
  ASSERT_EQ(build({"cmake", "-S", ".", "-B", "out", "-G", "Ninja"}).exit_status, 0);
  EXPECT_THAT(tree.read("out/CMakeCache.txt"), Not(HasSubstr("masquerade/c")));
  const support::ProcessResult result = build({"cmake", "--build", "out"});
  ASSERT_EQ(result.exit_status, 0) << result.standard_output;
  EXPECT_EQ(std::ranges::count_if(tree.units(), [](const Record& unit) { return !unit.configure_check; }), 3);
}

TEST_F(RecordedBuild, a_script_that_runs_cmake_is_recorded_once_and_its_lto_build_links) {
  tree.write("CMakeLists.txt",
             "cmake_minimum_required(VERSION 3.25)\nproject(p C)\nset(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)\n"
             "add_library(l STATIC c.c)\nadd_executable(app main.c)\ntarget_link_libraries(app l)\n");
  const support::ProcessResult result =
      build({"/bin/sh", "-c", "cmake -S . -B out -G Ninja && cmake --build out && ./out/app"});
  ASSERT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
  EXPECT_EQ(std::ranges::count_if(tree.units(), [](const Record& unit) { return !unit.configure_check; }), 2);
}

TEST_F(RecordedBuild, compilers_that_are_not_installed_stay_invisible) {
  EXPECT_NE(build({"/bin/sh", "-c", "command -v amdclang++"}).exit_status, 0);
  EXPECT_THAT(build({"/bin/sh", "-c", "command -v gcc"}).standard_output, HasSubstr("masquerade/gcc"));
}

// --- whole builds
TEST_F(Process, make_with_its_jobserver_records_every_unit_once) {
  std::string objects;
  for (int i = 0; i < 12; ++i) {
    tree.write("u" + std::to_string(i) + ".c", "int u" + std::to_string(i) + ";\n");
    objects += " u" + std::to_string(i) + ".o";
  }
  tree.write("Makefile", "all: " + objects + "\n%.o: %.c\n\t+$(CC) -c $< -o $@\n");
  const support::ProcessResult result = tree.run({"make", "-j4", "CC=" + program + " gcc"});
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(tree.units(), SizeIs(12));
}

TEST_F(Process, cmake_with_launchers_records_the_build_and_tags_its_own_probes) {
  tree.write("CMakeLists.txt",
             "cmake_minimum_required(VERSION 3.25)\nproject(p C CXX)\nadd_library(l STATIC c.c "
             "d.cpp)\nadd_executable(app main.c)\n"
             "target_link_libraries(app l)\n");
  ASSERT_EQ(
      tree.run({"cmake", "-S", ".", "-B", "out", "-G", "Ninja", "-DCMAKE_C_COMPILER=gcc", "-DCMAKE_CXX_COMPILER=g++",
                "-DCMAKE_C_COMPILER_LAUNCHER=" + program, "-DCMAKE_CXX_COMPILER_LAUNCHER=" + program})
          .exit_status,
      0);
  const support::ProcessResult result = tree.run({"cmake", "--build", "out"});
  ASSERT_EQ(result.exit_status, 0) << result.standard_output;
  std::size_t real = 0;
  for (const Record& unit : tree.units()) {
    if (!unit.configure_check) ++real;
  }
  EXPECT_EQ(real, 3U);
  for (const Record& unit : tree.units()) {
    if (!unit.configure_check && unit.source.ends_with("/c.c")) {
      EXPECT_EQ(own_files(unit, "host"), (Words{"c.c", "c.h"}));
    }
  }
}

}  // namespace
}  // namespace kerncap::wrapper
