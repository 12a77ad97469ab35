// The edges of what systems, terminals and compilers do: argument lists at the limit, odd folders, crashes, Ctrl-C.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "core/support/error.h"
#include "wrapper/build_for_test.h"

namespace kerncap::wrapper {
namespace {

using compdb::Record;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Limits : public ::testing::Test {
 protected:
  void script(const std::string& name, const std::string& text) const {
    tree.write(name, "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(tree.path() / name, std::filesystem::perms::owner_all);
  }
  BuildTree tree;
};

TEST_F(Limits, an_argument_list_at_the_systems_limit_still_compiles_and_is_recorded) {
  KERNCAP_NEEDS("clang-15");  // runs its front end in its own process: the list is not passed on once more
  std::filesystem::create_directory(tree.path() / "links");
  std::filesystem::create_symlink(program, tree.path() / "links/clang-15");
  const std::string link = (tree.path() / "links/clang-15").string();
  const auto run = [&](std::size_t padding, Words arguments) -> std::optional<int> {
    Words command = {link};
    for (std::size_t left = padding; left > 0;) {  // one argument may have 128 KiB
      const std::size_t length = std::min<std::size_t>(left, 100'000);
      command.push_back(std::string(length < 4 ? length : 2, '-').replace(0, 2, "-D") + std::string(length - 2, 'x'));
      left -= length;
    }
    command.insert(command.end(), arguments.begin(), arguments.end());
    try {
      return tree.run(command).exit_status;
    } catch (const support::Error&) {
      return std::nullopt;  // not even kerncap-cc could be started
    }
  };
  const Words compile = {"-c", "c.c", "-o", "l.o"};
  const Words query = {"--version", "c", "-o", "lll"};  // of the same size
  std::size_t fits = 1000, too_long = 64U << 20;
  while (fits + 8 < too_long) {
    const std::size_t middle = (fits + too_long) / 2;
    (run(middle, query) ? fits : too_long) = middle;
  }
  ASSERT_GT(fits, 100'000U);
  const std::optional<int> status = run(fits - fits % 100'000 % 4, compile);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(*status, 0);
  const Record unit = tree.unit();
  EXPECT_EQ(unit.exit_status, 0);
  EXPECT_NE(unit.output_size, 0U);
  EXPECT_THAT(unit.jobs, IsEmpty());  // no room for the variables that ask for the log
}

TEST_F(Limits, folders_that_are_no_utf8_and_have_newlines_are_recorded_as_they_are) {
  KERNCAP_NEEDS("clang-15");
  const std::filesystem::path odd = tree.path() / "caf\xe9 \"q\\\nnew line";
  std::filesystem::create_directories(odd / "inc");
  support::write_file_atomically(odd / "o.c", "#include <odd.h>\nint o = ODD;\n", 0644);
  support::write_file_atomically(odd / "inc/odd.h", "#define ODD 1\n", 0644);
  compdb::create_database(odd / ".kerncap");
  for (const char* compiler : {"clang-15", "gcc"}) {
    support::Command command;
    command.argv = {program, compiler, "-MD", "-I" + (odd / "inc").string(), "-c", "o.c"};
    command.working_directory = odd;
    command.environment["KERNCAP_DB"] = std::nullopt;
    ASSERT_EQ(support::run(command).exit_status, 0);
    const compdb::Database database(odd / ".kerncap");
    const auto found = database.find_output(odd / "o.o");
    ASSERT_THAT(found, SizeIs(1)) << compiler;
    EXPECT_EQ(found[0].record.directory, odd.string());
    // A newline in a depfile cannot be told from the end of a rule; clang's own log has no such trouble.
    if (std::string(compiler) == "clang-15") {
      EXPECT_THAT(own_files(found[0].record, "host"), ElementsAre("o.c", "odd.h"));
      EXPECT_THAT(database.find_header(odd / "inc/odd.h"), SizeIs(1));
    }
  }
}

TEST_F(Limits, a_compiler_that_crashes_is_recorded_with_its_status) {
  for (const char* compiler : {"clang-15", "clang-19"}) {
    KERNCAP_NEEDS(compiler);
    tree.write("crash.c", "#pragma clang __debug crash\n");
    const Words command = {compiler, "-fno-crash-diagnostics", "-c", "crash.c"};
    const support::ProcessResult plain = tree.run(command);
    Words wrapped = command;
    wrapped.insert(wrapped.begin(), program);
    const support::ProcessResult result = tree.run(wrapped);
    EXPECT_NE(plain.exit_status, 0);
    EXPECT_EQ(result.exit_status, plain.exit_status);
    EXPECT_EQ(result.signal, plain.signal);
    EXPECT_EQ(tree.unit().exit_status, plain.exit_status);
  }
}

TEST_F(Limits, a_distributing_launcher_that_loses_the_environment_leaves_a_record_that_a_dry_run_completes) {
  KERNCAP_NEEDS("clang-15");
  script("distcc", "exec /usr/bin/env -i PATH=\"$PATH\" \"$@\"");
  ASSERT_EQ(tree.run({"clang-15", "-c", "c.c"}).exit_status, 0);
  const std::string plain = tree.read("c.o");
  tree.compile({"./distcc", "clang-15", "-c", "c.c"});
  EXPECT_TRUE(plain == tree.read("c.o"));
  Record unit = tree.unit();
  EXPECT_EQ(unit.argv.front(), "clang-15");
  EXPECT_EQ(unit.compiler.family, "clang");
  EXPECT_THAT(unit.jobs, IsEmpty());
  std::string reason;
  ASSERT_TRUE(compdb::recover_jobs(unit, &reason)) << reason;
  EXPECT_THAT(own_files(unit, "host"), ElementsAre("c.c", "c.h"));
}

// --- terminals
struct Terminal {
  pid_t child = -1;
  int master = -1;
};

class OnTerminal : public Limits {
 protected:
  Terminal start(const Words& command) const {
    Terminal terminal;
    terminal.child = ::forkpty(&terminal.master, nullptr, nullptr, nullptr);
    if (terminal.child == 0) {
      for (int number : {SIGINT, SIGQUIT}) ::signal(number, SIG_DFL);  // a shell's background job ignores them
      if (::chdir(tree.path().c_str()) != 0) ::_exit(99);
      ::setenv("KERNCAP_DB", tree.database_path().c_str(), 1);
      ::setenv("TERM", "xterm", 1);
      ::unsetenv("NO_COLOR");
      std::vector<char*> arguments;
      for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      ::execvp(arguments[0], arguments.data());
      ::_exit(98);
    }
    return terminal;
  }
  static std::string output_of(const Terminal& terminal, int* status) {
    std::string text;
    char buffer[4096];
    for (ssize_t count = 0; (count = ::read(terminal.master, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(count));
    ::waitpid(terminal.child, status, 0);
    ::close(terminal.master);
    return text;
  }
  void wait_for(const std::string& name) const {
    for (int i = 0; i < 400 && !tree.exists(name); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(25));
    ASSERT_TRUE(tree.exists(name));
  }
};

TEST_F(OnTerminal, diagnostics_keep_their_colours) {
  tree.write("bad.c", "int bad(void) { return undefined_name; }\n");
  for (const char* compiler : {"gcc", "clang-15"}) {
    KERNCAP_NEEDS(compiler);
    int plain_status = 0, status = 0;
    const std::string plain = output_of(start({compiler, "-c", "bad.c"}), &plain_status);
    const std::string wrapped = output_of(start({program, compiler, "-c", "bad.c"}), &status);
    EXPECT_THAT(plain, HasSubstr("\x1b["));
    EXPECT_EQ(wrapped, plain);
    EXPECT_EQ(status, plain_status);
  }
}

TEST_F(OnTerminal, control_c_reaches_the_compiler_once) {
  script("fakecc",
         "trap 'echo interrupted >> times' INT\n: > ready\ni=0\nwhile [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); "
         "[ -e times ] && sleep 0.3 && exit 7; done");
  const Terminal terminal = start({program, "./fakecc", "-c", "c.c"});
  wait_for("ready");
  ASSERT_EQ(::write(terminal.master, "\x03", 1), 1);
  int status = 0;
  output_of(terminal, &status);
  EXPECT_EQ(tree.read("times"), "interrupted\n");
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(tree.unit().exit_status, 7);
}

TEST_F(OnTerminal, control_c_that_ends_the_compiler_ends_the_wrapper_by_the_same_signal_and_leaves_no_file) {
  std::filesystem::create_directory(tree.path() / "tmp");
  script("clang", ": > ready; exec sleep 30");
  const Terminal terminal = start({"env", "TMPDIR=" + (tree.path() / "tmp").string(), program, "./clang", "-c", "c.c"});
  wait_for("ready");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_EQ(::write(terminal.master, "\x03", 1), 1);
  int status = 0;
  output_of(terminal, &status);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  EXPECT_EQ(tree.unit().exit_status, 128 + SIGINT);
  EXPECT_TRUE(std::filesystem::is_empty(tree.path() / "tmp"));
}

}  // namespace
}  // namespace kerncap::wrapper
