// What a compiler command line asks for, read from the arguments alone: enough to decide whether a call compiles
// anything, to record compilers that keep no log of their jobs (gcc, nvcc), and to read imported commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kerncap::compdb {

enum class Action {
  query,       // --version, -v alone, -print-*, -dump*, -###, --help, or nothing to compile
  preprocess,  // -E, -M, -MM
  syntax_only,
  assembly,    // -S
  compile,     // -c
  precompile,  // a header
  link,
};

struct SourceArgument {
  std::string path;      // as spelled; "-" for standard input
  std::string language;  // "c", "c++", "hip", "cuda", "assembler", ... as -x or the suffix says
};

struct CommandLine {
  Action action = Action::query;
  std::vector<SourceArgument> sources;
  std::vector<std::string> link_inputs;     // objects, archives and shared libraries named as files
  std::string output;                       // -o, as spelled; empty when there is none
  std::string dependency_file;              // -MF, or what -MD makes it; empty when none is written
  bool writes_dependencies = false;         // -MD or -MMD
  bool user_headers_only = false;           // -MMD: system headers are left out
  std::string working_directory;            // -working-directory
  std::vector<std::string> system_folders;  // -isystem, -idirafter, as spelled
  std::vector<std::string> device_targets;  // as spelled by the offload options, after --no-offload-arch
  bool offload = false;                     // HIP or CUDA by language or option
  bool rdc = false, new_driver = false, compressed = false, lto = false;
};

// `family`: "clang", "hipcc", "gcc", "nvcc" or "unknown"; `argv` with response files expanded, argv[0] is the compiler.
CommandLine parse_arguments(const std::vector<std::string>& argv, std::string_view family);

// "clang", "hipcc", "gcc", "nvcc" or "unknown", by the name of the program ("clang++-15", "x86_64-linux-gnu-g++-12").
std::string compiler_family(std::string_view program);

// Where a compile without -o puts its result ("dir/a.cpp" -> "a.o"); empty for actions without a result.
std::string default_output(const CommandLine& line, const SourceArgument& source, std::string_view family);

}  // namespace kerncap::compdb
