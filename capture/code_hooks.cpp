#include <chrono>

#include "capture/memory_hooks.h"
#include "capture/session.h"

namespace kerncap::capture {
namespace {

hsa_status_t executable_freeze(hsa_executable_t executable, const char* options) {
  const hsa_status_t status = runtime().core.hsa_executable_freeze_fn(executable, options);
  if (Session* const s = session(); s != nullptr && status == HSA_STATUS_SUCCESS) {
    try {
      s->code.loaded(executable);
    } catch (...) {
      s->lose_track();
    }
  }
  return status;
}

hsa_status_t executable_destroy(hsa_executable_t executable) {
  if (Session* const s = session()) {
    s->hold.wait(std::chrono::milliseconds(s->config.kernel_timeout_ms));
    s->code.unloading(executable);
  }
  return runtime().core.hsa_executable_destroy_fn(executable);
}

hsa_status_t reader_from_memory(const void* bytes, std::size_t size, hsa_code_object_reader_t* reader) {
  const hsa_status_t status = runtime().core.hsa_code_object_reader_create_from_memory_fn(bytes, size, reader);
  if (Session* const s = session(); s != nullptr && status == HSA_STATUS_SUCCESS) {
    try {
      s->code.memory_reader(*reader, bytes);
    } catch (...) {
      s->lose_track();
    }
  }
  return status;
}

hsa_status_t reader_destroy(hsa_code_object_reader_t reader) {
  if (Session* const s = session()) {
    s->hold.wait(std::chrono::milliseconds(s->config.kernel_timeout_ms));
    try {
      s->code.reader_gone(reader);
    } catch (...) {
      s->lose_track();
    }
  }
  return runtime().core.hsa_code_object_reader_destroy_fn(reader);
}

}  // namespace

void replace_code_functions(HsaApiTable& table) {
  CoreApiTable& core = *table.core_;
  if (auto* place = entry(core, &CoreApiTable::hsa_executable_freeze_fn)) *place = executable_freeze;
  if (auto* place = entry(core, &CoreApiTable::hsa_executable_destroy_fn)) *place = executable_destroy;
  if (auto* place = entry(core, &CoreApiTable::hsa_code_object_reader_create_from_memory_fn))
    *place = reader_from_memory;
  if (auto* place = entry(core, &CoreApiTable::hsa_code_object_reader_destroy_fn)) *place = reader_destroy;
}

}  // namespace kerncap::capture
