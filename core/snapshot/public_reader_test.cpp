// The public header as another program sees it, and snapshots that older versions of Kerncap wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kerncap/snapshot.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace kerncap {
namespace {

const char* const old_snapshot = KERNCAP_TEST_OLD_SNAPSHOT;

SnapshotError::Kind error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const SnapshotError& error) {
    EXPECT_STRNE(error.what(), "");
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return SnapshotError::Kind::environment;
}

// `scale` made values[i] = 2 i + 1 of i, for 1000 floats.
TEST(PublicReader, ReadsASnapshotOfTheFirstVersion) {
  const Snapshot snapshot(old_snapshot);
  ASSERT_EQ(snapshot.dispatch_count(), 1u);
  const Snapshot::Dispatch& d = snapshot.dispatch(0);
  EXPECT_EQ(d.kernel_name, "scale(float*, int, float)");
  EXPECT_EQ(d.grid[0], 1024u);
  EXPECT_TRUE(d.has_after);
  EXPECT_FALSE(d.reachable_only);
  EXPECT_EQ(d.visible_bytes, 3 * Snapshot::chunk_size + 5000 + 4096 + 8192);
  ASSERT_EQ(d.regions.size(), 3u);
  EXPECT_EQ(d.regions[1].kind, "registered");
  EXPECT_EQ(d.not_captured.size(), 1u);
  EXPECT_EQ(snapshot.agents().at(0).name, "gfx90a");
  std::uint64_t pointer = 0;
  const auto kernarg = snapshot.kernarg(0);
  std::memcpy(&pointer, kernarg.data() + d.arguments.at(0).offset, sizeof pointer);
  std::vector<float> before(1000), after(1000);
  snapshot.read_address(0, Snapshot::State::before, pointer, before.data(), 4000);
  snapshot.read_address(0, Snapshot::State::after, pointer, after.data(), 4000);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(before[static_cast<std::size_t>(i)], static_cast<float>(i));
    ASSERT_EQ(after[static_cast<std::size_t>(i)], static_cast<float>(2 * i + 1));
  }
  EXPECT_TRUE(snapshot.changed(0, 0, 0));
  EXPECT_FALSE(snapshot.changed(0, 0, 2));
  EXPECT_TRUE(snapshot.is_zero(0, 0, Snapshot::State::before, 1));
  EXPECT_EQ(snapshot.code_object(d.code_object).size(), 4480u);
  EXPECT_THAT(snapshot.verify(), ::testing::IsEmpty());
}

TEST(PublicReader, ErrorsSayWhoseFaultItIs) {
  using Kind = SnapshotError::Kind;
  EXPECT_EQ(error_of([] { Snapshot("/no/such/snapshot"); }), Kind::damaged);
  const Snapshot snapshot(old_snapshot);
  std::byte bytes[16];
  const auto before = Snapshot::State::before;
  EXPECT_EQ(error_of([&] { (void)snapshot.dispatch(1); }), Kind::wrong_use);
  EXPECT_EQ(error_of([&] { (void)snapshot.kernarg(1); }), Kind::wrong_use);
  EXPECT_EQ(error_of([&] { snapshot.read(0, 3, before, 0, bytes, 16); }), Kind::wrong_use);
  EXPECT_EQ(error_of([&] { snapshot.read(0, 1, before, 4090, bytes, 16); }), Kind::wrong_use);
  EXPECT_EQ(error_of([&] { snapshot.read_address(0, before, 1, bytes, 16); }), Kind::wrong_use);
  EXPECT_EQ(error_of([&] { (void)snapshot.changed(0, 0, 4); }), Kind::wrong_use);
  EXPECT_EQ(error_of([&] { (void)snapshot.is_zero(0, 0, before, 4); }), Kind::wrong_use);
  EXPECT_EQ(error_of([&] { (void)snapshot.code_object("../../etc/passwd"); }), Kind::wrong_use);
}

TEST(PublicReader, SeveralThreadsReadOneSnapshot) {
  Snapshot first(old_snapshot);
  const Snapshot snapshot = std::move(first);
  std::vector<std::byte> expected(3 * Snapshot::chunk_size + 5000);
  snapshot.read(0, 0, Snapshot::State::after, 0, expected.data(), expected.size());
  std::vector<std::thread> threads;
  std::atomic<int> equal{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      std::vector<std::byte> bytes(expected.size());
      for (int round = 0; round < 10; ++round) {
        snapshot.read(0, 0, Snapshot::State::after, 0, bytes.data(), bytes.size());
        equal += bytes == expected;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 40);
}

}  // namespace
}  // namespace kerncap
