#include "replay/host_calls.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

namespace kerncap::replay {
namespace {

// Words as device code makes them: text in place, padded to 8 bytes, numbers as they are.
class Message {
 public:
  Message& text(const std::string& text) {
    const std::size_t begin = words.size();
    words.resize(begin + text.size() / 8 + 1);
    std::memcpy(words.data() + begin, text.c_str(), text.size() + 1);
    return *this;
  }
  Message& word(std::uint64_t word) {
    words.push_back(word);
    return *this;
  }
  std::vector<std::uint64_t> words;
};

TEST(Formatted, KnowsTheUsualConversions) {
  const auto bits = std::bit_cast<std::uint64_t>(2.5);
  EXPECT_EQ(formatted(Message()
                          .text("%d of %s: %.2f %5u|%-4x|%c%%\n")
                          .word(static_cast<std::uint64_t>(-3))
                          .text("step")
                          .word(bits)
                          .word(42)
                          .word(255)
                          .word('x')
                          .words),
            "-3 of step: 2.50    42|ff  |x%\n");
  EXPECT_EQ(formatted(Message().text("%*d|%lu").word(4).word(7).word(8).words), "   7|8");
}

TEST(Formatted, SurvivesWhatIsNoMessage) {
  EXPECT_EQ(formatted({}), "");
  EXPECT_EQ(formatted(Message().text("%s%d").words), "0");  // arguments that are missing
  EXPECT_EQ(formatted(Message().text("%n|%y|%").word(1).words), "%|%|%");
  EXPECT_LT(formatted(Message().text("%99999999d").word(1).words).size(), 10u);
}

TEST(HostCalls, AnswersAPrintfInSteps) {
  constexpr std::size_t packets = 4;
  std::vector<std::uint64_t> memory(host_call_bytes(packets) / 8 + 8);
  auto* buffer = make_host_call_buffer(std::as_writable_bytes(std::span(memory)), packets, 0);
  HostCalls calls(buffer, packets);
  EXPECT_FALSE(calls.serve());
  const auto call = [&](std::uint64_t descriptor, std::vector<std::uint64_t> words) {
    const std::uint64_t packet = buffer->free_stack;
    HostCallHeader& header = buffer->headers[packet & buffer->index_mask];
    header.active_lanes = 1;
    header.service = 2;
    header.control = 1;
    header.next = 0;
    auto& slot = buffer->payloads[packet & buffer->index_mask].slots[0];
    slot[0] = descriptor | words.size() << 5;
    std::copy(words.begin(), words.end(), slot + 1);
    buffer->ready_stack = packet;
    EXPECT_TRUE(calls.serve());
    EXPECT_EQ(header.control, 0u);
    return slot[0];
  };
  const std::uint64_t id = call(1, {0}) >> 8;
  EXPECT_NE(id, 0u);
  call(id << 8, Message().text("%d!").words);
  EXPECT_EQ(call(id << 8 | 2, {7}), 2u);
  EXPECT_EQ(calls.printed, "7!");
}

TEST(HostCalls, ACircleOfPacketsEnds) {
  constexpr std::size_t packets = 4;
  std::vector<std::uint64_t> memory(host_call_bytes(packets) / 8 + 8);
  auto* buffer = make_host_call_buffer(std::as_writable_bytes(std::span(memory)), packets, 0);
  buffer->headers[1].next = 1;
  buffer->ready_stack = 1;
  buffer->headers = nullptr;  // a kernel may have written there
  HostCalls calls(buffer, packets);
  EXPECT_TRUE(calls.serve());
}

}  // namespace
}  // namespace kerncap::replay
