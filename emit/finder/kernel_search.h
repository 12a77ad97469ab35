// The kernel's definition in a parsed translation unit.
#pragma once

#include <map>
#include <string>

#include "core/support/json.h"

namespace clang {
class ASTContext;
}

namespace kerncap::finder {

struct SearchRequest {
  std::string symbol;                         // mangled name as captured
  std::map<std::string, std::string> labels;  // file name for the compiler -> path inside the project
  bool slice = false;                         // also answer what the translation unit can do without
};

// An object with the members of emit::KernelDefinition, or {"problem": "..."}.
support::Json search_kernel(clang::ASTContext& context, const SearchRequest& request);

}  // namespace kerncap::finder
