// The snapshot's manifest: everything about a captured dispatch but the bytes of memory.
//
// `NAME.kcap/manifest.json`, "schema": "kerncap.snapshot/2"; byte by byte in docs/formats/snapshot.md. The manifest is
// written last; a folder without one is not a snapshot. Addresses are device virtual addresses as the application saw
// them; sizes are bytes; times are nanoseconds. No LLVM here: the replayer of an emitted project compiles this file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/codeobject/kernel.h"
#include "core/support/json.h"

namespace kerncap::snapshot {

// Version 2 added Dispatch::scope and visible_bytes; version 1 is still read.
inline constexpr const char* schema = "kerncap.snapshot/2";
inline constexpr std::uint64_t chunk_size = 64 * 1024;

struct Agent {
  std::uint32_t index = 0;  // position in Manifest::agents; others refer to it
  std::string name;         // "gfx90a" (HSA_AGENT_INFO_NAME)
  std::string isa;          // "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"
  std::string product;      // marketing name
  std::uint32_t compute_units = 0, wavefront_size = 0, xccs = 1;
  std::uint64_t memory_bytes = 0;  // local memory
  std::uint32_t node = 0;          // driver node id
};

enum class RegionKind {
  device_coarse,
  device_fine,
  device_extended,  // local memory pools
  host_coarse,
  host_fine,
  host_kernarg,  // system memory pools (pinned)
  registered,    // hsa_amd_memory_lock: the application's own pages
  managed,       // SVM / HMM
  vmem,          // hsa_amd_vmem_*
  ipc,           // attached from another process
  code_object,   // loaded segments, with device globals
};
const char* to_string(RegionKind kind);
std::optional<RegionKind> region_kind(std::string_view name);

struct Region {
  std::uint64_t address = 0, size = 0;
  RegionKind kind = RegionKind::device_coarse;
  std::int32_t agent = -1;             // owner: index into Manifest::agents; -1 = host
  std::uint32_t pool_flags = 0;        // HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_*
  std::uint32_t allocation_flags = 0;  // hsa_amd_memory_pool_flag_t given at allocation (bit 1: executable)
  std::uint64_t host_address = 0;      // registered: the host pages' own address when it differs
  std::string code_object;             // code_object: digest
};

struct CodeObjectLoad {  // every executable of every agent that was loaded at that moment
  std::string digest;    // code/<digest>.hsaco
  std::int32_t agent = 0;
  std::uint64_t load_base = 0, load_size = 0;  // where its segments lie
  std::int64_t load_delta = 0;                 // loaded address minus ELF virtual address
};

struct CodePointer {          // a word in captured memory (or kernarg) that points into a loaded code object
  std::uint64_t address = 0;  // where the word is
  std::string code_object;    // digest
  std::uint64_t offset = 0;   // of the target from load_base
  std::string symbol;         // the symbol that covers the target, when there is one
};

struct NotCaptured {
  std::uint64_t address = 0, size = 0;
  std::string kind, reason;
};

struct CoverageKind {
  std::string kind;
  std::uint64_t regions = 0, bytes = 0;
};

enum class Scope {
  everything,  // all memory that the device could reach
  reachable,   // the allocations that pointers lead to from the kernel's arguments and its device globals
};
const char* to_string(Scope scope);

struct Dispatch {
  // The AQL packet, fields as in hsa_kernel_dispatch_packet_t.
  std::uint16_t header = 0, setup = 0;
  std::array<std::uint32_t, 3> grid{}, workgroup{};  // work-items
  std::uint32_t private_segment_size = 0, group_segment_size = 0;
  std::uint64_t kernel_object = 0, kernarg_address = 0;
  // Where it came from.
  std::string kernel_symbol, kernel_demangled, code_object;
  codeobject::Kernel kernel;  // layout, registers, sizes as the metadata says
  std::int32_t agent = 0;
  std::string queue_type;                     // "multi", "single", "cooperative"
  std::uint64_t index = 0, kernel_index = 0;  // among all dispatches of the process | among this kernel's; from 0
  std::uint64_t process = 0;                  // pid
  std::vector<std::string> command_line;
  std::optional<std::uint64_t> device_time;  // in situ, ns
  // State.
  std::vector<Region> regions;  // ascending addresses, no overlap
  std::vector<CodeObjectLoad> loads;
  std::vector<CodePointer> code_pointers;
  bool code_pointers_complete = true;  // false: the list was cut at a stated limit
  Scope scope = Scope::everything;
  std::uint64_t visible_bytes = 0;  // of everything that the device could reach, whatever the scope
  std::vector<CoverageKind> coverage;
  std::vector<NotCaptured> not_captured;
  bool has_after = false;         // false: the kernel faulted or the capture ended early; for debugging only
  std::string incomplete_reason;  // when has_after is false
  // Files of the folder, relative.
  std::string kernarg_file, pages_file;
  std::string kernarg_checksum;  // XXH3-128 of the kernarg file, 32 hexadecimal digits; the writer fills it in
};

struct Manifest {
  std::string backend = "hsa";
  std::string kerncap_version, runtime_version;
  std::vector<Agent> agents;
  std::vector<Dispatch> dispatches;
  std::vector<std::string> chunk_files;  // relative names with sizes checked by the reader
};

// The document without its seal; Writer adds `"checksum"` as the last member and Reader insists on it.
support::Json to_json(const Manifest& manifest);
Manifest manifest_from_json(const support::Json& document, std::string_view what);  // throws Error{bad_input}

std::string manifest_checksum(const support::Json& document);  // of a document without "checksum": XXH3-128, hex

}  // namespace kerncap::snapshot
