// @FILE arguments: expanded the way clang, gcc and nvcc do it, because build tools delete the files when the compile is
// over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kerncap::compdb {

// Splits a response file's text (GNU rules: blanks separate, '...' and "..." group, \ takes the next character
// literally).
std::vector<std::string> split_response_text(std::string_view text);

// `argv` with every @FILE replaced by its content, nested ones too. A file that cannot be read stays as it is (that is
// what the compilers do with an argument that merely begins with '@'). Relative names are looked up in `directory`.
std::vector<std::string> expand_response_files(const std::vector<std::string>& argv, const std::string& directory);

}  // namespace kerncap::compdb
