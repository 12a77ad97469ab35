#include "core/compdb/frame.h"

#include <gtest/gtest.h>

#include <random>

namespace kerncap::compdb {
namespace {

std::vector<std::string> payloads(std::string_view log, ScanResult* result = nullptr) {
  std::vector<std::string> found;
  const ScanResult scan = scan_frames(log, 0, [&](const Frame& frame) {
    std::string payload;
    EXPECT_TRUE(frame_payload(frame, payload));
    found.push_back(payload);
  });
  if (result != nullptr) *result = scan;
  return found;
}

const std::string long_text(5000, 'x');

TEST(Frame, payloads_survive_compressed_or_not) {
  const std::string log = make_frame(FrameType::record, "short") + make_frame(FrameType::record, "") +
                          make_frame(FrameType::record, long_text);
  EXPECT_LT(log.size(), 300U);
  EXPECT_EQ(payloads(log), (std::vector<std::string>{"short", "", long_text}));
}

TEST(Frame, the_layout_on_disk_is_the_documented_one) {
  const std::string frame = make_frame(FrameType::record, "ab");
  ASSERT_EQ(frame.size(), 26U);
  EXPECT_EQ(frame.substr(0, 4), "KCDB");
  EXPECT_EQ(frame.substr(4, 12), std::string("\2\0\0\0\1\0\1\0\0\0\0\0", 12));
  EXPECT_EQ(frame.substr(24), "ab");
}

TEST(Frame, a_torn_end_hides_nothing_that_follows) {
  const std::string torn = make_frame(FrameType::record, long_text + "torn");
  for (std::size_t size = 1; size < torn.size(); ++size) {
    const std::string log =
        make_frame(FrameType::record, "before") + torn.substr(0, size) + make_frame(FrameType::record, "after");
    ScanResult scan;
    EXPECT_EQ(payloads(log, &scan), (std::vector<std::string>{"before", "after"})) << size;
    EXPECT_EQ(scan.damaged_places, 1U);
    EXPECT_EQ(scan.damaged_bytes, size);
  }
}

TEST(Frame, a_length_is_believed_only_with_its_checksum) {
  // Damage in a length must not skip the good frames behind it.
  std::string first = make_frame(FrameType::record, "first");
  first[4] = 60;
  EXPECT_EQ(payloads(first + make_frame(FrameType::record, "second") + make_frame(FrameType::record, "third")),
            (std::vector<std::string>{"second", "third"}));
}

TEST(Frame, every_single_flipped_bit_loses_only_its_own_frame) {
  const std::string a = make_frame(FrameType::record, "first"), b = make_frame(FrameType::record, "second");
  for (std::size_t bit = 0; bit < a.size() * 8; ++bit) {
    std::string damaged = a;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(payloads(damaged + b), (std::vector<std::string>{"second"})) << bit;
  }
}

TEST(Frame, a_torn_tail_is_looked_at_again_when_more_has_been_written) {
  const std::string whole = make_frame(FrameType::record, "one"), next = make_frame(FrameType::record, "two");
  const std::string log = whole + next;
  const ScanResult early = scan_frames(std::string_view(log).substr(0, log.size() - 3), 0, [](const Frame&) {});
  EXPECT_EQ(early.end, whole.size());
  std::uint64_t found = 0;
  scan_frames(log, early.end, [&](const Frame&) { ++found; });
  EXPECT_EQ(found, 1U);
}

TEST(Frame, a_decompressed_size_that_lies_is_refused) {
  Frame frame;
  const std::string bytes = make_frame(FrameType::record, long_text);
  ASSERT_TRUE(frame_at(bytes, 0, frame));
  std::string payload;
  frame.raw_size = 4999;
  EXPECT_FALSE(frame_payload(frame, payload));
  frame.raw_size = 0xffffffff;
  EXPECT_FALSE(frame_payload(frame, payload));
}

TEST(Frame, noise_is_skipped) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string noise(random() % 4000, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    noise += "KCDB";
    EXPECT_EQ(payloads(noise + make_frame(FrameType::record, "x")), (std::vector<std::string>{"x"}));
  }
}

}  // namespace
}  // namespace kerncap::compdb
