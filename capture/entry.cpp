// What the HSA runtime calls: HSA_TOOLS_LIB names this library, the runtime calls OnLoad at the end of hsa_init.
//
// Nothing that happens here may harm the application: whatever goes wrong is written to the status file (or, before
// there is one, to standard error), and the tables stay as they were.
#include <fnmatch.h>
#include <pthread.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "capture/memory_hooks.h"
#include "capture/queues.h"
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

void at_exit() {
  // Under HIP nobody calls hsa_shut_down. A child that was forked has no session; its parent's stays the parent's.
  if (Session* const s = session(); s != nullptr && s->process == ::getpid()) s->finish();
}

// The child's copies of our threads and locks are worth nothing: there, every replaced function only passes on.
void in_child() { set_session(nullptr); }

void start(HsaApiTable& table) {
  const char* path = std::getenv(config_variable);
  if (path == nullptr || *path == '\0') return;
  Config config = config_from_json(support::read_json_file(path), path);
  if (!wanted_process(config)) return;
  if (Session* const known = session(); known != nullptr && known->process == ::getpid()) {
    known->runtime_restarted();
  } else {
    static bool registered = false;                // a forked child inherits the registrations
    auto* fresh = new Session(std::move(config));  // never destroyed: the runtime's threads outlive static destructors
    if (!remember_tables(table)) {
      fresh->fail("this HSA runtime's function tables lack what a capture needs");
      return;
    }
    if (!registered) {
      std::atexit(at_exit);
      ::pthread_atfork(nullptr, nullptr, in_child);
      registered = true;
    }
    set_session(fresh);
    fresh->publish();
  }
  replace_memory_functions(table);
  replace_code_functions(table);
  replace_queue_functions(table);
}

}  // namespace
}  // namespace kerncap::capture

#define KERNCAP_EXPORT extern "C" __attribute__((visibility("default")))

// Also makes the runtime find us when we were loaded by other means (LD_PRELOAD); lower numbers load earlier.
KERNCAP_EXPORT const std::uint32_t HSA_AMD_TOOL_PRIORITY = 100;

KERNCAP_EXPORT bool OnLoad(HsaApiTable* table, std::uint64_t, std::uint64_t, const char* const*) {
  using namespace kerncap::capture;
  try {
    if (table != nullptr && !tables_are_ours(*table)) start(*table);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kerncap: nothing will be captured: %s\n", error.what());
  } catch (...) {
  }
  return true;  // false would make the runtime unload us and say so
}

KERNCAP_EXPORT void OnUnload() {
  using namespace kerncap::capture;
  if (Session* const s = session(); s != nullptr && s->process == ::getpid()) s->finish();
}
