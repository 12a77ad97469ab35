#include "emit/finder/slicer.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/SourceManager.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "emit/finder/locator.h"

namespace kerncap::finder {
namespace {

using support::Json;

// ---- Which functions must keep their bodies -------------------------------------------------------------------------

bool runs_on_device(const clang::FunctionDecl& function) {
  // constexpr functions are for both sides, and the compiler itself may need their values.
  return function.hasAttr<clang::CUDADeviceAttr>() || function.isConstexpr();
}

// A type that can only be named where it stands: a lambda, a local class; also as an argument of another template.
bool is_nameless(clang::QualType type);

bool is_nameless(const clang::TemplateArgument& argument) {
  switch (argument.getKind()) {
    case clang::TemplateArgument::Type:
      return is_nameless(argument.getAsType());
    case clang::TemplateArgument::Pack:
      return std::any_of(argument.pack_begin(), argument.pack_end(),
                         [](const clang::TemplateArgument& element) { return is_nameless(element); });
    default:
      return false;
  }
}

bool is_nameless(clang::QualType type) {
  type = type.getCanonicalType();
  while (!type.isNull() && (type->isAnyPointerType() || type->isReferenceType())) type = type->getPointeeType();
  if (type.isNull()) return false;
  if (const auto* array = type->getAsArrayTypeUnsafe()) return is_nameless(array->getElementType());
  if (const auto* function = type->getAs<clang::FunctionProtoType>())
    return is_nameless(function->getReturnType()) ||
           std::any_of(function->param_type_begin(), function->param_type_end(),
                       [](clang::QualType parameter) { return is_nameless(parameter); });
  const clang::TagDecl* tag = type->getAsTagDecl();
  if (tag == nullptr) return false;
  if (tag->getParentFunctionOrMethod() != nullptr || !tag->hasNameForLinkage()) return true;
  for (const clang::DeclContext* scope = tag; scope != nullptr; scope = scope->getParent()) {
    const auto* specialisation = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(scope);
    if (specialisation == nullptr) continue;
    for (const auto& argument : specialisation->getTemplateArgs().asArray())
      if (is_nameless(argument)) return true;
  }
  return false;
}

class ReferenceVisitor : public clang::RecursiveASTVisitor<ReferenceVisitor> {
 public:
  bool shouldVisitImplicitCode() const { return true; }
  bool VisitDeclRefExpr(clang::DeclRefExpr* reference) { return add(reference->getDecl()); }
  bool VisitMemberExpr(clang::MemberExpr* member) { return add(member->getMemberDecl()); }
  bool VisitCXXConstructExpr(clang::CXXConstructExpr* construct) { return add(construct->getConstructor()); }
  std::set<const clang::FunctionDecl*> functions;

 private:
  bool add(const clang::ValueDecl* declaration) {
    if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(declaration))
      functions.insert(function->getCanonicalDecl());
    return true;
  }
};

// Who uses whom, specialisation by specialisation.
class CallerVisitor : public clang::RecursiveASTVisitor<CallerVisitor> {
 public:
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return true; }
  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    if (!function->doesThisDeclarationHaveABody() || function->isDependentContext()) return true;
    ReferenceVisitor references;
    references.TraverseStmt(function->getBody());
    for (const auto* callee : references.functions) callers[callee].insert(function);
    return true;
  }
  std::map<const clang::FunctionDecl*, std::set<const clang::FunctionDecl*>> callers;
};

// Every function from which the kernel's specialisation is reached, as written, with the functions that they stand in.
std::set<const clang::FunctionDecl*> functions_that_lead_to(clang::ASTContext& context,
                                                            const clang::FunctionDecl& kernel) {
  CallerVisitor visitor;
  visitor.TraverseDecl(context.getTranslationUnitDecl());
  std::set<const clang::FunctionDecl*> leading, seen;
  std::vector<const clang::FunctionDecl*> open{kernel.getCanonicalDecl()};
  while (!open.empty()) {
    const clang::FunctionDecl* function = open.back();
    open.pop_back();
    for (const clang::FunctionDecl* caller : visitor.callers[function]) {
      if (!seen.insert(caller).second) continue;
      leading.insert(written(caller));
      open.push_back(caller->getCanonicalDecl());
      // A lambda's body belongs to the function around it.
      for (const clang::DeclContext* scope = caller->getParent(); scope != nullptr; scope = scope->getParent())
        if (const auto* around = llvm::dyn_cast<clang::FunctionDecl>(scope)) {
          leading.insert(written(around));
          open.push_back(around->getCanonicalDecl());
        }
    }
  }
  return leading;
}

// ---- The declaration that makes a template's specialisation without its callers
// --------------------------------------

class AnchorWriter {
 public:
  explicit AnchorWriter(const clang::ASTContext& context) : policy_(context.getPrintingPolicy()) {
    policy_.SuppressTagKeyword = true;
    policy_.SuppressUnwrittenScope = true;
    policy_.FullyQualifiedName = true;
    policy_.PrintCanonicalTypes = true;
    policy_.Bool = true;
  }

  // Nothing when an argument has no name that could be written.
  std::optional<std::string> write(const clang::FunctionDecl& kernel) {
    std::string text = "template __attribute__((global)) void " + qualified(kernel);
    if (const auto* arguments = kernel.getTemplateSpecializationArgs()) {
      const auto list = write(arguments->asArray());
      if (!list) return std::nullopt;
      text += "<" + *list + ">";
    }
    text += "(";
    for (unsigned i = 0; i < kernel.getNumParams(); ++i) {
      const clang::QualType type = kernel.getParamDecl(i)->getType();
      if (is_nameless(type)) return std::nullopt;
      text += (i == 0 ? "" : ", ") + type.getCanonicalType().getAsString(policy_);
    }
    return text + ");";
  }

 private:
  std::string qualified(const clang::NamedDecl& declaration) const {
    std::string text;
    llvm::raw_string_ostream stream(text);
    declaration.printQualifiedName(stream, policy_);
    return text;
  }

  std::optional<std::string> write(llvm::ArrayRef<clang::TemplateArgument> arguments) {
    std::string text;
    for (const auto& argument : arguments) {
      if (argument.getKind() == clang::TemplateArgument::Pack && argument.pack_size() == 0) continue;
      const auto one = write(argument);
      if (!one) return std::nullopt;
      text += (text.empty() ? "" : ", ") + *one;
    }
    return text;
  }

  std::optional<std::string> write(const clang::TemplateArgument& argument) {
    switch (argument.getKind()) {
      case clang::TemplateArgument::Type:
        if (is_nameless(argument.getAsType())) return std::nullopt;
        return argument.getAsType().getCanonicalType().getAsString(policy_);
      case clang::TemplateArgument::Integral: {
        if (is_nameless(argument.getIntegralType())) return std::nullopt;
        llvm::SmallString<32> digits;
        argument.getAsIntegral().toString(digits, 10);
        return "static_cast<" + argument.getIntegralType().getCanonicalType().getAsString(policy_) + ">(" +
               digits.str().str() + ")";
      }
      case clang::TemplateArgument::Declaration: {
        const bool reference = argument.getParamTypeForDecl()->isReferenceType();
        return (reference ? "" : "&") + qualified(*argument.getAsDecl());
      }
      case clang::TemplateArgument::NullPtr:
        return "nullptr";
      case clang::TemplateArgument::Template:
        if (const auto* declaration = argument.getAsTemplate().getAsTemplateDecl()) return qualified(*declaration);
        return std::nullopt;
      case clang::TemplateArgument::Pack:
        return write(argument.pack_elements());
      default:
        return std::nullopt;
    }
  }

  clang::PrintingPolicy policy_;
};

// ---- The bodies
// ------------------------------------------------------------------------------------------------------

// Directives that mean something outside of the body, or conditions that the body does not close itself.
bool has_foreign_directives(llvm::StringRef text) {
  int depth = 0;
  llvm::SmallVector<llvm::StringRef, 64> lines;
  text.split(lines, '\n');
  bool continued = false;
  for (llvm::StringRef line : lines) {
    const bool starts_here = !continued;
    continued = line.rtrim("\r").ends_with("\\");
    line = line.ltrim();
    if (!starts_here || !line.consume_front("#")) continue;
    line = line.ltrim();
    const llvm::StringRef word = line.take_while([](char c) { return std::isalpha(static_cast<unsigned char>(c)); });
    if (word == "if" || word == "ifdef" || word == "ifndef") {
      ++depth;
    } else if (word == "endif") {
      if (--depth < 0) return true;
    } else if (word == "else" || word.starts_with("elif")) {
      if (depth == 0) return true;
    } else if (word == "pragma") {
      // Loop hints end with the loop; a push or a pop would not.
      const llvm::StringRef rest = line.drop_front(word.size()).ltrim();
      if (!rest.starts_with("unroll") && !rest.starts_with("nounroll") && !rest.starts_with("omp ") &&
          !rest.starts_with("clang loop"))
        return true;
    } else if (!word.empty()) {
      return true;
    }
  }
  return depth != 0;
}

struct Body {
  std::string file;  // inside the project
  unsigned begin = 0, end = 0;
  bool operator<(const Body& other) const {
    return std::tie(file, begin, end) < std::tie(other.file, other.begin, other.end);
  }
};

class BodyVisitor : public clang::RecursiveASTVisitor<BodyVisitor> {
 public:
  BodyVisitor(clang::ASTContext& context, const SearchRequest& request, const clang::FunctionDecl* kernel,
              std::set<const clang::FunctionDecl*> keep)
      : manager_(context.getSourceManager()), locator_(context, request), kernel_(kernel), keep_(std::move(keep)) {}

  bool shouldVisitTemplateInstantiations() const { return false; }

  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    if (!function->doesThisDeclarationHaveABody() || function->isImplicit() || function->isDefaulted()) return true;
    if (function->getParentFunctionOrMethod() != nullptr) return true;  // goes with the function around it
    const auto* statement = llvm::dyn_cast_or_null<clang::CompoundStmt>(function->getBody());
    if (statement == nullptr) return true;
    const auto body = place(*statement);
    if (!body) return true;
    // A file that is included twice may hold a needed function once and one that is not the other time.
    (needed(*function) ? needed_ : emptied_)[*body] = true;
    return true;
  }

  std::vector<Body> bodies() const {
    std::vector<Body> result;
    for (const auto& [body, unused] : emptied_) {
      const bool overlaps_needed = std::any_of(needed_.begin(), needed_.end(), [&](const auto& entry) {
        return entry.first.file == body.file && entry.first.begin < body.end && body.begin < entry.first.end;
      });
      const bool inside = !result.empty() && result.back().file == body.file && body.begin < result.back().end;
      if (!overlaps_needed && !inside) result.push_back(body);
    }
    return result;
  }

  std::string replacement(const Body& body) const {
    const llvm::StringRef text = texts_.at(body);
    return "{__builtin_unreachable();" + std::string(text.count('\n'), '\n') + "}";
  }

 private:
  bool needed(const clang::FunctionDecl& function) const {
    if (function.hasAttr<clang::CUDAGlobalAttr>()) return &function == kernel_;
    if (runs_on_device(function) || keep_.contains(&function)) return true;
    // The type of these is known from the body alone.
    const clang::QualType result = function.getReturnType();
    return result->getContainedDeducedType() != nullptr;
  }

  std::optional<Body> place(const clang::CompoundStmt& statement) {
    const auto begin = statement.getLBracLoc(), end = statement.getRBracLoc();
    if (begin.isMacroID() || end.isMacroID() || begin.isInvalid() || end.isInvalid()) return std::nullopt;
    const auto [file, first] = manager_.getDecomposedLoc(begin);
    const auto [last_file, last] = manager_.getDecomposedLoc(end);
    if (file != last_file || last <= first) return std::nullopt;
    const auto entry = manager_.getFileEntryRefForID(file);
    if (!entry) return std::nullopt;
    const auto label = locator_.label(entry->getName().str());
    if (!label) return std::nullopt;
    const llvm::StringRef buffer = manager_.getBufferData(file);
    if (last >= buffer.size() || buffer[first] != '{' || buffer[last] != '}') return std::nullopt;  // digraphs
    const llvm::StringRef text = buffer.slice(first, last + 1);
    if (text.size() < 8 || has_foreign_directives(text)) return std::nullopt;
    const Body body{*label, first, last + 1};
    texts_.emplace(body, text);
    return body;
  }

  clang::SourceManager& manager_;
  Locator locator_;
  const clang::FunctionDecl* kernel_;
  std::set<const clang::FunctionDecl*> keep_;
  std::map<Body, bool> needed_, emptied_;
  std::map<Body, llvm::StringRef> texts_;
};

bool comes_from_its_callers(const clang::FunctionDecl& kernel) {
  return kernel.getTemplateSpecializationKind() == clang::TSK_ImplicitInstantiation;
}

}  // namespace

Json slice_for(clang::ASTContext& context, const SearchRequest& request, const clang::FunctionDecl& kernel) {
  std::string anchor;
  std::set<const clang::FunctionDecl*> keep;
  if (comes_from_its_callers(kernel)) {
    if (const auto text = AnchorWriter(context).write(kernel)) {
      anchor = *text;
    } else {
      keep = functions_that_lead_to(context, kernel);
      if (keep.empty())
        return {{"problem",
                 "a template argument of the kernel has no name, and the functions that launch it were not found"}};
    }
  }
  BodyVisitor visitor(context, request, written(&kernel), std::move(keep));
  visitor.TraverseDecl(context.getTranslationUnitDecl());
  const auto bodies = visitor.bodies();
  if (bodies.empty()) return {{"problem", "the translation unit has nothing that the kernel does not need"}};
  Json edits = Json::array();
  for (const auto& body : bodies)
    edits.push_back(
        {{"file", body.file}, {"begin", body.begin}, {"end", body.end}, {"text", visitor.replacement(body)}});
  return {{"edits", std::move(edits)}, {"anchor", anchor}, {"emptied", bodies.size()}};
}

}  // namespace kerncap::finder
