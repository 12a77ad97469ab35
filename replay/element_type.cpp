#include "replay/element_type.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>

namespace kerncap::replay {
namespace {

struct TypeRow {
  ElementType type;
  const char* name;
  std::size_t size;
  bool floating;
};

constexpr std::array type_rows{
    TypeRow{ElementType::bytes, "bytes", 1, false},        TypeRow{ElementType::i8, "signed char", 1, false},
    TypeRow{ElementType::u8, "unsigned char", 1, false},   TypeRow{ElementType::i16, "short", 2, false},
    TypeRow{ElementType::u16, "unsigned short", 2, false}, TypeRow{ElementType::i32, "int", 4, false},
    TypeRow{ElementType::u32, "unsigned int", 4, false},   TypeRow{ElementType::i64, "long", 8, false},
    TypeRow{ElementType::u64, "unsigned long", 8, false},  TypeRow{ElementType::f16, "half", 2, true},
    TypeRow{ElementType::bf16, "bfloat16", 2, true},       TypeRow{ElementType::f32, "float", 4, true},
    TypeRow{ElementType::f64, "double", 8, true},
};

struct Spelling {
  std::string_view text;
  ElementType type;
};

// Spellings without cv-qualifiers. LP64: long is 64 bits on every system that ROCm supports.
constexpr std::array spellings{
    Spelling{"bytes", ElementType::bytes},
    Spelling{"char", ElementType::i8},
    Spelling{"signed char", ElementType::i8},
    Spelling{"int8_t", ElementType::i8},
    Spelling{"i8", ElementType::i8},
    Spelling{"unsigned char", ElementType::u8},
    Spelling{"uchar", ElementType::u8},
    Spelling{"uint8_t", ElementType::u8},
    Spelling{"bool", ElementType::u8},
    Spelling{"u8", ElementType::u8},
    Spelling{"short", ElementType::i16},
    Spelling{"short int", ElementType::i16},
    Spelling{"int16_t", ElementType::i16},
    Spelling{"i16", ElementType::i16},
    Spelling{"unsigned short", ElementType::u16},
    Spelling{"ushort", ElementType::u16},
    Spelling{"uint16_t", ElementType::u16},
    Spelling{"u16", ElementType::u16},
    Spelling{"int", ElementType::i32},
    Spelling{"int32_t", ElementType::i32},
    Spelling{"i32", ElementType::i32},
    Spelling{"unsigned int", ElementType::u32},
    Spelling{"unsigned", ElementType::u32},
    Spelling{"uint", ElementType::u32},
    Spelling{"uint32_t", ElementType::u32},
    Spelling{"u32", ElementType::u32},
    Spelling{"long", ElementType::i64},
    Spelling{"long int", ElementType::i64},
    Spelling{"long long", ElementType::i64},
    Spelling{"long long int", ElementType::i64},
    Spelling{"longlong", ElementType::i64},
    Spelling{"int64_t", ElementType::i64},
    Spelling{"i64", ElementType::i64},
    Spelling{"unsigned long", ElementType::u64},
    Spelling{"unsigned long long", ElementType::u64},
    Spelling{"ulong", ElementType::u64},
    Spelling{"ulonglong", ElementType::u64},
    Spelling{"size_t", ElementType::u64},
    Spelling{"uint64_t", ElementType::u64},
    Spelling{"u64", ElementType::u64},
    Spelling{"half", ElementType::f16},
    Spelling{"__half", ElementType::f16},
    Spelling{"_Float16", ElementType::f16},
    Spelling{"__fp16", ElementType::f16},
    Spelling{"f16", ElementType::f16},
    Spelling{"bfloat16", ElementType::bf16},
    Spelling{"__bf16", ElementType::bf16},
    Spelling{"hip_bfloat16", ElementType::bf16},
    Spelling{"__hip_bfloat16", ElementType::bf16},
    Spelling{"bf16", ElementType::bf16},
    Spelling{"float", ElementType::f32},
    Spelling{"f32", ElementType::f32},
    Spelling{"double", ElementType::f64},
    Spelling{"f64", ElementType::f64},
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// Takes cv-qualifiers, `restrict` and elaborations away wherever they stand at either end.
std::string_view without_qualifiers(std::string_view text) {
  constexpr std::array<std::string_view, 6> words{"const",      "volatile", "__restrict__",
                                                  "__restrict", "restrict", "__global"};
  for (bool again = true; again;) {
    again = false;
    text = trim(text);
    for (const std::string_view word : words) {
      if (text.starts_with(word) && text.size() > word.size() && text[word.size()] == ' ') {
        text.remove_prefix(word.size());
        again = true;
      } else if (text.ends_with(word) && text.size() > word.size() &&
                 (text[text.size() - word.size() - 1] == ' ' || text[text.size() - word.size() - 1] == '*' ||
                  text[text.size() - word.size() - 1] == '&')) {
        text.remove_suffix(word.size());
        again = true;
      }
    }
  }
  return text;
}

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// IEEE binary16 -> binary32, exact.
float half_value(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31;
  const std::uint32_t exponent = bits >> 10 & 0x1f;
  const std::uint32_t fraction = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

float bfloat_value(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::string floating_text(double value, std::uint64_t bits) {
  return std::isnan(value) ? fmt::format("nan({:#x})", bits) : fmt::format("{}", value);
}

}  // namespace

const char* to_string(ElementType type) { return type_rows[static_cast<std::size_t>(type)].name; }
std::size_t size_of(ElementType type) { return type_rows[static_cast<std::size_t>(type)].size; }
bool is_floating(ElementType type) { return type_rows[static_cast<std::size_t>(type)].floating; }

std::optional<ElementType> element_type(std::string_view spelling) {
  std::string_view text = without_qualifiers(spelling);
  constexpr std::string_view vector_prefix = "HIP_vector_type<";  // HIP's float4 and friends, demangled
  if (text.starts_with(vector_prefix) && text.ends_with(">")) {
    text.remove_prefix(vector_prefix.size());
    if (const auto comma = text.rfind(','); comma != std::string_view::npos) return element_type(text.substr(0, comma));
  }
  if (text.starts_with("std::")) text.remove_prefix(5);
  for (const Spelling& row : spellings) {
    if (row.text == text) return row.type;
  }
  // "float4", "uint2", "double16": vector types of HIP and OpenCL.
  std::string_view stem = text;
  while (!stem.empty() && std::isdigit(static_cast<unsigned char>(stem.back()))) stem.remove_suffix(1);
  const std::string_view digits = text.substr(stem.size());
  const bool is_width =
      digits == "1" || digits == "2" || digits == "3" || digits == "4" || digits == "8" || digits == "16";
  if (!stem.empty() && is_width && stem != "i" && stem != "u" && stem != "f" && stem != "bf") {
    for (const Spelling& row : spellings) {
      if (row.text == stem) return row.type;
    }
  }
  return std::nullopt;
}

std::vector<std::string> parameter_types(std::string_view demangled) {
  std::string_view text = trim(demangled);
  if (const auto clone = text.find(" [clone"); clone != std::string_view::npos) text = trim(text.substr(0, clone));
  if (!text.ends_with(")")) return {};
  // The parameter list is the last balanced (...) of the name; template arguments may hold others.
  std::size_t depth = 0, open = std::string_view::npos;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) {
      open = i;
      break;
    }
  }
  if (open == std::string_view::npos) return {};
  const std::string_view list = text.substr(open + 1, text.size() - open - 2);
  std::vector<std::string> result;
  std::size_t start = 0;
  int nesting = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '(' || c == '<' || c == '[' || c == '{') ++nesting;
    if (c == ')' || c == '>' || c == ']' || c == '}') --nesting;
    if (c == ',' && nesting == 0) {
      const std::string_view one = trim(list.substr(start, i - start));
      if (!one.empty() && one != "void") result.emplace_back(one);
      start = i + 1;
    }
  }
  return result;
}

std::optional<std::string> pointee(std::string_view type) {
  const std::string_view text = without_qualifiers(type);
  if (text.empty() || (text.back() != '*' && text.back() != '&')) return std::nullopt;
  return std::string(trim(text.substr(0, text.size() - 1)));
}

double element_value(ElementType type, const std::byte* bytes) {
  switch (type) {
    case ElementType::bytes:
    case ElementType::u8:
      return load<std::uint8_t>(bytes);
    case ElementType::i8:
      return load<std::int8_t>(bytes);
    case ElementType::i16:
      return load<std::int16_t>(bytes);
    case ElementType::u16:
      return load<std::uint16_t>(bytes);
    case ElementType::i32:
      return load<std::int32_t>(bytes);
    case ElementType::u32:
      return load<std::uint32_t>(bytes);
    case ElementType::i64:
      return static_cast<double>(load<std::int64_t>(bytes));
    case ElementType::u64:
      return static_cast<double>(load<std::uint64_t>(bytes));
    case ElementType::f16:
      return half_value(load<std::uint16_t>(bytes));
    case ElementType::bf16:
      return bfloat_value(load<std::uint16_t>(bytes));
    case ElementType::f32:
      return load<float>(bytes);
    case ElementType::f64:
      return load<double>(bytes);
  }
  return 0;
}

std::string element_text(ElementType type, const std::byte* bytes) {
  switch (type) {
    case ElementType::bytes:
      return fmt::format("{:#04x}", load<std::uint8_t>(bytes));
    case ElementType::i64:
      return fmt::format("{}", load<std::int64_t>(bytes));
    case ElementType::u64:
      return fmt::format("{}", load<std::uint64_t>(bytes));
    case ElementType::f16:
    case ElementType::bf16:
      return floating_text(element_value(type, bytes), load<std::uint16_t>(bytes));
    case ElementType::f32: {
      const auto value = load<float>(bytes);
      return std::isnan(value) ? floating_text(value, load<std::uint32_t>(bytes)) : fmt::format("{}", value);
    }
    case ElementType::f64:
      return floating_text(load<double>(bytes), load<std::uint64_t>(bytes));
    default:
      return fmt::format("{}", static_cast<std::int64_t>(element_value(type, bytes)));
  }
}

}  // namespace kerncap::replay
