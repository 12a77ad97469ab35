#include "core/support/json.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/support/error.h"

namespace kerncap::support {
namespace {

ExitCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::done;
}

TEST(Json, RefusesDamageAndEndlessNesting) {
  EXPECT_EQ(code_of([] { parse_json("{\"a\": ", "file"); }), ExitCode::bad_input);
  EXPECT_EQ(code_of([] { parse_json(std::string(100000, '['), "file"); }), ExitCode::bad_input);
  EXPECT_EQ(code_of([] { parse_json("{\"a\": \"[[[[\"}", "file"); }), ExitCode::done);
}

TEST(Json, ReadsFullWidthNumbersAsDecimalOrHexadecimal) {
  const Json document =
      parse_json(R"({"a": "0xffffffffffffffff", "b": 7, "c": -1, "d": "0x", "e": 1.5, "f": "12"})", "file");
  EXPECT_EQ(unsigned_member(document, "a", "file"), ~std::uint64_t{0});
  EXPECT_EQ(unsigned_member(document, "b", "file"), 7u);
  for (const char* bad : {"c", "d", "e", "f", "missing"}) {
    EXPECT_EQ(code_of([&] { unsigned_member(document, bad, "file"); }), ExitCode::bad_input) << bad;
  }
  EXPECT_EQ(hex_string(255), "0xff");
}

TEST(Json, WritesInvalidUtf8AsReplacementInsteadOfFailing) {
  Json document;
  document["path"] = std::string("a\xff") + "b";
  EXPECT_NE(dump_json(document).find("a\xef\xbf\xbd"
                                     "b"),
            std::string::npos);
}

}  // namespace
}  // namespace kerncap::support
