// What a kernel's parameter is, for typed comparison and for decoding the kernarg segment.
#pragma once

#include "core/support/json.h"

namespace clang {
class ASTContext;
class ParmVarDecl;
class QualType;
}  // namespace clang

namespace kerncap::finder {

support::Json describe_parameter(const clang::ASTContext& context, const clang::ParmVarDecl& parameter, int index);

// "f32", "bf16", "i32" ...; empty for what has no elements of one arithmetic type.
std::string element_of(const clang::ASTContext& context, clang::QualType type);

}  // namespace kerncap::finder
