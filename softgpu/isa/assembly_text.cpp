#include "softgpu/isa/assembly_text.h"

#include <array>
#include <cerrno>
#include <cstdlib>

namespace kerncap::softgpu::isa {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Splits at `separator` outside brackets, parentheses and quotes.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == separator && depth == 0) {
      parts.push_back(trimmed(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  parts.push_back(trimmed(text.substr(start)));
  return parts;
}

constexpr std::array<std::string_view, 10> suffixes{"_e64_dpp8", "_e64_dpp", "_dpp8", "_e32", "_e64",
                                                    "_sdwa",     "_dpp",     "_t16",  "_vi",  "_gfx9"};

}  // namespace

const std::string* AssemblyText::modifier(std::string_view name) const {
  for (const auto& [key, value] : modifiers)
    if (key == name) return &value;
  return nullptr;
}

AssemblyText parse_assembly(std::string_view text) {
  AssemblyText result;
  text = trimmed(text);
  const auto end = text.find_first_of(" \t");
  std::string_view mnemonic = text.substr(0, end);
  for (const auto suffix : suffixes)
    if (mnemonic.ends_with(suffix) && mnemonic.starts_with("v_")) {
      result.suffix = suffix.substr(1);
      mnemonic.remove_suffix(suffix.size());
      break;
    }
  result.mnemonic = mnemonic;
  if (end == std::string_view::npos) return result;
  const auto operands = split(trimmed(text.substr(end)), ',');
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i + 1 < operands.size()) {
      result.operands.emplace_back(operands[i]);
      continue;
    }
    bool first = true;
    for (const auto part : split(operands[i], ' ')) {
      if (part.empty()) continue;
      const auto colon = part.find(':');
      const bool is_register = part.find('[') < colon;  // s[0:3], not offset:4
      const bool is_word = part == "gds";               // the only one that may stand without any operand before it
      if (first && !is_word && (colon == std::string_view::npos || is_register)) {
        result.operands.emplace_back(part);
      } else {
        result.modifiers.emplace_back(part.substr(0, colon),
                                      colon == std::string_view::npos ? "" : part.substr(colon + 1));
      }
      first = false;
    }
  }
  return result;
}

std::vector<int> number_list(std::string_view text) {
  std::vector<int> numbers;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return numbers;
  for (const auto part : split(text.substr(1, text.size() - 2), ',')) {
    long long value = 0;
    if (!parse_integer(part, value)) return {};
    numbers.push_back(static_cast<int>(value));
  }
  return numbers;
}

bool parse_integer(std::string_view text, long long& value) {
  const std::string copy(text);
  const bool negative = copy.starts_with('-');
  const char* digits = copy.c_str() + (negative ? 1 : 0);
  if (*digits < '0' || *digits > '9') return false;
  char* end = nullptr;
  errno = 0;
  const bool hexadecimal = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  const unsigned long long magnitude = std::strtoull(digits, &end, hexadecimal ? 16 : 10);
  if (errno != 0 || end == digits || *end != '\0') return false;
  value = negative ? -static_cast<long long>(magnitude) : static_cast<long long>(magnitude);
  return true;
}

}  // namespace kerncap::softgpu::isa
