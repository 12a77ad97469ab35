#include "core/codeobject/code_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/codeobject/fixture_for_test.h"
#include "core/support/error.h"

namespace kerncap::codeobject {
namespace {

using testing::Contains;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::byte> code_of(const std::string& file, const std::string& target) {
  for (auto& found : find_code_objects(as_bytes(fixture_text(file)), file))
    if (found.target == target) return found.bytes;
  return {};
}

const Kernel& kernel_named(const CodeObject& object, const std::string& demangled) {
  for (const auto& kernel : object.kernels)
    if (kernel.demangled == demangled) return kernel;
  throw std::runtime_error("no kernel " + demangled);
}

TEST(ParseCodeObject, ReadsKernelsWithTheirArguments) {
  for (const char* file : {"hipcc.o", "plain15.o", "plain19.o"}) {
    const auto object = parse_code_object(code_of(file, "gfx90a:xnack+"), file);
    EXPECT_THAT(object.kernels, SizeIs(5)) << file;
    const auto& kernel = kernel_named(object, "void scale<float>(float*, float const*, int)");
    EXPECT_EQ(kernel.symbol, kernel.name + ".kd");
    EXPECT_EQ(kernel.wavefront_size, 64u);
    EXPECT_GT(kernel.vgprs, 0u);
    EXPECT_GE(kernel.kernarg_size, 20u);
    ASSERT_GE(kernel.arguments.size(), 3u);
    EXPECT_EQ(kernel.arguments[0].value_kind, "global_buffer");
    EXPECT_EQ(kernel.arguments[1].offset, 8u);
    EXPECT_EQ(kernel.arguments[2].value_kind, "by_value");
    EXPECT_EQ(kernel.arguments[2].offset, 16u);
    EXPECT_EQ(kernel.arguments[2].size, 4u);
    EXPECT_FALSE(kernel.arguments[2].hidden());
  }
}

TEST(ParseCodeObject, ReadsVariablesInsideTheirSegments) {
  const auto object = parse_code_object(code_of("plain15.o", "gfx1030"), "plain15.o");
  EXPECT_THAT(object.variables, Contains(Field(&Variable::name, "weights")));
  EXPECT_THAT(object.variables, Contains(Field(&Variable::name, "launches")));
  for (const auto& variable : object.variables) {
    bool inside = false;
    for (const auto& segment : object.segments)
      inside |= variable.address >= segment.address &&
                variable.address + variable.size <= segment.address + segment.memory_size;
    EXPECT_TRUE(inside) << variable.name;
  }
  for (const auto& variable : object.variables)
    if (variable.name == "weights") {
      EXPECT_EQ(variable.size, 32u);
    }
}

TEST(ParseCodeObject, TellsTheCodeObjectVersion) {
  EXPECT_EQ(parse_code_object(code_of("plain15.o", "gfx1030"), "15").version, 4u);
  if (std::filesystem::exists(fixture("plain19.o"))) {
    EXPECT_EQ(parse_code_object(code_of("plain19.o", "gfx1030"), "19").version, 5u);
    EXPECT_EQ(parse_code_object(code_of("version4.o", "gfx1030"), "19").version, 4u);
  }
}

TEST(ParseCodeObject, ListsCuidsOfCompilersThatWriteThem) {
  EXPECT_THAT(parse_code_object(code_of("plain15.o", "gfx1030"), "15").cuids, IsEmpty());
  if (std::filesystem::exists(fixture("plain19.o"))) {
    EXPECT_THAT(parse_code_object(code_of("plain19.o", "gfx1030"), "19").cuids, SizeIs(1));
  }
}

TEST(ParseCodeObject, RefusesOtherFiles) {
  EXPECT_THROW(parse_code_object({}, "empty"), support::Error);
  EXPECT_THROW(parse_code_object(as_bytes(fixture_text("plain15.o")), "host object"), support::Error);
}

TEST(ParseCodeObject, SurvivesRandomDamageAndTruncation) {
  std::mt19937 random(3);
  const auto whole = code_of("plain15.o", "gfx90a:xnack+");
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    auto damaged = whole;
    if (round % 4 == 0) damaged.resize(random() % damaged.size());
    // Most of the interesting bytes are at the front: headers, notes, symbols.
    for (int i = 0; i < 4 && !damaged.empty(); ++i)
      damaged[random() % std::min<std::size_t>(damaged.size(), 4096)] = std::byte(random());
    try {
      parse_code_object(damaged, "damaged");
    } catch (const support::Error& error) {
      EXPECT_EQ(error.code(), support::ExitCode::bad_input);
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace kerncap::codeobject
