// The ways through rocprofiler-register and rocprofiler-sdk; neither library is needed to build or to run.
#pragma once

#include <cstdint>

#include "capture/runtime_table.h"

namespace kerncap::capture {

// Replaces the entries of the HSA runtime's tables, unless they are ours already (entry.cpp). `told_of_end`: OnUnload
// will be called when the runtime shuts down; otherwise the last hsa_shut_down tells.
void take_tables(HsaApiTable* table, bool told_of_end) noexcept;

// What rocprofiler_set_api_table is given: `name` is "hsa", "hip", "roctx" ...; tables of others are left alone.
void register_tables(const char* name, void** tables, std::uint64_t count) noexcept;

// What rocprofiler_configure returns: a rocprofiler_tool_configure_result_t, or null when rocprofiler-sdk is not there.
void* configure_tool(void* client) noexcept;

}  // namespace kerncap::capture
