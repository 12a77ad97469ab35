#include "capture/registration.h"

#include <dlfcn.h>

#include <cstddef>
#include <string_view>

#include "capture/ranges.h"

namespace kerncap::capture {
namespace {

// roctxCoreApiTable_t of rocprofiler-sdk-roctx/api_trace.h; `size` says how much of it there is.
struct RoctxTable {
  std::uint64_t size;
  void (*mark)(const char*);
  int (*push)(const char*);
  int (*pop)();
  std::uint64_t (*start)(const char*);
  void (*stop)(std::uint64_t);
};
RoctxTable real_roctx{};

int roctx_push(const char* name) {
  ranges().push(name);
  return real_roctx.push(name);
}
int roctx_pop() {
  ranges().pop();
  return real_roctx.pop();
}
std::uint64_t roctx_start(const char* name) {
  const std::uint64_t id = real_roctx.start(name);
  ranges().start(id, name);
  return id;
}
void roctx_stop(std::uint64_t id) {
  ranges().stop(id);
  real_roctx.stop(id);
}

void take_roctx(RoctxTable& table) {
  if (table.size < sizeof(RoctxTable) || table.push == nullptr || table.pop == nullptr || table.start == nullptr ||
      table.stop == nullptr || table.push == roctx_push)
    return;
  real_roctx = table;
  table.push = roctx_push;
  table.pop = roctx_pop;
  table.start = roctx_start;
  table.stop = roctx_stop;
}

// rocprofiler-sdk/registration.h and fwd.h. The two structures have kept their layout since the first release; the
// client's identity has a size in front since 1.0, so it is left alone.
struct ToolConfiguration {
  std::size_t size;
  int (*initialize)(void (*finalize)(std::uint64_t), void* data);
  void (*finalize)(void* data);
  void* data;
};
constexpr int hsa_table = 1 << 0, marker_core_table = 1 << 3;  // rocprofiler_intercept_table_t

void on_tables(int type, std::uint64_t, std::uint64_t, void** tables, std::uint64_t count, void*) {
  register_tables(type == hsa_table ? "hsa" : "roctx", tables, count);
}

}  // namespace

void register_tables(const char* name, void** tables, std::uint64_t count) noexcept {
  if (name == nullptr || tables == nullptr || count == 0 || tables[0] == nullptr) return;
  // The runtime's own container begins with its HsaApiTable (hsa_api_trace_int.h).
  if (std::string_view(name) == "hsa") take_tables(static_cast<HsaApiTable*>(tables[0]), false);
  if (std::string_view(name) == "roctx") take_roctx(*static_cast<RoctxTable*>(tables[0]));
}

void* configure_tool(void*) noexcept {
  using Callback = void (*)(int, std::uint64_t, std::uint64_t, void**, std::uint64_t, void*);
  const auto at_registration = reinterpret_cast<int (*)(Callback, int, void*)>(
      ::dlsym(RTLD_DEFAULT, "rocprofiler_at_intercept_table_registration"));
  if (at_registration == nullptr || at_registration(on_tables, hsa_table | marker_core_table, nullptr) != 0)
    return nullptr;
  static ToolConfiguration configuration{sizeof(ToolConfiguration), [](void (*)(std::uint64_t), void*) { return 0; },
                                         [](void*) {}, nullptr};
  return &configuration;
}

}  // namespace kerncap::capture
