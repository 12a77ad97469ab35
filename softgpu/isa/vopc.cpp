// Vector comparisons: v_cmp_* write a lane mask, v_cmpx_* EXEC (and on GCN the mask too).
#include <deque>

#include <fmt/format.h>

#include "softgpu/isa/half_math.h"

namespace kerncap::softgpu::isa {
namespace {

// Tables are built from names of conditions and of types; the strings live as long as the table.
std::string& kept(std::string text) {
  static auto* all = new std::deque<std::string>;
  return all->emplace_back(std::move(text));
}

template <class T>
auto comparable(T x) {
  if constexpr (std::is_same_v<T, half>)
    return half_to_float(x);
  else
    return x;
}

template <class Signature, class F>
void add(F compare, std::vector<Instruction>& table, std::string_view condition, std::string_view type) {
  for (const bool writes_exec : {false, true}) {
    Instruction row = lanewise<Signature>(compare, "");
    row.family = Family::vcmp;
    row.name = kept(fmt::format("v_cmp{}_{}_{}", writes_exec ? "x" : "", condition, type)).c_str();
    if (writes_exec) row.flags |= instruction_writes_exec;
    table.push_back(row);
  }
}

template <class T>
void add_ordered(std::vector<Instruction>& table, std::string_view type) {
  using Signature = bool(T, T);
  add<Signature>([](T, T) { return false; }, table, "f", type);
  add<Signature>([](T a, T b) { return comparable(a) < comparable(b); }, table, "lt", type);
  add<Signature>([](T a, T b) { return comparable(a) == comparable(b); }, table, "eq", type);
  add<Signature>([](T a, T b) { return comparable(a) <= comparable(b); }, table, "le", type);
  add<Signature>([](T a, T b) { return comparable(a) > comparable(b); }, table, "gt", type);
  add<Signature>([](T a, T b) { return comparable(a) >= comparable(b); }, table, "ge", type);
}

template <class T>
void add_integer(std::vector<Instruction>& table, std::string_view type) {
  using Signature = bool(T, T);
  add_ordered<T>(table, type);
  add<Signature>([](T a, T b) { return a != b; }, table, "ne", type);
  add<Signature>([](T, T) { return true; }, table, "t", type);
}

template <class T>
void add_float(std::vector<Instruction>& table, std::string_view type) {
  using Signature = bool(T, T);
  add_ordered<T>(table, type);
  add<Signature>([](T a, T b) { return comparable(a) < comparable(b) || comparable(a) > comparable(b); }, table, "lg",
                 type);
  add<Signature>([](T a, T b) { return comparable(a) == comparable(a) && comparable(b) == comparable(b); }, table, "o",
                 type);
  add<Signature>([](T a, T b) { return !(comparable(a) == comparable(a) && comparable(b) == comparable(b)); }, table,
                 "u", type);
  add<Signature>([](T a, T b) { return !(comparable(a) >= comparable(b)); }, table, "nge", type);
  add<Signature>([](T a, T b) { return !(comparable(a) < comparable(b) || comparable(a) > comparable(b)); }, table,
                 "nlg", type);
  add<Signature>([](T a, T b) { return !(comparable(a) > comparable(b)); }, table, "ngt", type);
  add<Signature>([](T a, T b) { return !(comparable(a) <= comparable(b)); }, table, "nle", type);
  add<Signature>([](T a, T b) { return !(comparable(a) == comparable(b)); }, table, "neq", type);
  add<Signature>([](T a, T b) { return !(comparable(a) < comparable(b)); }, table, "nlt", type);
  add<Signature>([](T, T) { return true; }, table, "tru", type);
  add<Signature>([](T, T) { return true; }, table, "t", type);
}

// Class bits: 0 signaling NaN, 1 quiet NaN, 2 -inf, 3 -normal, 4 -denormal, 5 -0, 6 +0, 7 +denormal, 8 +normal, 9 +inf.
constexpr unsigned class_bit(bool negative, bool exponent_zero, bool exponent_ones, bool mantissa_zero, bool quiet) {
  if (exponent_ones && !mantissa_zero) return quiet ? 1 : 0;
  if (exponent_ones) return negative ? 2 : 9;
  if (!exponent_zero) return negative ? 3 : 8;
  if (!mantissa_zero) return negative ? 4 : 7;
  return negative ? 5 : 6;
}
bool in_class(float x, u32 wanted) {
  const u32 bits = std::bit_cast<u32>(x), exponent = bits >> 23 & 255, mantissa = bits & 0x7fffff;
  return wanted >> class_bit(bits >> 31, exponent == 0, exponent == 255, mantissa == 0, mantissa >> 22) & 1;
}
bool in_class(double x, u32 wanted) {
  const u64 bits = std::bit_cast<u64>(x), exponent = bits >> 52 & 2047, mantissa = bits & 0xfffffffffffff;
  return wanted >> class_bit(bits >> 63, exponent == 0, exponent == 2047, mantissa == 0, mantissa >> 51) & 1;
}
bool in_class(half x, u32 wanted) {
  const u32 bits = x.bits, exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
  return wanted >> class_bit(bits >> 15, exponent == 0, exponent == 31, mantissa == 0, mantissa >> 9) & 1;
}

}  // namespace

std::span<const Instruction> compare_instructions() {
  static const auto* table = [] {
    auto* made = new std::vector<Instruction>;
    add_integer<i16>(*made, "i16");
    add_integer<u16>(*made, "u16");
    add_integer<i32>(*made, "i32");
    add_integer<u32>(*made, "u32");
    add_integer<i64>(*made, "i64");
    add_integer<u64>(*made, "u64");
    add_float<half>(*made, "f16");
    add_float<float>(*made, "f32");
    add_float<double>(*made, "f64");
    add<bool(half, u16)>([](half a, u16 b) { return in_class(a, b); }, *made, "class", "f16");
    add<bool(float, u32)>([](float a, u32 b) { return in_class(a, b); }, *made, "class", "f32");
    add<bool(double, u32)>([](double a, u32 b) { return in_class(a, b); }, *made, "class", "f64");
    return made;
  }();
  return *table;
}

}  // namespace kerncap::softgpu::isa
