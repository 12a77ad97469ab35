#include "emit/finder/kernel_search.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/Mangle.h>
#include <clang/AST/RecursiveASTVisitor.h>

#include <algorithm>
#include <optional>
#include <set>

#include "emit/finder/locator.h"
#include "emit/finder/parameter_type.h"
#include "emit/finder/slicer.h"

namespace kerncap::finder {
namespace {

using support::Json;

constexpr std::size_t most_callees = 200;

// Names made unique among translation units get a suffix that only the compiler that wrote them knows.
llvm::StringRef without_suffix(llvm::StringRef symbol) {
  if (symbol.ends_with(".kd")) symbol = symbol.drop_back(3);
  for (llvm::StringRef marker : {".intern.", ".static."})
    if (const auto at = symbol.find(marker); at != llvm::StringRef::npos && at != 0) symbol = symbol.take_front(at);
  return symbol;
}

class KernelVisitor : public clang::RecursiveASTVisitor<KernelVisitor> {
 public:
  KernelVisitor(clang::ASTContext& context, llvm::StringRef symbol)
      : context_(context), symbol_(without_suffix(symbol)), mangler_(context.createMangleContext()) {}

  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return true; }

  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    if (!function->hasAttr<clang::CUDAGlobalAttr>() || function->isDependentContext()) return true;
    ++kernels_;
    if (mangled(*function) != symbol_) return true;
    found_ = function;
    // A definition ends the search; a declaration is only the next best thing.
    return !function->doesThisDeclarationHaveABody();
  }

  const clang::FunctionDecl* found() const { return found_; }
  std::size_t kernels() const { return kernels_; }

 private:
  std::string mangled(const clang::FunctionDecl& function) {
    const clang::GlobalDecl kernel(&function, clang::KernelReferenceKind::Kernel);
    if (!mangler_->shouldMangleDeclName(&function)) return function.getNameAsString();
    std::string name;
    llvm::raw_string_ostream stream(name);
    mangler_->mangleName(kernel, stream);
    return name;
  }

  clang::ASTContext& context_;
  llvm::StringRef symbol_;
  std::unique_ptr<clang::MangleContext> mangler_;
  const clang::FunctionDecl* found_ = nullptr;
  std::size_t kernels_ = 0;
};

clang::SourceRange written_range(const clang::FunctionDecl* function) {
  clang::SourceRange range = function->getSourceRange();
  if (const auto* described = function->getDescribedFunctionTemplate()) range.setBegin(described->getBeginLoc());
  // An explicit specialisation's "template <>", a member's outer template lists.
  if (function->getNumTemplateParameterLists() > 0)
    if (const auto* list = function->getTemplateParameterList(0)) {
      if (list->getTemplateLoc().isValid()) range.setBegin(list->getTemplateLoc());
    }
  return range;
}

// Functions that the kernel calls, directly and through others, and that have their text in the project.
class CalleeVisitor : public clang::RecursiveASTVisitor<CalleeVisitor> {
 public:
  bool shouldVisitImplicitCode() const { return true; }
  bool VisitCallExpr(clang::CallExpr* call) {
    if (auto* callee = call->getDirectCallee()) functions.push_back(callee);
    return true;
  }
  bool VisitCXXConstructExpr(clang::CXXConstructExpr* construct) {
    functions.push_back(construct->getConstructor());
    return true;
  }
  std::vector<clang::FunctionDecl*> functions;
};

Json callees_of(const clang::FunctionDecl* kernel, const Locator& locator) {
  Json callees = Json::array();
  std::set<const clang::FunctionDecl*> seen;
  std::set<std::pair<std::string, std::uint64_t>> listed;
  std::vector<const clang::FunctionDecl*> open{kernel};
  while (!open.empty() && callees.size() < most_callees) {
    const clang::FunctionDecl* function = open.back();
    open.pop_back();
    const clang::FunctionDecl* definition = nullptr;
    if (!function->hasBody(definition) || definition == nullptr || !seen.insert(definition).second) continue;
    if (definition != kernel) {
      const clang::FunctionDecl* source = written(definition);
      const auto place = locator.place(written_range(source));
      const auto label = place ? locator.label(place->file) : std::nullopt;
      if (!label) continue;  // the toolchain's: no use in going deeper
      if (!definition->isImplicit() && listed.emplace(*label, place->first_line).second)
        callees.push_back({{"name", definition->getQualifiedNameAsString()},
                           {"file", *label},
                           {"first_line", place->first_line},
                           {"last_line", place->last_line}});
    }
    CalleeVisitor visitor;
    visitor.TraverseStmt(definition->getBody());
    open.insert(open.end(), visitor.functions.rbegin(), visitor.functions.rend());
  }
  return callees;
}

Json template_arguments_of(const clang::ASTContext& context, const clang::FunctionDecl* function) {
  Json result = Json::array();
  const auto* arguments = function->getTemplateSpecializationArgs();
  if (arguments == nullptr) return result;
  for (const auto& argument : arguments->asArray()) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    argument.print(context.getPrintingPolicy(), stream, /*IncludeType=*/false);
    result.push_back(text);
  }
  return result;
}

}  // namespace

Json search_kernel(clang::ASTContext& context, const SearchRequest& request) {
  KernelVisitor visitor(context, request.symbol);
  visitor.TraverseDecl(context.getTranslationUnitDecl());
  const clang::FunctionDecl* kernel = visitor.found();
  if (kernel == nullptr)
    return {{"problem",
             "none of the " + std::to_string(visitor.kernels()) + " kernels of the translation unit has this symbol"}};
  const clang::FunctionDecl* source = written(kernel);
  const Locator locator(context, request);
  const auto range = written_range(source);
  const auto place = locator.place(range);
  if (!place) return {{"problem", "the definition has no place in a file"}};

  Json answer;
  const auto label = locator.label(place->file);
  answer["file"] = label ? *label : place->file;
  answer["original_file"] = place->file;
  answer["first_line"] = place->first_line;
  answer["last_line"] = place->last_line;
  if (const auto presumed = locator.presumed(source->getLocation());
      presumed.isValid() && (presumed.getFilename() != place->file || presumed.getIncludeLoc().isInvalid())) {
    // #line: what messages and debuggers will call this place.
    if (presumed.getFilename() != place->file) {
      answer["presumed_file"] = presumed.getFilename();
      answer["presumed_line"] = std::uint64_t(presumed.getLine());
    }
  }
  answer["macro"] = locator.macro(source->getLocation());
  answer["template_arguments"] = template_arguments_of(context, kernel);
  Json parameters = Json::array();
  for (unsigned i = 0; i < kernel->getNumParams(); ++i) {
    Json parameter = describe_parameter(context, *kernel->getParamDecl(i), int(i));
    // An instantiation of a pack has no names of its own; the pattern's serve where they match.
    if (parameter["name"] == "" && i < source->getNumParams())
      parameter["name"] = source->getParamDecl(i)->getNameAsString();
    parameters.push_back(std::move(parameter));
  }
  answer["parameters"] = std::move(parameters);
  answer["callees"] = callees_of(kernel, locator);
  if (request.slice) answer["slice"] = slice_for(context, request, *kernel);
  return answer;
}

}  // namespace kerncap::finder
