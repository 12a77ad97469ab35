#include "core/codeobject/same_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/codeobject/fixture_for_test.h"
#include "core/support/error.h"

namespace kerncap::codeobject {
namespace {

using ::testing::HasSubstr;

std::string difference(const std::string& one, const std::string& other, const std::string& kernel) {
  const std::string first = fixture_text(one), second = fixture_text(other);
  return kernel_difference(as_bytes(first), as_bytes(second), kernel);
}

TEST(SameKernel, IsNotDisturbedByOtherKernelsAndOtherPlaces) {
  EXPECT_EQ(difference("whole.o", "whole.o", "wanted"), "");
  EXPECT_EQ(difference("whole.o", "alone.o", "wanted"), "");
}

TEST(SameKernel, SeesOtherInstructions) {
  EXPECT_THAT(difference("whole.o", "instructions.o", "wanted"), HasSubstr("'wanted'"));
}

TEST(SameKernel, FollowsCallsAndConstants) {
  EXPECT_THAT(difference("whole.o", "callee.o", "wanted"), HasSubstr("callee"));
  EXPECT_THAT(difference("whole.o", "constants.o", "wanted"), HasSubstr("'table'"));
  EXPECT_THAT(difference("whole.o", "unnamed.o", "wanted"), HasSubstr("values' differ"));
}

TEST(SameKernel, SaysThatTheKernelIsNotThere) {
  EXPECT_THAT(difference("whole.o", "alone.o", "missing"), HasSubstr("there is no"));
  EXPECT_THAT(difference("whole.o", "alone.o", "other"), HasSubstr("missing in one"));
}

TEST(SameKernel, RefusesWhatIsNotARelocatableObject) {
  const std::string whole = fixture_text("whole.o");
  for (std::string damaged : {std::string("no object"), whole.substr(0, 100), whole.substr(0, whole.size() / 2)})
    EXPECT_THROW(kernel_difference(as_bytes(whole), as_bytes(damaged), "wanted"), support::Error);
}

// Also the descriptor, a callee and the table are seen when nothing but a byte of them changes.
TEST(SameKernel, SurvivesFlippedBytesAndSeesThoseThatMatter) {
  const std::string whole = fixture_text("whole.o");
  std::set<std::string> answers;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = char(damaged[at] ^ 0xff);
    try {
      answers.insert(kernel_difference(as_bytes(whole), as_bytes(damaged), "wanted"));
    } catch (const support::Error&) {
    }
  }
  for (const char* changed : {"wanted", "wanted.kd", "_Z6calleef", "table"})
    EXPECT_TRUE(answers.contains("the bytes of '" + std::string(changed) + "' differ")) << changed;
  EXPECT_FALSE(answers.contains("the bytes of 'other' differ"));
}

}  // namespace
}  // namespace kerncap::codeobject
