#include "replay/options.h"

#include <gtest/gtest.h>

#include "core/support/error.h"

namespace kerncap::replay {
namespace {

TEST(Options, survive_the_way_through_a_command_line) {
  Options o;
  o.mode = Mode::bench;
  o.input = "/some where/snap.kcap";
  o.dispatch = 3;
  o.code_object = "-odd-name.hsaco";
  o.versus = "captured";
  o.tolerances = {"ulp=4", "out:rel=1e-6"};
  o.iterations = 10;
  o.timeout = std::chrono::milliseconds(2500);
  o.cold = o.json = true;
  std::vector<std::string> words = command_line(o, "program");
  EXPECT_EQ(words.front(), "program");
  words.erase(words.begin());
  const Options read = parse_options(words);
  EXPECT_EQ(command_line(read, "program"), command_line(o, "program"));
  EXPECT_EQ(read.code_object, o.code_object);
  EXPECT_EQ(read.timeout, o.timeout);
}

TEST(Options, the_mode_may_be_the_first_word) {
  EXPECT_EQ(parse_options({"bench", "P", "--cold"}).mode, Mode::bench);
  EXPECT_EQ(parse_options({"P"}).mode, Mode::validate);
  EXPECT_EQ(parse_options({"P"}).input, "P");
}

TEST(Options, wrong_ones_are_refused) {
  for (const auto& words : std::vector<std::vector<std::string>>{{},
                                                                 {"a", "b"},
                                                                 {"validate", "a", "b"},
                                                                 {"--mode", "fly", "P"},
                                                                 {"--iterations", "0", "P"},
                                                                 {"--iterations", "x", "P"},
                                                                 {"--dispatch", "-1", "P"},
                                                                 {"--nonsense", "P"},
                                                                 {"--timeout"},
                                                                 {"--timeout", "1e12", "P"},
                                                                 {"--vs", "captured", "P"},
                                                                 {"--captured", "--code-object", "F", "P"},
                                                                 {"--tolerance", "ulp=x", "P"}}) {
    EXPECT_THROW(parse_options(words), support::Error);
  }
}

}  // namespace
}  // namespace kerncap::replay
