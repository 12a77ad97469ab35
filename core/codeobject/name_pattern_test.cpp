#include <gtest/gtest.h>

#include "core/codeobject/code_object.h"
#include "core/support/error.h"

namespace kerncap::codeobject {
namespace {

bool matches(const char* pattern, const char* symbol) { return NamePattern(pattern).matches(symbol, demangle(symbol)); }

constexpr const char* add = "_Z3addPfS_i";                       // add(float*, float*, int)
constexpr const char* scale = "_ZN4math5scaleIfEEvPT_i";         // void math::scale<float>(float*, int)
constexpr const char* scale_double = "_ZN4math5scaleIdEEvPT_i";  // void math::scale<double>(double*, int)
constexpr const char* anonymous = "_ZN12_GLOBAL__N_14copyEPf";   // (anonymous namespace)::copy(float*)

TEST(Demangle, GivesTheNameItselfWhenItIsNotMangled) {
  EXPECT_EQ(demangle("plain"), "plain");
  EXPECT_EQ(demangle("plain.kd"), "plain");
  EXPECT_EQ(demangle(add), "add(float*, float*, int)");
  EXPECT_EQ(demangle("_Z3addPfS_i.kd"), "add(float*, float*, int)");
}

TEST(Demangle, DropsWhatMakesStaticsUnique) {
  EXPECT_EQ(demangle("_ZL2stPi.intern.0123456789abcdef"), "st(int*)");
  EXPECT_EQ(demangle("_Z2stPi.static.0123456789abcdef"), "st(int*)");
}

TEST(NamePattern, WithoutStarMatchesWholeNamesOnly) {
  EXPECT_TRUE(matches("add(float*, float*, int)", add));
  EXPECT_TRUE(matches("add", add));
  EXPECT_FALSE(matches("ad", add));
  EXPECT_FALSE(matches("dd", add));
  EXPECT_TRUE(matches("scale", scale));
  EXPECT_TRUE(matches("scale<float>", scale));
  EXPECT_FALSE(matches("scale<float>", scale_double));
  EXPECT_TRUE(matches("math::scale", scale));
  EXPECT_TRUE(matches("math::scale<float>", scale));
  EXPECT_TRUE(matches("math::scale<float>(float*, int)", scale));
  EXPECT_TRUE(matches("void math::scale<float>(float*, int)", scale));
  EXPECT_FALSE(matches("math", scale));
  EXPECT_TRUE(matches("copy", anonymous));
  EXPECT_TRUE(matches("(anonymous namespace)::copy", anonymous));
  EXPECT_TRUE(matches("plain", "plain"));
}

TEST(NamePattern, StarStandsForAnything) {
  EXPECT_TRUE(matches("*", add));
  EXPECT_TRUE(matches("a*", add));
  EXPECT_TRUE(matches("sc*<float>", scale));
  EXPECT_TRUE(matches("*scale*double*", scale_double));
  EXPECT_FALSE(matches("*scale*double*", scale));
  EXPECT_TRUE(matches("sca?e", scale));
}

TEST(NamePattern, TakesRegularExpressionsAndExactSymbols) {
  EXPECT_TRUE(matches("re:^void math::scale<(float|double)>", scale));
  EXPECT_FALSE(matches("re:^scale", scale));
  EXPECT_TRUE(matches("sym:_Z3addPfS_i", add));
  EXPECT_TRUE(matches("sym:_Z3addPfS_i.kd", add));
  EXPECT_FALSE(matches("sym:_Z3add", add));
}

TEST(NamePattern, RefusesMalformedPatternsAsWrongUsage) {
  for (const char* pattern : {"", "re:", "re:(", "sym:"}) {
    try {
      NamePattern{pattern};
      ADD_FAILURE() << pattern;
    } catch (const support::Error& error) {
      EXPECT_EQ(error.code(), support::ExitCode::usage) << pattern;
    }
  }
}

}  // namespace
}  // namespace kerncap::codeobject
