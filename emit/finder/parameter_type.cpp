#include "emit/finder/parameter_type.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/RecordLayout.h>
#include <clang/AST/Type.h>

#include <array>
#include <string_view>

namespace kerncap::finder {
namespace {

using support::Json;

constexpr int deepest_record = 4;

// Structs that libraries use as one number: the kinds of 16-bit floats of HIP's headers.
struct NumberRecord {
  std::string_view name, element;
};
constexpr auto number_records = std::to_array<NumberRecord>({
    {"__half", "f16"},
    {"__half_raw", "f16"},
    {"__half2", "f16"},
    {"__half2_raw", "f16"},
    {"hip_bfloat16", "bf16"},
    {"__hip_bfloat16", "bf16"},
    {"__hip_bfloat162", "bf16"},
});

std::string integer_element(const clang::ASTContext& context, clang::QualType type, bool is_signed) {
  return (is_signed ? "i" : "u") + std::to_string(context.getTypeSize(type));
}

// The one arithmetic type that a record is made of (float4, complex, a wrapper of a double); empty when there are
// several.
std::string element_of_record(const clang::ASTContext& context, const clang::RecordDecl& record, int depth);

std::string element_at_depth(const clang::ASTContext& context, clang::QualType type, int depth) {
  type = type.getCanonicalType().getUnqualifiedType();
  if (const auto* vector = type->getAs<clang::VectorType>())
    return element_at_depth(context, vector->getElementType(), depth);
  if (const auto* complex = type->getAs<clang::ComplexType>())
    return element_at_depth(context, complex->getElementType(), depth);
  if (const auto* array = context.getAsArrayType(type))
    return element_at_depth(context, array->getElementType(), depth);
  if (type->isDependentType() || type->isVoidType()) return "";
  if (const auto* enumeration = type->getAs<clang::EnumType>()) {
    const clang::QualType integer = enumeration->getDecl()->getIntegerType();
    return integer.isNull() ? "" : element_at_depth(context, integer, depth);
  }
  if (type->isBooleanType()) return "u8";
  if (type->isSpecificBuiltinType(clang::BuiltinType::BFloat16)) return "bf16";
  if (type->isFloatingType()) {
    const auto bits = context.getTypeSize(type);
    return bits == 16 || bits == 32 || bits == 64 ? "f" + std::to_string(bits) : "";
  }
  if (type->isIntegerType()) return integer_element(context, type, type->isSignedIntegerType());
  if (const auto* record = type->getAsRecordDecl()) return element_of_record(context, *record, depth + 1);
  return "";
}

std::string element_of_record(const clang::ASTContext& context, const clang::RecordDecl& record, int depth) {
  for (const auto& known : number_records)
    if (record.getName() == llvm::StringRef(known.name.data(), known.name.size())) return std::string(known.element);
  const clang::RecordDecl* definition = record.getDefinition();
  if (definition == nullptr || depth > deepest_record) return "";
  std::string element;
  const auto agrees = [&](clang::QualType type) {
    const std::string found = element_at_depth(context, type, depth);
    if (found.empty() || (!element.empty() && found != element)) return false;
    element = found;
    return true;
  };
  if (const auto* structure = llvm::dyn_cast<clang::CXXRecordDecl>(definition)) {
    for (const auto& base : structure->bases())
      if (const auto* base_record = base.getType()->getAsCXXRecordDecl();
          base_record == nullptr || !base_record->isEmpty())
        if (!agrees(base.getType())) return "";
  }
  for (const auto* field : definition->fields()) {
    // float4 and its relatives are unions of a vector with structs of its parts: every part tells the same.
    if (!agrees(field->getType())) return "";
  }
  return element;
}

std::string spelled(const clang::ASTContext& context, clang::QualType type) {
  clang::PrintingPolicy policy(context.getPrintingPolicy());
  policy.SuppressTagKeyword = true;
  policy.Bool = true;
  return type.getAsString(policy);
}

// Members of a struct passed by value, with the places where pointers lie in the kernarg segment.
void add_fields(const clang::ASTContext& context, const clang::RecordDecl& record, std::uint64_t base,
                const std::string& prefix, int depth, Json& fields) {
  const clang::RecordDecl* definition = record.getDefinition();
  if (definition == nullptr || definition->isInvalidDecl() || depth > deepest_record || fields.size() > 256) return;
  const auto& layout = context.getASTRecordLayout(definition);
  if (const auto* structure = llvm::dyn_cast<clang::CXXRecordDecl>(definition))
    for (const auto& base_class : structure->bases())
      if (const auto* base_record = base_class.getType()->getAsCXXRecordDecl();
          base_record != nullptr && !base_class.isVirtual())
        add_fields(context, *base_record, base + std::uint64_t(layout.getBaseClassOffset(base_record).getQuantity()),
                   prefix, depth + 1, fields);
  for (const auto* field : definition->fields()) {
    const std::uint64_t offset = base + layout.getFieldOffset(field->getFieldIndex()) / 8;
    const std::string name = prefix + field->getNameAsString();
    const clang::QualType type = field->getType();
    if (type->isAnyPointerType()) {
      const clang::QualType pointee = type->getPointeeType();
      fields.push_back({{"name", name},
                        {"offset", offset},
                        {"type", spelled(context, type)},
                        {"pointer", true},
                        {"const", pointee.isConstQualified()},
                        {"pointee", spelled(context, pointee.getUnqualifiedType())},
                        {"element", element_of(context, pointee)}});
    } else if (const auto* inner = type->getAsRecordDecl()) {
      add_fields(context, *inner, offset, name + ".", depth + 1, fields);
    } else {
      fields.push_back({{"name", name},
                        {"offset", offset},
                        {"type", spelled(context, type)},
                        {"pointer", false},
                        {"element", element_of(context, type)}});
    }
  }
}

}  // namespace

std::string element_of(const clang::ASTContext& context, clang::QualType type) {
  return element_at_depth(context, type, 0);
}

Json describe_parameter(const clang::ASTContext& context, const clang::ParmVarDecl& parameter, int index) {
  const clang::QualType type = parameter.getType();
  const clang::QualType canonical = type.getCanonicalType();
  Json entry{{"index", index},
             {"name", parameter.getNameAsString()},
             {"type", spelled(context, type)},
             {"canonical", spelled(context, canonical)}};
  const bool pointer = canonical->isAnyPointerType() || canonical->isReferenceType();
  entry["pointer"] = pointer;
  entry["size"] = canonical->isReferenceType() ? 8
                  : canonical->isIncompleteType() || canonical->isDependentType()
                      ? 0
                      : std::uint64_t(context.getTypeSizeInChars(canonical).getQuantity());
  if (pointer) {
    const clang::QualType pointee = canonical->getPointeeType();
    entry["const"] = pointee.isConstQualified();
    entry["pointee"] = spelled(context, pointee.getUnqualifiedType());
    entry["element"] = element_of(context, pointee);
  } else {
    entry["const"] = false;
    entry["pointee"] = "";
    entry["element"] = element_of(context, canonical);
    if (const auto* record = canonical->getAsRecordDecl(); record != nullptr && !canonical->isDependentType()) {
      Json fields = Json::array();
      add_fields(context, *record, 0, "", 0, fields);
      entry["fields"] = std::move(fields);
    }
  }
  return entry;
}

}  // namespace kerncap::finder
