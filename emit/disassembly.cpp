#include "emit/disassembly.h"

#include <cstdlib>
#include <vector>

#include "core/support/error.h"
#include "core/support/process.h"

namespace kerncap::emit {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> candidates(const fs::path& compiler) {
  std::vector<std::string> programs;
  if (!compiler.empty()) programs.push_back((compiler.parent_path() / "llvm-objdump").string());
  for (const char* variable : {"HIP_CLANG_PATH", "ROCM_PATH"})
    if (const char* folder = std::getenv(variable); folder != nullptr && *folder != '\0')
      for (const char* below : {"", "llvm/bin", "lib/llvm/bin"})
        programs.push_back((fs::path(folder) / below / "llvm-objdump").string());
  programs.push_back("/opt/rocm/llvm/bin/llvm-objdump");
  programs.push_back("llvm-objdump");
  for (int version = 25; version >= 15; --version) programs.push_back("llvm-objdump-" + std::to_string(version));
  return programs;
}

}  // namespace

std::optional<std::string> disassemble(const fs::path& code_object, const std::string& symbol,
                                       const fs::path& compiler) {
  for (const auto& program : candidates(compiler)) {
    const auto path = support::find_program(program);
    if (!path) continue;
    support::Command command;
    command.argv = {path->string(), "-d", "--no-show-raw-insn", "--disassemble-symbols=" + symbol,
                    code_object.string()};
    command.standard_output = support::Stream::capture;
    command.standard_error = support::Stream::null;
    command.timeout = std::chrono::seconds(60);
    try {
      const auto result = support::run(command);
      // An LLVM without AMD GPUs, or an older one than the code, prints nothing useful.
      const auto start = result.standard_output.find("<" + symbol + ">:");
      if (!result.succeeded() || start == std::string::npos) continue;
      const auto line = result.standard_output.rfind('\n', start);
      return result.standard_output.substr(line == std::string::npos ? 0 : line + 1);
    } catch (const support::Error&) {
      continue;
    }
  }
  return std::nullopt;
}

}  // namespace kerncap::emit
