// A stand-in for an HSA runtime that was built with rocprofiler-register, on one that was not: the real runtime loads
// this library as its tool (HSA_TOOLS_LIB), and OnLoad then does with the real tables what such a runtime does in its
// LoadTools: it registers them, and only where that finds no tool, or HSA_TOOLS_ROCPROFILER_V1_TOOLS asks for it, it
// loads the tool that KERNCAP_TEST_V1_TOOL names, in the old way.
//
// rocprofiler_register_library_api_table follows the public ABI of rocprofiler-register 0.3: which variables it looks
// at, that it opens the library globally, and what it hands to rocprofiler_set_api_table. ROCP_TOOL_LIBRARIES stands
// for rocprofiler-sdk: each of them is asked by rocprofiler_configure, and called back with the tables.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void say(const char* what) {
  // For the test; on the application's standard error, where a real runtime would say such things.
  if (!variable("KERNCAP_TEST_SAY").empty()) std::fprintf(stderr, "register: %s\n", what);
}

using SetApiTable = int (*)(const char*, std::uint64_t, std::uint64_t, void**, std::uint64_t);

// ---- in place of rocprofiler-sdk -----------------------------------------------------------------------------------

using InterceptCallback = void (*)(int, std::uint64_t, std::uint64_t, void**, std::uint64_t, void*);
struct Interception {
  InterceptCallback callback;
  int tables;
  void* data;
};
std::vector<Interception> interceptions;

struct ClientId {
  std::size_t size;
  const char* name;
  std::uint32_t handle;
};

int sdk_set_api_table(const char* name, std::uint64_t version, std::uint64_t instance, void** tables,
                      std::uint64_t count) {
  static const bool configured = [] {
    void* tool = ::dlopen(variable("ROCP_TOOL_LIBRARIES").c_str(), RTLD_LOCAL | RTLD_LAZY);
    using Configure = void* (*)(std::uint32_t, const char*, std::uint32_t, ClientId*);
    const auto configure = reinterpret_cast<Configure>(::dlsym(tool, "rocprofiler_configure"));
    ClientId client{sizeof(ClientId), "tool", 1};
    return configure != nullptr && configure(10000, "1.0.0", 0, &client) != nullptr;
  }();
  if (configured) say("configured a tool");
  const int type = std::strcmp(name, "hsa") == 0 ? 1 : std::strcmp(name, "roctx") == 0 ? 8 : 0;
  for (const Interception& i : interceptions)
    if ((i.tables & type) != 0) i.callback(type, version, instance, tables, count, i.data);
  return 0;
}

SetApiTable find_tool() {
  if (!variable("ROCP_TOOL_LIBRARIES").empty()) return sdk_set_api_table;
  const std::string library = variable("ROCPROFILER_REGISTER_LIBRARY");
  if (library.empty()) return nullptr;
  void* handle = ::dlopen(library.c_str(), RTLD_GLOBAL | RTLD_LAZY);
  void* found = handle != nullptr ? ::dlsym(handle, "rocprofiler_set_api_table") : nullptr;
  if (found == nullptr) std::abort();  // as the real one does
  return reinterpret_cast<SetApiTable>(found);
}

}  // namespace

EXPORT int rocprofiler_at_intercept_table_registration(InterceptCallback callback, int tables, void* data) {
  interceptions.push_back({callback, tables, data});
  return 0;
}

EXPORT int rocprofiler_register_library_api_table(const char* name, std::uint32_t (*)(), std::uint32_t version,
                                                  void** tables, std::uint64_t count, std::uint64_t* id) {
  if (count < 1) return 3;                                        // ROCP_REG_BAD_API_TABLE_LENGTH
  if (variable("ROCPROFILER_REGISTER_ENABLED") == "0") return 1;  // ROCP_REG_NO_TOOLS
  const SetApiTable set = find_tool();
  *id = 0;
  if (set == nullptr) return 1;
  return set(name, version, 0, tables, count) == 0 ? 0 : 6;  // ROCP_REG_SUCCESS : ROCP_REG_ROCPROFILER_ERROR
}

// Runtime::LoadTools of ROCr 6.2.
EXPORT bool OnLoad(void* table, std::uint64_t version, std::uint64_t failed_count, const char* const* failed) {
  // Globally, as librocprofiler-register is when the runtime links it.
  Dl_info self{};
  if (::dladdr(reinterpret_cast<void*>(&OnLoad), &self) != 0)
    ::dlopen(self.dli_fname, RTLD_GLOBAL | RTLD_NOLOAD | RTLD_LAZY);
  std::uint64_t id = 0;
  void* tables[] = {table};
  const int status = rocprofiler_register_library_api_table(
      "hsa", [] { return std::uint32_t{11500}; }, 11500, tables, 1, &id);
  say(status == 0 ? "the tables are registered" : "no tool was found");
  if (status == 0 && variable("HSA_TOOLS_ROCPROFILER_V1_TOOLS") != "1") return true;
  const std::string tool = variable("KERNCAP_TEST_V1_TOOL");
  if (tool.empty()) return true;
  void* handle = ::dlopen(tool.c_str(), RTLD_LAZY);
  using Load = bool (*)(void*, std::uint64_t, std::uint64_t, const char* const*);
  const auto load = handle != nullptr ? reinterpret_cast<Load>(::dlsym(handle, "OnLoad")) : nullptr;
  if (load != nullptr) say("loaded the old way, too");
  return load == nullptr || load(table, version, failed_count, failed);
}
