// Names: demangling, and the kernel-name patterns of every command.
#include <llvm/ADT/StringRef.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/Support/Regex.h>

#include <cstdlib>

#include "core/codeobject/code_object.h"
#include "core/support/error.h"

namespace kerncap::codeobject {
namespace {

using support::ExitCode;
using support::fail;

// What clang appends to make names of statics unique among translation units, and the descriptor's suffix.
std::string_view without_suffixes(std::string_view symbol) {
  if (symbol.ends_with(".kd")) symbol.remove_suffix(3);
  for (std::string_view marker : {".intern.", ".static."})
    if (const auto at = symbol.find(marker); at != std::string_view::npos && at != 0) symbol = symbol.substr(0, at);
  return symbol;
}

struct FreeDeleter {
  void operator()(char* text) const { std::free(text); }
};

// '*' stands for any text, '?' for one character.
bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

std::string demangle(std::string_view symbol) {
  const std::string mangled(without_suffixes(symbol));
  const std::unique_ptr<char, FreeDeleter> text(llvm::itaniumDemangle(mangled));
  return text ? std::string(text.get()) : mangled;
}

std::vector<std::string> name_spellings(std::string_view symbol, std::string_view demangled) {
  std::vector<std::string> names{std::string(demangled), std::string(without_suffixes(symbol))};
  llvm::ItaniumPartialDemangler parts;
  const std::string mangled(without_suffixes(symbol));
  if (parts.partialDemangle(mangled.c_str()) || !parts.isFunction()) return names;
  const auto text = [](char* raw) {
    const std::unique_ptr<char, FreeDeleter> owned(raw);
    return std::string(owned ? owned.get() : "");
  };
  const std::string name = text(parts.getFunctionName(nullptr, nullptr));
  const std::string context = text(parts.getFunctionDeclContextName(nullptr, nullptr));
  const std::string base = text(parts.getFunctionBaseName(nullptr, nullptr));
  const std::string parameters = text(parts.getFunctionParameters(nullptr, nullptr));
  names.push_back(name + parameters);
  names.push_back(name);
  names.push_back(base);
  if (!context.empty()) {
    if (name.starts_with(context + "::")) names.push_back(name.substr(context.size() + 2));
    names.push_back(context + "::" + base);
  }
  return names;
}

struct NamePattern::Compiled {
  enum class Kind { glob, regular_expression, symbol } kind = Kind::glob;
  std::string body;
  llvm::Regex expression;
};

NamePattern::NamePattern(std::string_view pattern) : text_(pattern) {
  auto compiled = std::make_shared<Compiled>();
  compiled->body = pattern;
  if (pattern.starts_with("re:")) {
    compiled->kind = Compiled::Kind::regular_expression;
    compiled->body = pattern.substr(3);
    compiled->expression = llvm::Regex(compiled->body);
    std::string problem;
    if (!compiled->expression.isValid(problem))
      fail(ExitCode::usage, "kernel pattern '{}' is no regular expression: {}", pattern, problem);
  } else if (pattern.starts_with("sym:")) {
    compiled->kind = Compiled::Kind::symbol;
    compiled->body = pattern.substr(4);
    if (compiled->body.ends_with(".kd")) compiled->body.resize(compiled->body.size() - 3);
  }
  if (compiled->body.empty())
    fail(ExitCode::usage, "kernel pattern '{}' is empty; give a name, a glob, re:EXPRESSION or sym:SYMBOL", pattern);
  compiled_ = std::move(compiled);
}

bool NamePattern::matches(std::string_view symbol, std::string_view demangled) const {
  switch (compiled_->kind) {
    case Compiled::Kind::symbol:
      if (symbol.ends_with(".kd")) symbol.remove_suffix(3);
      return symbol == compiled_->body;
    case Compiled::Kind::regular_expression:
      return compiled_->expression.match(llvm::StringRef(demangled.data(), demangled.size()));
    case Compiled::Kind::glob:
      for (const auto& name : name_spellings(symbol, demangled))
        if (glob_matches(compiled_->body, name)) return true;
      return false;
  }
  return false;
}

}  // namespace kerncap::codeobject
