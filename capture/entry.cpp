// How the library gets the HSA runtime's tables, on any of three ways, whichever comes first:
//
// - HSA_TOOLS_LIB names it, and the runtime calls OnLoad at the end of hsa_init.
// - The runtime was built with rocprofiler-register (AMD's own builds), and ROCPROFILER_REGISTER_LIBRARY names us in
// the
//   place of rocprofiler-sdk: rocprofiler-register opens us and calls rocprofiler_set_api_table for every library that
//   registers. HSA_TOOLS_LIB is ignored then unless HSA_TOOLS_ROCPROFILER_V1_TOOLS is set.
// - rocprofiler-sdk itself is there and finds us as one of its tools (ROCP_TOOL_LIBRARIES): it calls
// rocprofiler_configure,
//   and later the callback that we leave there.
//
// Nothing that happens here may harm the application: whatever goes wrong is written to the status file (or, before
// there is one, to standard error), and the tables stay as they were.
#include <fnmatch.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "capture/memory_hooks.h"
#include "capture/queues.h"
#include "capture/registration.h"
#include "capture/session.h"
#include "core/support/error.h"

namespace kerncap::capture {
namespace {

bool wanted_process(const Config& config) {
  if (config.process.empty()) return true;
  char path[PATH_MAX] = {};
  if (::readlink("/proc/self/exe", path, sizeof path - 1) < 0) return true;
  const std::string name = std::filesystem::path(path).filename();
  return ::fnmatch(config.process.c_str(), path, 0) == 0 || ::fnmatch(config.process.c_str(), name.c_str(), 0) == 0;
}

// The child's copies of our threads and locks are worth nothing: there, every replaced function only passes on.
void in_child() { set_session(nullptr); }

// A child that was forked has no session; its parent's stays the parent's.
void finish_here() noexcept {
  if (Session* const s = session(); s != nullptr && s->process == ::getpid()) s->finish();
}

// hsa_init counts; nothing may be asked of the runtime after the last hsa_shut_down.
std::atomic<std::int64_t> references{0};
hsa_status_t counted_init() {
  const hsa_status_t status = runtime().core.hsa_init_fn();
  if (status == HSA_STATUS_SUCCESS) ++references;
  return status;
}
hsa_status_t counted_shut_down() {
  if (references.fetch_sub(1) == 1) finish_here();
  return runtime().core.hsa_shut_down_fn();
}

void count_references(HsaApiTable& table) {
  references = 1;  // the hsa_init that is under way
  if (auto* place = entry(*table.core_, &CoreApiTable::hsa_init_fn)) *place = counted_init;
  if (auto* place = entry(*table.core_, &CoreApiTable::hsa_shut_down_fn)) *place = counted_shut_down;
}

void start(HsaApiTable& table, bool told_of_end) {
  const char* path = std::getenv(config_variable);
  if (path == nullptr || *path == '\0') return;
  Config config = config_from_json(support::read_json_file(path), path);
  if (!wanted_process(config)) return;
  static pid_t refused = 0;  // this process's runtime, which may come to us on a second way
  if (refused == ::getpid()) return;
  if (Session* const known = session(); known != nullptr && known->process == ::getpid()) {
    known->runtime_restarted();
  } else {
    static bool registered = false;                // a forked child inherits the registrations
    auto* fresh = new Session(std::move(config));  // never destroyed: the runtime's threads outlive static destructors
    if (const std::string lacks = remember_tables(table); !lacks.empty()) {
      fresh->fail(lacks);
      refused = ::getpid();
      return;
    }
    if (!registered) {
      std::atexit(finish_here);  // under HIP nobody calls hsa_shut_down
      ::pthread_atfork(nullptr, nullptr, in_child);
      registered = true;
    }
    set_session(fresh);
    fresh->publish();
  }
  if (!told_of_end) count_references(table);
  replace_memory_functions(table);
  replace_code_functions(table);
  replace_queue_functions(table);
}

}  // namespace

void take_tables(HsaApiTable* table, bool told_of_end) noexcept {
  try {
    if (table != nullptr && !tables_are_ours(*table)) start(*table, told_of_end);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kerncap: nothing will be captured: %s\n", error.what());
  } catch (...) {
  }
}

}  // namespace kerncap::capture

#define KERNCAP_EXPORT extern "C" __attribute__((visibility("default")))

// Also makes the runtime find us when we were loaded by other means (LD_PRELOAD); lower numbers load earlier.
KERNCAP_EXPORT const std::uint32_t HSA_AMD_TOOL_PRIORITY = 100;

KERNCAP_EXPORT bool OnLoad(HsaApiTable* table, std::uint64_t, std::uint64_t, const char* const*) {
  kerncap::capture::take_tables(table, true);
  return true;  // false would make the runtime unload us and say so
}

KERNCAP_EXPORT void OnUnload() { kerncap::capture::finish_here(); }

// rocprofiler_register.cpp calls it for each library's tables, for HSA after they were filled in.
KERNCAP_EXPORT int rocprofiler_set_api_table(const char* name, std::uint64_t, std::uint64_t, void** tables,
                                             std::uint64_t count) {
  kerncap::capture::register_tables(name, tables, count);
  return 0;
}

KERNCAP_EXPORT void* rocprofiler_configure(std::uint32_t, const char*, std::uint32_t, void* client) {
  return kerncap::capture::configure_tool(client);
}
