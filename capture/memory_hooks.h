// Replaces every function of the runtime by which memory becomes visible to the device, or stops being so, and those by
// which the host changes it while a kernel is held.
#pragma once

#include "capture/runtime_table.h"

namespace kerncap::capture {

void replace_memory_functions(HsaApiTable& table);
void replace_code_functions(HsaApiTable& table);  // code_hooks.cpp: executables and code object readers

}  // namespace kerncap::capture
