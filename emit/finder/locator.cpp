#include "emit/finder/locator.h"

#include <clang/AST/ASTContext.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>

namespace kerncap::finder {

Locator::Locator(clang::ASTContext& context, const SearchRequest& request)
    : context_(context), manager_(context.getSourceManager()), request_(request) {}

std::optional<Place> Locator::place(clang::SourceRange range) const {
  const auto begin = manager_.getExpansionRange(range.getBegin()).getBegin();
  const auto end = manager_.getExpansionRange(range.getEnd()).getEnd();
  if (begin.isInvalid() || end.isInvalid()) return std::nullopt;
  const auto [file, offset] = manager_.getDecomposedLoc(begin);
  const auto [end_file, end_offset] = manager_.getDecomposedLoc(end);
  const auto entry = manager_.getFileEntryRefForID(file);
  if (!entry) return std::nullopt;
  Place place;
  place.file = entry->getName().str();
  place.first_line = manager_.getLineNumber(file, offset);
  place.last_line = file == end_file ? manager_.getLineNumber(end_file, end_offset) : place.first_line;
  return place;
}

std::optional<std::string> Locator::label(const std::string& file) const {
  if (const auto found = request_.labels.find(file); found != request_.labels.end()) return found->second;
  llvm::SmallString<256> absolute(file);
  (void)manager_.getFileManager().makeAbsolutePath(absolute);
  llvm::sys::path::remove_dots(absolute, true);
  if (const auto found = request_.labels.find(absolute.str().str()); found != request_.labels.end())
    return found->second;
  return std::nullopt;
}

std::string Locator::macro(clang::SourceLocation location) const {
  if (!location.isMacroID()) return "";
  return clang::Lexer::getImmediateMacroName(location, manager_, context_.getLangOpts()).str();
}

clang::PresumedLoc Locator::presumed(clang::SourceLocation location) const {
  return manager_.getPresumedLoc(manager_.getExpansionLoc(location));
}

const clang::FunctionDecl* written(const clang::FunctionDecl* function) {
  if (const auto* pattern = function->getTemplateInstantiationPattern()) function = pattern;
  if (const clang::FunctionDecl* definition = nullptr; function->hasBody(definition) && definition != nullptr)
    return definition;
  return function;
}

}  // namespace kerncap::finder
