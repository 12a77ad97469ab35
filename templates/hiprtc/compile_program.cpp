// Compiles a program as the application did, through hipRTC, without a GPU:
//   compile_program JOB SOURCE_FOLDER OUTPUT [LIBRARY]
// JOB is a text file, one entry a line: "name N", "source FILE", "header INCLUDE_NAME<tab>FILE", "option O",
// "name-expression E", "library PATH" (of which the file's name counts). Files are relative to SOURCE_FOLDER.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::exit(1);
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot read '" + path + "'");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  for (const auto& text : texts) result.push_back(text.c_str());
  return result;
}

void* open_library(const std::string& recorded, const std::string& chosen) {
  std::vector<std::string> candidates;
  if (!chosen.empty()) {
    candidates = {chosen};
  } else {
    // Of what is recorded only the name counts, and only a name of hipRTC's: a project comes from anywhere, and loading
    // a library runs its code. ROCm's folders are looked in as well as the loader's.
    const std::string name = recorded.substr(recorded.rfind('/') + 1);
    const bool is_hiprtc = name.rfind("libhiprtc.so", 0) == 0 || name.rfind("libamdhip64.so", 0) == 0;
    const char* rocm = std::getenv("ROCM_PATH");
    const std::vector<std::string> files = {is_hiprtc ? name : "libhiprtc.so", "libhiprtc.so", "libamdhip64.so"};
    const std::vector<std::string> places = {"", rocm == nullptr ? "" : rocm + std::string("/lib/"), "/opt/rocm/lib/"};
    for (const std::string& file : files)
      for (const std::string& place : places) candidates.push_back(place + file);
  }
  std::string reasons;
  for (const auto& candidate : candidates) {
    void* library = dlopen(candidate.c_str(), RTLD_NOW);
    if (library != nullptr && dlsym(library, "hiprtcCompileProgram") != nullptr) return library;
    if (library == nullptr) reasons += std::string("\n  ") + dlerror();
  }
  fail("no library with hipRTC was found; install ROCm's HIP runtime or name the library as the last argument:" +
       reasons);
}

template <typename Function>
Function function(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) fail(std::string("the library has no ") + name);
  return reinterpret_cast<Function>(found);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: compile_program JOB SOURCE_FOLDER OUTPUT [LIBRARY]");
  const std::string folder = std::string(argv[2]) + "/";
  std::string name, source, recorded;
  std::vector<std::string> include_names, headers, options, expressions;
  std::ifstream job(argv[1]);
  if (!job) fail(std::string("cannot read '") + argv[1] + "'");
  for (std::string line; std::getline(job, line);) {
    const auto space = line.find(' ');
    const std::string kind = line.substr(0, space), value = space == std::string::npos ? "" : line.substr(space + 1);
    if (kind == "name") name = value;
    if (kind == "source") source = content(folder + value);
    if (kind == "option") options.push_back(value);
    if (kind == "name-expression") expressions.push_back(value);
    if (kind == "library") recorded = value;
    if (kind == "header") {
      const auto tab = value.find('\t');
      if (tab == std::string::npos) fail("damaged line in the job: " + line);
      include_names.push_back(value.substr(0, tab));
      headers.push_back(content(folder + value.substr(tab + 1)));
    }
  }

  // Signatures: hip/hiprtc.h. Results are 0 for success.
  void* library = open_library(recorded, argc > 4 ? argv[4] : "");
  const auto create = function<int (*)(void**, const char*, const char*, int, const char* const*, const char* const*)>(
      library, "hiprtcCreateProgram");
  const auto add = function<int (*)(void*, const char*)>(library, "hiprtcAddNameExpression");
  const auto compile = function<int (*)(void*, int, const char* const*)>(library, "hiprtcCompileProgram");
  const auto log_size = function<int (*)(void*, std::size_t*)>(library, "hiprtcGetProgramLogSize");
  const auto log = function<int (*)(void*, char*)>(library, "hiprtcGetProgramLog");
  const auto code_size = function<int (*)(void*, std::size_t*)>(library, "hiprtcGetCodeSize");
  const auto code = function<int (*)(void*, char*)>(library, "hiprtcGetCode");

  void* program = nullptr;
  if (create(&program, source.c_str(), name.empty() ? nullptr : name.c_str(), int(headers.size()),
             pointers(headers).data(), pointers(include_names).data()) != 0)
    fail("hiprtcCreateProgram refused the program");
  for (const auto& expression : expressions)
    if (add(program, expression.c_str()) != 0) fail("hiprtcAddNameExpression refused '" + expression + "'");
  const int result = compile(program, int(options.size()), pointers(options).data());
  std::size_t size = 0;
  if (log_size(program, &size) == 0 && size > 1) {
    std::string text(size, '\0');
    if (log(program, text.data()) == 0) std::fprintf(stderr, "%s\n", text.c_str());
  }
  if (result != 0) fail("hipRTC could not compile the program");
  if (code_size(program, &size) != 0 || size == 0) fail("hipRTC gave no code");
  std::string bytes(size, '\0');
  if (code(program, bytes.data()) != 0) fail("hipRTC gave no code");
  std::ofstream output(argv[3], std::ios::binary);
  output.write(bytes.data(), std::streamsize(bytes.size()));
  if (!output.flush()) fail(std::string("cannot write '") + argv[3] + "'");
  return 0;
}
