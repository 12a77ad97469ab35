// Preloaded into an application whose kernel is captured: keeps what it compiles through hipRTC, so that the kernel's
// source is at hand later. Stands before the functions of libamdhip64 (HIP 5) and libhiprtc (HIP 6), and passes every
// call on; whatever fails here is nobody's business but ours.
//
// For each program that compiled, a folder in $KERNCAP_HIPRTC_FOLDER:
//   program.json   name, include_names (of the headers), options, name_expressions, library
//   source, header.0, header.1 ..., code (what hiprtcGetCode gives)
//
// Signatures: hip/hiprtc.h. Handles are opaque, results are 0 for success.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/support/file.h"
#include "core/support/json.h"

namespace {

namespace fs = std::filesystem;
using kerncap::support::Json;
using Handle = void*;

constexpr int other_error = 11;  // HIPRTC_ERROR_INTERNAL_ERROR

struct Program {
  std::string name, source;
  std::vector<std::string> include_names, headers, name_expressions;
};

std::mutex mutex;
std::map<Handle, Program>& programs() {
  static auto* known = new std::map<Handle, Program>;  // outlives static destructors
  return *known;
}

// Libraries that the application opened for itself are behind nobody: they are looked for by name.
int look_into(dl_phdr_info* info, std::size_t, void* wanted) {
  auto& [symbol, found] = *static_cast<std::pair<const char*, void*>*>(wanted);
  const std::string_view path = info->dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with("libhiprtc.so") && !name.starts_with("libamdhip64.so")) return 0;
  if (void* library = ::dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD)) {
    found = ::dlsym(library, symbol);
    ::dlclose(library);  // it stays: somebody else holds it
  }
  return found != nullptr ? 1 : 0;
}

void* next(const char* symbol) {
  if (void* found = ::dlsym(RTLD_NEXT, symbol)) return found;
  std::pair<const char*, void*> wanted{symbol, nullptr};
  ::dl_iterate_phdr(look_into, &wanted);
  return wanted.second;
}

template <typename Function>
Function next_as(const char* symbol) {
  return reinterpret_cast<Function>(next(symbol));
}

std::string text_or_empty(const char* text) { return text != nullptr ? text : ""; }

std::string library_of(void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

std::string code_of(Handle handle) {
  const auto size_of = next_as<int (*)(Handle, std::size_t*)>("hiprtcGetCodeSize");
  const auto get = next_as<int (*)(Handle, char*)>("hiprtcGetCode");
  std::size_t size = 0;
  if (size_of == nullptr || get == nullptr || size_of(handle, &size) != 0 || size == 0) return "";
  std::string code(size, '\0');
  return get(handle, code.data()) == 0 ? code : "";
}

void keep(Handle handle, int option_count, const char* const* options) {
  const char* folder = std::getenv("KERNCAP_HIPRTC_FOLDER");
  if (folder == nullptr || *folder == '\0') return;
  Program program;
  {
    const std::scoped_lock lock(mutex);
    const auto found = programs().find(handle);
    if (found == programs().end()) return;
    program = found->second;
  }
  const std::string code = code_of(handle);
  if (code.empty()) return;
  static std::atomic<int> number{0};
  const std::string name = std::to_string(::getpid()) + "-" + std::to_string(number++);
  const fs::path temporary = fs::path(folder) / ("." + name);
  fs::create_directories(temporary);
  const auto write = [&](const std::string& file, const std::string& content) {
    kerncap::support::write_file_atomically(temporary / file, content, 0600);
  };
  Json list = Json::array();
  for (int i = 0; i < option_count; ++i) list.push_back(text_or_empty(options[i]));
  write("source", program.source);
  for (std::size_t i = 0; i < program.headers.size(); ++i) write("header." + std::to_string(i), program.headers[i]);
  write("code", code);
  write("program.json", kerncap::support::dump_json({{"schema", "kerncap.hiprtc/1"},
                                                     {"name", program.name},
                                                     {"include_names", program.include_names},
                                                     {"options", std::move(list)},
                                                     {"name_expressions", program.name_expressions},
                                                     {"library", library_of(next("hiprtcCompileProgram"))}}));
  fs::rename(temporary, fs::path(folder) / name);
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int hiprtcCreateProgram(Handle* handle, const char* source, const char* name,
                                                       int header_count, const char* const* headers,
                                                       const char* const* include_names) {
  const auto real =
      next_as<int (*)(Handle*, const char*, const char*, int, const char* const*, const char* const*)>(__func__);
  if (real == nullptr) return other_error;
  const int result = real(handle, source, name, header_count, headers, include_names);
  if (result != 0) return result;
  try {
    Program program{text_or_empty(name), text_or_empty(source), {}, {}, {}};
    for (int i = 0; i < header_count; ++i) {
      program.headers.push_back(text_or_empty(headers[i]));
      program.include_names.push_back(text_or_empty(include_names[i]));
    }
    const std::scoped_lock lock(mutex);
    programs()[*handle] = std::move(program);
  } catch (...) {
  }
  return result;
}

[[gnu::visibility("default")]] int hiprtcAddNameExpression(Handle handle, const char* expression) {
  const auto real = next_as<int (*)(Handle, const char*)>(__func__);
  if (real == nullptr) return other_error;
  const int result = real(handle, expression);
  try {
    const std::scoped_lock lock(mutex);
    if (const auto found = programs().find(handle); result == 0 && found != programs().end())
      found->second.name_expressions.push_back(text_or_empty(expression));
  } catch (...) {
  }
  return result;
}

[[gnu::visibility("default")]] int hiprtcCompileProgram(Handle handle, int option_count, const char* const* options) {
  const auto real = next_as<int (*)(Handle, int, const char* const*)>(__func__);
  if (real == nullptr) return other_error;
  const int result = real(handle, option_count, options);
  try {
    if (result == 0) keep(handle, option_count, options);
  } catch (...) {
  }
  return result;
}

[[gnu::visibility("default")]] int hiprtcDestroyProgram(Handle* handle) {
  const auto real = next_as<int (*)(Handle*)>(__func__);
  if (real == nullptr) return other_error;
  try {
    const std::scoped_lock lock(mutex);
    if (handle != nullptr) programs().erase(*handle);
  } catch (...) {
  }
  return real(handle);
}
}
