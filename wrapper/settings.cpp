#include "wrapper/settings.h"

#include <algorithm>
#include <string_view>

#include "core/compdb/file_system.h"

namespace kerncap::wrapper {
namespace {

constexpr std::uint64_t largest_settings = 1U << 20;

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// The string of one key of TOML's root table. The program is too small for a TOML library, and needs no other value:
// keys of the root stand before the first table (toml.io, "Table"), and a name or path needs no escape but \\ and \".
std::string root_string(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('[')) return {};
    if (!line.starts_with(key)) continue;
    line = trimmed(line.substr(key.size()));
    if (!line.starts_with('=')) continue;
    line = trimmed(line.substr(1));
    if (line.empty() || (line[0] != '"' && line[0] != '\'')) return {};
    std::string value;
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (line[i] == line[0]) return value;
      if (line[0] == '"' && line[i] == '\\' && i + 1 < line.size()) ++i;
      value += line[i];
    }
    return {};
  }
  return {};
}

}  // namespace

std::string compiler_of_settings(const std::string& start) {
  for (std::string folder = start;; folder = compdb::folder_of(folder)) {
    std::string text;
    if (compdb::read_file((folder == "/" ? "" : folder) + "/kerncap.toml", largest_settings, text)) {
      const std::string value = root_string(text, "compiler");
      return value.find('/') == std::string::npos ? value : compdb::absolute_path(folder, value);
    }
    if (folder == "/" || folder == ".") return {};
  }
}

}  // namespace kerncap::wrapper
