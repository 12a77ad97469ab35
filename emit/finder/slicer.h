// What a translation unit can do without when only one kernel is wanted: the bodies of host functions and of other
// kernels. Their declarations stay, and so does every line number.
#pragma once

#include "core/support/json.h"
#include "emit/finder/kernel_search.h"

namespace clang {
class ASTContext;
class FunctionDecl;
}  // namespace clang

namespace kerncap::finder {

// `kernel` as found by its symbol (of a template, the specialisation). The answer:
//   {"edits": [{"file": project path, "begin": byte, "end": byte, "text": replacement}], sorted, not overlapping;
//    "anchor": declaration to append to the main file, may be empty; "emptied": number of functions}
// or {"problem": "..."}.
support::Json slice_for(clang::ASTContext& context, const SearchRequest& request, const clang::FunctionDecl& kernel);

}  // namespace kerncap::finder
