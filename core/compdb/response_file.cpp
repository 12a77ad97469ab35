#include "core/compdb/response_file.h"

#include "core/compdb/file_system.h"

namespace kerncap::compdb {
namespace {

constexpr int deepest_nesting = 16;               // a file that names itself ends here
constexpr std::size_t most_arguments = 1U << 20;  // and one that names itself twice ends here
constexpr std::uint64_t largest_file = 64U << 20;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

void expand(const std::vector<std::string>& arguments, const std::string& directory, int depth,
            std::vector<std::string>& result) {
  for (const std::string& argument : arguments) {
    std::string text;
    if (result.size() < most_arguments && depth < deepest_nesting && argument.size() > 1 && argument[0] == '@' &&
        read_file(absolute_path(directory, argument.substr(1)), largest_file, text)) {
      expand(split_response_text(text), directory, depth + 1, result);
    } else {
      result.push_back(argument);
    }
  }
}

}  // namespace

std::vector<std::string> split_response_text(std::string_view text) {
  std::vector<std::string> arguments;
  std::string current;
  bool in_argument = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      current.push_back(text[++i]);
      in_argument = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        current.push_back(c);
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_argument = true;
    } else if (is_blank(c)) {
      if (in_argument) arguments.push_back(std::move(current));
      current.clear();
      in_argument = false;
    } else {
      current.push_back(c);
      in_argument = true;
    }
  }
  if (in_argument) arguments.push_back(std::move(current));
  return arguments;
}

std::vector<std::string> expand_response_files(const std::vector<std::string>& argv, const std::string& directory) {
  std::vector<std::string> result;
  if (argv.empty()) return result;
  result.push_back(argv.front());
  expand({argv.begin() + 1, argv.end()}, directory, 0, result);
  return result;
}

}  // namespace kerncap::compdb
