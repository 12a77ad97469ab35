// Taking apart the text of one instruction: mnemonic, operands, modifiers.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kerncap::softgpu::isa {

struct AssemblyText {
  std::string mnemonic;                                        // without encoding suffix
  std::string suffix;                                          // e32, e64, sdwa, dpp, dpp8, e64_dpp, or empty
  std::vector<std::string> operands;                           // "v0", "-|s1|", "hwreg(HW_REG_MODE, 0, 4)"
  std::vector<std::pair<std::string, std::string>> modifiers;  // {"offset", "16"}, {"glc", ""}

  const std::string* modifier(std::string_view name) const;
};

AssemblyText parse_assembly(std::string_view text);
// "[1,0,3]" -> {1, 0, 3}
std::vector<int> number_list(std::string_view text);
// Decimal or hexadecimal, with sign; false when it isn't an integer.
bool parse_integer(std::string_view text, long long& value);

}  // namespace kerncap::softgpu::isa
