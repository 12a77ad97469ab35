// The seam between the two halves of the software GPU.
//
// The kernel ABI half (libkerncap-softgpu.so: ioctls, queues, memory, events) knows packets but no instruction; the
// instruction-set half (libkerncap-softgpu-isa.so, loaded with RTLD_LOCAL with the first compute queue, because it
// brings LLVM along) knows instructions but no queue. They meet in this header only.
//
// Thread-safety: InstructionSet may be used by many threads. Dispatch::advance() may be called by several engine
// threads at the same time: each call takes some runnable workgroup, runs it for about `instructions` wave instructions
// and gives it back, so several threads share one dispatch and one thread can share itself between several dispatches.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "softgpu/memory.h"

namespace kerncap::softgpu {

// What the topology tells about apertures must agree with what flat instructions do (GET_PROCESS_APERTURES_NEW,
// HW_REG_SH_MEM_BASES, src_shared_base, src_private_base).
inline constexpr std::uint64_t lds_aperture = 0x1000000000000;
inline constexpr std::uint64_t scratch_aperture = 0x2000000000000;
inline constexpr std::uint64_t aperture_size = std::uint64_t{1} << 32;

// What a kernel needs of the world outside its wave. All functions may be called by any engine thread.
struct DispatchHost {
  virtual ~DispatchHost() = default;
  virtual std::uint64_t timestamp() noexcept = 0;               // s_memtime, s_memrealtime: the agent's clock, in ticks
  virtual void interrupt(std::uint32_t event_id) noexcept = 0;  // s_sendmsg MSG_INTERRUPT with m0's event
  virtual void notice(const std::string&) noexcept {}  // one sentence for the user, about a kernel that goes on
};

struct DispatchRequest {
  hsa_kernel_dispatch_packet_t packet{};  // a copy of the packet
  std::uint64_t packet_address = 0;       // GPU address of the packet (dispatch pointer SGPRs)
  std::uint64_t queue_address = 0;        // GPU address of amd_queue_t (queue pointer SGPRs)
  std::uint64_t dispatch_id = 0;          // index of the packet in its queue
  AddressSpace* memory = nullptr;         // outlives the dispatch
  DispatchHost* host = nullptr;           // outlives the dispatch
  std::uint64_t seed = 0;                 // scheduling order of workgroups and waves; 0: natural order
  std::uint64_t patience = 0;  // nanoseconds after which a kernel that only polls memory is stopped; 0: never
  bool count_details = false;  // LDS bank conflicts, which cost time to count
  std::uint64_t poison = 0;    // what registers, LDS and scratch hold at the start; 0: zeros
};

enum class DispatchStatus {
  running,  // call advance() again
  idle,     // nothing runnable for this thread right now (all workgroups are with other threads)
  done,
  memory_fault,         // -> KFD memory exception event, "Memory access fault by GPU node"
  illegal_instruction,  // -> queue error HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION
  trap,                 // s_trap 2 (abort, assert): -> HSA_STATUS_ERROR_EXCEPTION
  bad_packet,           // invalid sizes, kernel object not readable, LDS or scratch beyond the limits
  deadlock,             // all workgroups that can be resident wait at the grid's barrier, or `patience` is over
};

struct DispatchError {
  DispatchStatus status = DispatchStatus::done;
  std::uint64_t address = 0;            // memory faults: the first byte that could not be accessed
  bool write = false, present = false;  // was it a write; was the page there (so the permission was missing)
  std::uint64_t kernel_object = 0, program_counter = 0;
  std::string message;  // one sentence: kernel, program counter, instruction, what went wrong
};

// Kinds of memory in DispatchCounters::memory. What flat instructions do counts as global memory.
enum class Traffic : unsigned { global, private_memory, lds, scalar };
inline constexpr std::size_t traffic_kinds = 4;
struct MemoryTraffic {
  std::uint64_t bytes_read = 0, bytes_written = 0;
};

struct DispatchCounters {
  std::uint64_t wave_instructions = 0, valu = 0, salu = 0, vmem = 0, smem = 0, lds = 0, branches = 0;
  std::uint64_t matrix = 0;                            // MFMA, SMFMAC and WMMA, which `valu` counts too
  std::uint64_t bytes_read = 0, bytes_written = 0;     // global and private memory, scalar accesses
  std::array<MemoryTraffic, traffic_kinds> memory{};   // by Traffic
  std::uint64_t partial_valu = 0, inactive_lanes = 0;  // vector instructions with lanes off, and how many lanes
  std::uint64_t lds_bank_conflicts = 0;                // extra passes over the 32 banks, with count_details only
  std::uint64_t workgroups = 0, waves = 0;
};

class Dispatch {
 public:
  virtual ~Dispatch() = default;
  // Runs about `instructions` wave instructions. A terminal status (everything but running and idle) is returned to
  // every later call.
  virtual DispatchStatus advance(std::uint64_t instructions) noexcept = 0;
  virtual DispatchError error() const = 0;        // after a terminal status
  virtual DispatchCounters counters() const = 0;  // after a terminal status
};

class InstructionSet {
 public:
  virtual ~InstructionSet() = default;
  // Never fails: a bad packet becomes a dispatch whose first advance() returns bad_packet.
  virtual std::unique_ptr<Dispatch> start(const DispatchRequest& request) = 0;
  // The instruction cache: code in the range may have changed (AQL vendor packets, code loads). size 0: everything.
  virtual void invalidate_code(std::uint64_t address, std::uint64_t size) = 0;
};

// The entry point of libkerncap-softgpu-isa.so; `version` must equal isa_interface_version. `processor` is a target
// such as "gfx90a". Returns nullptr and sets *error (a static string) when the processor is unknown. The caller owns
// the result.
inline constexpr unsigned isa_interface_version = 3;
inline constexpr const char* isa_entry_point = "kerncap_softgpu_isa";
using IsaEntryPoint = InstructionSet* (*)(unsigned version, const char* processor, const char** error);

}  // namespace kerncap::softgpu
