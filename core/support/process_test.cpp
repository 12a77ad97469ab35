#include "core/support/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "core/support/error.h"
#include "core/support/file.h"

namespace kerncap::support {
namespace {

Command shell(const std::string& script) {
  Command command;
  command.argv = {"sh", "-c", script};
  command.standard_output = command.standard_error = Stream::capture;
  return command;
}

TEST(Run, ReturnsOutputsAndExitStatus) {
  const ProcessResult result = run(shell("echo out; echo err >&2; exit 7"));
  EXPECT_EQ(result.standard_output, "out\n");
  EXPECT_EQ(result.standard_error, "err\n");
  EXPECT_EQ(result.exit_status, 7);
  EXPECT_FALSE(result.succeeded());
}

TEST(Run, ReportsTheSignalAsAShellDoes) {
  const ProcessResult result = run(shell("kill -SEGV $$"));
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.exit_status, 128 + SIGSEGV);
}

TEST(Run, PassesArgumentsUntouched) {
  Command command;
  command.argv = {"printf", "%s|", "a b", "$HOME", "'", "\n", ""};
  command.standard_output = Stream::capture;
  EXPECT_EQ(run(command).standard_output, "a b|$HOME|'|\n||");
}

TEST(Run, ChangesTheEnvironmentAsAsked) {
  ::setenv("KERNCAP_TEST_GONE", "1", 1);
  Command command = shell("echo \"[$KERNCAP_TEST_GONE][$KERNCAP_TEST_NEW]\"");
  command.environment["KERNCAP_TEST_GONE"] = std::nullopt;
  command.environment["KERNCAP_TEST_NEW"] = "x=y";
  EXPECT_EQ(run(command).standard_output, "[][x=y]\n");
}

TEST(Run, FeedsMoreInputThanAPipeHolds) {
  Command command = shell("wc -c");
  command.standard_input = std::string(1 << 20, 'x');
  EXPECT_EQ(run(command).standard_output, "1048576\n");
}

TEST(Run, SurvivesAChildThatReadsNoInput) {
  Command command = shell("exec 0<&-; echo done");
  command.standard_input = std::string(1 << 20, 'x');
  EXPECT_EQ(run(command).standard_output, "done\n");
}

TEST(Run, EndsTheWholeGroupAtTheTimeOut) {
  Command command = shell("sleep 100 & sleep 100");
  command.timeout = std::chrono::milliseconds(100);
  const ProcessResult result = run(command);
  EXPECT_TRUE(result.timed_out);
  EXPECT_FALSE(result.succeeded());
  EXPECT_LT(result.wall_time, std::chrono::seconds(50));
}

TEST(Run, EndsTheWholeGroupWhenItIsCancelled) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  Command command = shell("sleep 60 & sleep 60");
  command.timeout = std::chrono::seconds(50);
  command.cancel_fd = ends[0];
  const ProcessResult result = run(command);
  EXPECT_TRUE(result.cancelled);
  EXPECT_FALSE(result.timed_out);
  EXPECT_FALSE(result.succeeded());
  EXPECT_LT(result.wall_time, std::chrono::seconds(20));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Run, ReadsBothStreamsWithoutDeadlock) {
  const ProcessResult result = run(shell("head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero"));
  EXPECT_EQ(result.standard_output.size(), 1000000u);
  EXPECT_EQ(result.standard_error.size(), 1000000u);
}

TEST(Run, SendsStandardOutputToStandardErrorWhenAsked) {
  Command command;
  command.argv = {"sh", "-c", "echo text"};
  command.standard_output = Stream::standard_error;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(run(command).succeeded());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "text\n");
}

TEST(Run, FindsTheProgramOnAChangedPath) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "cat", "#!/bin/sh\necho mine\n", 0700);
  Command command;
  command.argv = {"cat", "/dev/null"};
  command.environment["PATH"] = folder.path().string() + ":/usr/bin:/bin";
  command.standard_output = Stream::capture;
  EXPECT_EQ(run(command).standard_output, "mine\n");
}

TEST(Run, SaysWhichProgramIsMissing) {
  Command command;
  command.argv = {"kerncap-no-such-program"};
  try {
    run(command);
    FAIL() << "a missing program ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::environment);
    EXPECT_NE(std::string(error.what()).find("kerncap-no-such-program"), std::string::npos);
  }
}

// Started by a program that ignores SIGCHLD, the kernel reaps children by itself and their status is lost.
TEST(Run, TellsAKilledChildFromAGoodOneWhereSigchldIsIgnored) {
  struct sigaction ignore {
  }, saved{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGCHLD, &ignore, &saved);
  const ProcessResult killed = run(shell("kill -KILL $$")), failed = run(shell("exit 3")), good = run(shell("exit 0"));
  struct sigaction after {};
  ::sigaction(SIGCHLD, &saved, &after);
  EXPECT_EQ(killed.exit_status, 128 + SIGKILL);
  EXPECT_EQ(failed.exit_status, 3);
  EXPECT_TRUE(good.succeeded());
  EXPECT_EQ(after.sa_handler, SIG_IGN);  // the caller's business again
}

TEST(ShellQuoted, CanBeReadBackByAShell) {
  const std::vector<std::string> argv{"printf", "%s|", "plain", "two words", "it's", "$x", "", "a\nb"};
  Command command = shell(shell_quoted(argv));
  EXPECT_EQ(run(command).standard_output, "plain|two words|it's|$x||a\nb|");
}

}  // namespace
}  // namespace kerncap::support
