// A stand-in for libroctx64 (roctx.h, version 4.1). With KERNCAP_TEST_ROCTX_REGISTERS it hands its table to
// rocprofiler-register first and calls through it, as the one of rocprofiler-sdk does
// (rocprofiler-sdk-roctx/api_trace.h).
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::atomic<int> pushed{0}, popped{0}, started{0}, stopped{0};
thread_local int level = 0;

struct Table {
  std::uint64_t size;
  void (*mark)(const char*);
  int (*push)(const char*);
  int (*pop)();
  std::uint64_t (*start)(const char*);
  void (*stop)(std::uint64_t);
  int (*thread_id)(std::uint64_t*);
};

Table table{sizeof(Table),
            [](const char*) {},
            [](const char*) {
              ++pushed;
              return level++;
            },
            [] {
              ++popped;
              return --level;
            },
            [](const char*) { return std::uint64_t(++started); },
            [](std::uint64_t) { ++stopped; },
            [](std::uint64_t* id) {
              *id = 1;
              return 0;
            }};

Table& registered() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (std::getenv("KERNCAP_TEST_ROCTX_REGISTERS") == nullptr) return;
    using Register = int (*)(const char*, std::uint32_t (*)(), std::uint32_t, void**, std::uint64_t, std::uint64_t*);
    const auto add = reinterpret_cast<Register>(::dlsym(RTLD_DEFAULT, "rocprofiler_register_library_api_table"));
    void* tables[] = {&table};
    std::uint64_t id = 0;
    if (add != nullptr)
      add(
          "roctx", [] { return std::uint32_t{40100}; }, 40100, tables, 1, &id);
  });
  return table;
}

}  // namespace

EXPORT void roctxMarkA(const char* message) { registered().mark(message); }
EXPORT int roctxRangePushA(const char* message) { return registered().push(message); }
EXPORT int roctxRangePop() { return registered().pop(); }
EXPORT std::uint64_t roctxRangeStartA(const char* message) { return registered().start(message); }
EXPORT void roctxRangeStop(std::uint64_t id) { registered().stop(id); }

// For the test: what reached the library itself.
EXPORT int roctx_stand_in_calls() { return pushed * 1000 + popped * 100 + started * 10 + stopped; }
