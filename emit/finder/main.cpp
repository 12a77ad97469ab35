// kerncap-find-kernel: reads a request on standard input, answers on standard output, both JSON.
//
// Request: symbol; directory, main_file, options (driver level); files: [{name, content, label}], the overlay;
// name_expressions of hipRTC, slice.
// Answer: the members of emit::KernelDefinition, or {"problem": "..."}; exit status 0 in both cases.
#include <clang/Frontend/ASTUnit.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Tooling/Tooling.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "core/support/error.h"
#include "core/support/json.h"
#include "emit/finder/kernel_search.h"

namespace kerncap::finder {
namespace {

using support::Json;

class SearchConsumer : public clang::ASTConsumer {
 public:
  SearchConsumer(const SearchRequest& request, Json& answer) : request_(request), answer_(answer) {}
  void HandleTranslationUnit(clang::ASTContext& context) override { answer_ = search_kernel(context, request_); }

 private:
  const SearchRequest& request_;
  Json& answer_;
};

class SearchAction : public clang::ASTFrontendAction {
 public:
  SearchAction(const SearchRequest& request, Json& answer) : request_(request), answer_(answer) {}
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler, llvm::StringRef) override {
    // Another compiler's headers may use what this one does not know; an AST with gaps is better than none.
    compiler.getDiagnostics().setErrorLimit(0);
    return std::make_unique<SearchConsumer>(request_, answer_);
  }

 private:
  const SearchRequest& request_;
  Json& answer_;
};

// Empty without name expressions.
std::string instantiations(const Json& document, const std::string& main_file) {
  if (!document.contains("name_expressions") || document.at("name_expressions").empty()) return "";
  std::string text = "#include \"" + main_file + "\"\n";
  for (const auto& entry : support::array_member(document, "name_expressions", "request")) {
    std::string name = entry.is_string() ? entry.get<std::string>() : "";
    name.erase(0, name.find_first_not_of(" \t&("));
    if (const auto end = name.rfind('>'); end != std::string::npos)  // a specialisation; nothing else needs help
      text += "template __attribute__((global)) decltype(" + name.substr(0, end + 1) + ") " + name.substr(0, end + 1) +
              ";\n";
  }
  return text;
}

Json answer_for(const Json& document) {
  SearchRequest request;
  request.symbol = support::string_member(document, "symbol", "request");
  const std::string directory = support::string_member(document, "directory", "request");
  const std::string main_file = support::string_member(document, "main_file", "request");

  request.slice = document.contains("slice") && document.at("slice").is_boolean() && document.at("slice").get<bool>();

  // Symbolic names for the project's files, under the names that the recorded compiler opened.
  std::vector<std::pair<std::string, std::string>> mapping;
  for (const auto& file : support::array_member(document, "files", "request")) {
    const std::string name = support::string_member(file, "name", "request");
    mapping.emplace_back(name, support::string_member(file, "content", "request"));
    request.labels[name] = support::string_member(file, "label", "request");
  }
  llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> real = llvm::vfs::createPhysicalFileSystem();
  if (const auto error = real->setCurrentWorkingDirectory(directory))
    return {{"problem", "cannot enter " + directory + ": " + error.message()}};
  llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> overlay =
      llvm::vfs::RedirectingFileSystem::create(mapping, /*UseExternalNames=*/false, *real);
  overlay->setCurrentWorkingDirectory(directory);
  llvm::IntrusiveRefCntPtr<llvm::vfs::OverlayFileSystem> files(new llvm::vfs::OverlayFileSystem(real));
  files->pushOverlay(overlay);
  files->setCurrentWorkingDirectory(directory);

  std::vector<std::string> command{"clang"};
  for (const auto& option : support::array_member(document, "options", "request"))
    if (option.is_string()) command.push_back(option.get<std::string>());
  command.insert(command.end(), {"-fsyntax-only", "-w", "-Wno-error"});
  // hipRTC instantiates what its name expressions name, so a file that uses them stands around the program.
  const std::string around = directory + "/.kerncap-instantiations.hip";
  if (const std::string text = instantiations(document, main_file); !text.empty()) {
    llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> memory(new llvm::vfs::InMemoryFileSystem);
    memory->addFile(around, 0, llvm::MemoryBuffer::getMemBufferCopy(text));
    files->pushOverlay(memory);
    command.push_back(around);
  } else {
    command.push_back(main_file);
  }

  Json answer;
  llvm::IntrusiveRefCntPtr<clang::FileManager> manager(new clang::FileManager(clang::FileSystemOptions(), files));
  clang::tooling::ToolInvocation invocation(command, std::make_unique<SearchAction>(request, answer), manager.get());
  invocation.run();  // false when there were errors; what was parsed is what counts
  if (answer.is_null()) answer = {{"problem", "Clang could not start on the translation unit"}};
  return answer;
}

}  // namespace
}  // namespace kerncap::finder

int main() {
  try {
    const std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
    const auto answer = kerncap::finder::answer_for(kerncap::support::parse_json(text, "standard input"));
    // An answer that did not arrive whole must not look like one.
    if (std::fputs(kerncap::support::dump_json(answer).c_str(), stdout) < 0 || std::fflush(stdout) != 0)
      kerncap::support::fail(kerncap::support::ExitCode::environment, "cannot write the answer");
    return 0;
  } catch (const kerncap::support::Error& error) {
    std::fprintf(stderr, "kerncap-find-kernel: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kerncap-find-kernel: %s\n", error.what());
    return 4;
  }
}
