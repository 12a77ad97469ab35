// What the words of a buffer mean: the element types that a typed comparison knows, and how a C++ spelling maps to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kerncap::replay {

enum class ElementType { bytes, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64 };

const char* to_string(ElementType type);  // "float", "half", "int", "bytes" ...
std::size_t size_of(ElementType type);    // bytes; 1 for `bytes`
bool is_floating(ElementType type);

// By Kerncap's own names (to_string) and by C, C++, HIP and OpenCL spellings: "const float", "unsigned int", "float4",
// "HIP_vector_type<double, 2u>", "_Float16". nullopt: a type that has no elements we know (a struct, a pointer).
std::optional<ElementType> element_type(std::string_view spelling);

// The parameter types of a demangled function name, outermost list only: "void k<int>(float const*, T<a, b>)" gives
// {"float const*", "T<a, b>"}; empty when the name has no parameter list.
std::vector<std::string> parameter_types(std::string_view demangled);

// "float const*" -> "float const"; nullopt when the type is no pointer or reference.
std::optional<std::string> pointee(std::string_view type);

// One element as text: "1.5", "-3", "0x1f", "nan(0x7fc00000)". `bytes` must point to size_of(type) bytes.
std::string element_text(ElementType type, const std::byte* bytes);

// The element's value; integers above 2^53 lose low bits, which only the reported error size sees.
double element_value(ElementType type, const std::byte* bytes);

}  // namespace kerncap::replay
