// Writers that are killed at any moment, thousands of them, beside others that go on and a compaction now and then.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>
#include <thread>

#include "core/compdb/file_system.h"
#include "core/compdb/log_writer.h"
#include "core/compdb/operations.h"
#include "core/support/file.h"

namespace kerncap::compdb {
namespace {

constexpr unsigned rounds = 400, writers_at_once = 6;  // 2400 in all

constexpr unsigned most_records = 12;

// Content that names itself: `started` is the hash of the rest, so a torn or mixed record cannot pass.
Record record_of(unsigned writer, unsigned number) {
  std::mt19937 random(writer * 100'003 + number);
  const std::size_t size = random() % 50 == 0 ? random() % 100'000 : random() % 1'500;
  std::string noise(size, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  Record record;
  record.source = std::to_string(writer) + "/" + std::to_string(number);
  record.output = "/out/" + record.source + ".o";
  record.argv = {"cc", noise};
  record.started = hash_bytes(noise + record.source) | 1;
  return record;
}

[[noreturn]] void write_until_killed(const std::string& folder, unsigned writer, int tell) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever happens to the test
  for (unsigned number = 0; number < most_records; ++number) {
    if (append_record(folder, record_of(writer, number)) != 0) _exit(1);
    if (write(tell, "x", 1) != 1) _exit(2);
  }
  for (;;) pause();
}

TEST(KilledWriters, no_record_that_was_written_is_lost_and_none_is_torn) {
  const support::TemporaryFolder scratch("kerncap-killed");
  const std::string folder = (scratch.path() / "db").string();
  create_database(folder);
  std::mt19937 random(41);
  std::map<unsigned, unsigned> promised;
  unsigned compactions = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    struct Writer {
      pid_t process;
      int told;
      unsigned number;
    };
    std::vector<Writer> writers;
    for (unsigned i = 0; i < writers_at_once; ++i) {
      int ends[2];
      ASSERT_EQ(pipe(ends), 0);
      const unsigned number = round * writers_at_once + i;
      const pid_t child = fork();
      if (child == 0) {
        close(ends[0]);
        write_until_killed(folder, number, ends[1]);
      }
      close(ends[1]);
      writers.push_back({child, ends[0], number});
    }
    if (round % 100 == 50) {
      compact(folder);
      ++compactions;
    }
    for (const Writer& writer : writers) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 800));
      kill(writer.process, SIGKILL);
      int status = 0;
      ASSERT_EQ(waitpid(writer.process, &status, 0), writer.process);
      EXPECT_TRUE(WIFSIGNALED(status)) << "a writer gave up with " << status;
      char buffer[256];
      for (ssize_t count = 0; (count = read(writer.told, buffer, sizeof buffer)) > 0;)
        promised[writer.number] += static_cast<unsigned>(count);
      close(writer.told);
    }
  }
  std::map<unsigned, std::vector<bool>> found;
  const Database database(folder);
  database.visit([&](Record&& record) {
    ASSERT_EQ(record.started, hash_bytes(record.argv.at(1) + record.source) | 1) << record.source;
    const unsigned writer = static_cast<unsigned>(std::stoul(record.source));
    const unsigned number = static_cast<unsigned>(std::stoul(record.source.substr(record.source.find('/') + 1)));
    std::vector<bool>& numbers = found[writer];
    if (numbers.size() <= number) numbers.resize(number + 1);
    numbers[number] = true;
  });
  std::size_t total = 0;
  for (const auto& [writer, count] : promised) {
    total += count;
    for (unsigned number = 0; number < count; ++number)
      ASSERT_TRUE(found[writer].size() > number && found[writer][number]) << writer << "/" << number << " is lost";
  }
  EXPECT_GT(total, std::size_t{rounds});
  EXPECT_GT(compactions, 3U);
}

}  // namespace
}  // namespace kerncap::compdb
