// Where declarations stand: in files as the compiler opened them, and inside the project.
#pragma once

#include <clang/AST/Decl.h>
#include <clang/Basic/SourceLocation.h>

#include <cstdint>
#include <optional>
#include <string>

#include "emit/finder/kernel_search.h"

namespace clang {
class ASTContext;
class SourceManager;
}  // namespace clang

namespace kerncap::finder {

struct Place {
  std::string file;  // name for the compiler
  std::uint64_t first_line = 0, last_line = 0;
};

class Locator {
 public:
  Locator(clang::ASTContext& context, const SearchRequest& request);

  // Where the text of a declaration stands in a file: of a macro, where it is used.
  std::optional<Place> place(clang::SourceRange range) const;
  // The path inside the project; nothing for system headers.
  std::optional<std::string> label(const std::string& file) const;
  // Name of the macro whose expansion a location is in; empty otherwise.
  std::string macro(clang::SourceLocation location) const;
  clang::PresumedLoc presumed(clang::SourceLocation location) const;

 private:
  clang::ASTContext& context_;
  clang::SourceManager& manager_;
  const SearchRequest& request_;
};

// The declaration that a person would edit: the template, not its instantiation.
const clang::FunctionDecl* written(const clang::FunctionDecl* function);

}  // namespace kerncap::finder
