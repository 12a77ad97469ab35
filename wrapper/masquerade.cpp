#include "wrapper/masquerade.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/compdb/arguments.h"
#include "core/support/error.h"
#include "core/support/process.h"

namespace kerncap::wrapper {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// CMake reads these when it configures a tree for the first time (cmake-env-variables(7)).
constexpr const char* launcher_variables[] = {"CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER",
                                              "CMAKE_HIP_COMPILER_LAUNCHER", "CMAKE_CUDA_COMPILER_LAUNCHER"};

struct NamedCompiler {
  const char* variable;
  const char* usual;  // what build systems take when the variable is not set
};
constexpr NamedCompiler named_compilers[] = {{"CC", "cc"}, {"CXX", "c++"}};

// Every compiler that PATH offers, by its name there ("g++-12", "clang++-15", "x86_64-linux-gnu-gcc"), and no other: a
// name that leads nowhere would make a configure script believe in a compiler that is not installed.
std::set<std::string> compilers_on_path(const std::string& path) {
  std::set<std::string> names;
  std::size_t at = 0;
  while (at <= path.size()) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    std::error_code error;
    for (fs::directory_iterator entry(path.substr(at, end - at), error), last; !error && entry != last;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const bool compiler = compdb::compiler_family(name) != "unknown" || name == "cc" || name == "c++";
      if (compiler && name.find("cpp") == std::string::npos && name.find('.') == std::string::npos) names.insert(name);
    }
    at = end + 1;
  }
  return names;
}

// A masquerade folder of this database's own; the installed one when the database cannot be written.
fs::path masquerade_for(const fs::path& database, const fs::path& program, const fs::path& installed,
                        const std::string& path) {
  const fs::path folder = database / "masquerade";
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (error) return installed;
  for (const std::string& name : compilers_on_path(path)) {
    fs::create_symlink(program, folder / name, error);
    if (error) return installed;
  }
  return folder;
}

bool is_cmake(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string name = fs::path(command.front()).filename().string();
  return name == "cmake" || name == "ccmake" || name == "ctest";
}

}  // namespace

Environment build_environment(const BuildOptions& options) {
  const fs::path program = options.program_folder / "kerncap-cc";
  const fs::path masquerade = options.program_folder / "../libexec/kerncap/masquerade";
  std::error_code error;
  const fs::path folder = fs::canonical(masquerade, error);
  if (error || ::access(program.c_str(), X_OK) != 0) {
    support::fail(support::ExitCode::environment, "kerncap-cc is not installed beside kerncap: there is no {}",
                  error ? masquerade.lexically_normal().string() : program.string());
  }
  Environment changes;
  changes["KERNCAP_DB"] = options.database.string();
  changes["KERNCAP_CC_SESSION"] = std::to_string(static_cast<long>(::getpid()));
  const std::string path = variable("PATH").empty() ? "/usr/local/bin:/usr/bin:/bin" : variable("PATH");
  changes["PATH"] = masquerade_for(options.database, fs::canonical(program), folder, path).string() + ":" + path;
  for (const char* name : launcher_variables) {
    const std::string present = variable(name);
    changes[name] = present.empty() ? program.string() : program.string() + ";" + present;
  }
  const bool cmake = is_cmake(options.command);
  for (const NamedCompiler& compiler : named_compilers) {
    const std::string present = variable(compiler.variable);
    if (cmake) {
      // CMake keeps the compiler's path in its cache for good: it gets the real one, and the launchers do the rest.
      if (!present.empty()) continue;
      if (const auto real = support::find_program(compiler.usual)) changes[compiler.variable] = real->string();
    } else if (present.starts_with('/')) {
      // make, autotools, Meson and scripts take words; a full path would go past the masquerade folder.
      changes[compiler.variable] = program.string() + " " + present;
    }
  }
  return changes;
}

}  // namespace kerncap::wrapper
