#include "replay/element_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kerncap::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ElementType, knows_spellings_of_c_hip_and_opencl) {
  EXPECT_EQ(element_type("float"), ElementType::f32);
  EXPECT_EQ(element_type("float const"), ElementType::f32);
  EXPECT_EQ(element_type("const unsigned int"), ElementType::u32);
  EXPECT_EQ(element_type("float4"), ElementType::f32);
  EXPECT_EQ(element_type("HIP_vector_type<double, 2u>"), ElementType::f64);
  EXPECT_EQ(element_type("_Float16"), ElementType::f16);
  EXPECT_EQ(element_type("std::uint64_t"), ElementType::u64);
  EXPECT_EQ(element_type("unsigned long long"), ElementType::u64);
}

TEST(ElementType, does_not_guess_at_structures_and_pointers) {
  EXPECT_EQ(element_type("Particle"), std::nullopt);
  EXPECT_EQ(element_type("float*"), std::nullopt);
  EXPECT_EQ(element_type(""), std::nullopt);
  EXPECT_EQ(element_type("float7"), std::nullopt);
}

TEST(ElementType, its_own_names_are_spellings) {
  for (const auto type : {ElementType::i8, ElementType::u16, ElementType::i32, ElementType::u64, ElementType::f16,
                          ElementType::bf16, ElementType::f32, ElementType::f64, ElementType::bytes}) {
    EXPECT_EQ(element_type(to_string(type)), type) << to_string(type);
  }
}

TEST(ParameterTypes, are_those_of_the_last_parameter_list) {
  EXPECT_THAT(parameter_types("add(float const*, float*, int)"), ElementsAre("float const*", "float*", "int"));
  EXPECT_THAT(parameter_types("void k<int, (Mode)1>(T<int, 3>*, float (*)(int, int))"),
              ElementsAre("T<int, 3>*", "float (*)(int, int)"));
  EXPECT_THAT(parameter_types("(anonymous namespace)::spmv(int const*)"), ElementsAre("int const*"));
  EXPECT_THAT(parameter_types("k()"), IsEmpty());
  EXPECT_THAT(parameter_types("k(void)"), IsEmpty());
  EXPECT_THAT(parameter_types("extern_c_kernel"), IsEmpty());
  EXPECT_THAT(parameter_types(")"), IsEmpty());
}

TEST(Pointee, is_what_a_pointer_points_to) {
  EXPECT_EQ(pointee("float const*"), "float const");
  EXPECT_EQ(pointee("float *__restrict__"), "float");
  EXPECT_EQ(pointee("double**"), "double*");
  EXPECT_EQ(pointee("int"), std::nullopt);
}

TEST(ElementValue, halves_are_exact) {
  const auto value = [](std::uint16_t bits) {
    return element_value(ElementType::f16, reinterpret_cast<std::byte*>(&bits));
  };
  EXPECT_EQ(value(0x3c00), 1.0);
  EXPECT_EQ(value(0xc000), -2.0);
  EXPECT_EQ(value(0x7bff), 65504.0);
  EXPECT_EQ(value(0x0001), 5.9604644775390625e-08);
  EXPECT_TRUE(std::isinf(value(0x7c00)));
  EXPECT_TRUE(std::isnan(value(0x7e00)));
}

}  // namespace
}  // namespace kerncap::replay
