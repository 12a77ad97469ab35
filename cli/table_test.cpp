#include "cli/table.h"

#include <gtest/gtest.h>

namespace kerncap::cli {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoTrailingBlanks) {
  Table table({{"name", Align::left}, {"size", Align::right}, {"last", Align::left}});
  table.add({"a", "10", "x"});
  table.add({"longer", "5", ""});
  EXPECT_EQ(table.text(),
            "name    size  last\n"
            "a         10  x\n"
            "longer     5\n");
}

TEST(Table, ShortRowsAreFilledUp) {
  Table table({{"a"}, {"b"}});
  table.add({"1"});
  EXPECT_EQ(table.text(), "a  b\n1\n");
}

TEST(HumanTime, ChoosesTheUnit) {
  EXPECT_EQ(human_time(12), "12 ns");
  EXPECT_EQ(human_time(12345), "12.3 us");
  EXPECT_EQ(human_time(1.5e6), "1.50 ms");
  EXPECT_EQ(human_time(2.5e9), "2.500 s");
}

}  // namespace
}  // namespace kerncap::cli
