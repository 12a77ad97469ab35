// Vector memory instructions: flat, global, scratch and buffer share what they do with the data and differ in how they
// find the address of each lane.
#pragma once

#include <vector>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {

enum class MemoryKind : u8 { load, store, atomic };

// Moves the data of the lanes in `active`; `pointers` has a valid entry for each of them.
using MoveData = void (*)(u64 active, std::byte* const* pointers, u32* result, const u32* data);

// Upper half of the second dword of the descriptor for private memory: swizzle enable, stride 0 and a mark that no real
// base address has (the descriptor is made by us, see wave_setup.cpp).
inline constexpr u32 scratch_descriptor_high = 0x8000u | 0x2bceu;

struct MemoryAccess {
  MemoryKind kind;
  u8 bytes;       // accessed per lane
  MoveData move;  // result is nullptr when nothing is returned
  // Typed buffers: how many components, and how 16-bit ones are kept (two in a register, or one in the upper half).
  u8 components = 0;
  bool half_components = false, upper_half = false;
};

// Calls visit(lane) for each lane of the mask, in order.
template <class Visit>
void for_lanes(u64 mask, Visit visit) {
  while (mask != 0) {
    visit(static_cast<unsigned>(std::countr_zero(mask)));
    mask &= mask - 1;
  }
}

// An access that spans pages which are not neighbours in host memory is staged here.
struct Staged {
  unsigned lane;
  u64 address;
  alignas(16) std::array<std::byte, 16> bytes;
};

// One instruction's way to memory: find_lanes() fills Engine::pointer for the lanes of `active`, and takes those out of
// `active` that a buffer's bounds check discards.
struct Access {
  Wave& w;
  const Operation* op;
  MemoryKind kind;
  unsigned bytes;  // per lane
  u64 active;
  std::vector<Staged> staged;
  bool failed = false;  // the wave has failed, with an error that says where
  const Operation* failure = nullptr;

  unsigned permission() const {
    return kind == MemoryKind::load    ? permission_read
           : kind == MemoryKind::store ? permission_write
                                       : unsigned{permission_read} | permission_write;
  }
  void fault(u64 address) {
    failed = true;
    failure = w.memory_fault(op, address, kind != MemoryKind::load);
  }
};
void find_lanes(Access& access);
// After the data has moved: what was staged reaches memory, and the counters.
void finish_access(Access& access);

// An LDS instruction on the global data share.
const Operation* run_gds(Wave& w, const Operation* op);

const Operation* run_memory(Wave& w, const Operation* op);
// Loads from memory to LDS, and stores from LDS: one dword of LDS for each lane.
const Operation* run_memory_to_lds(Wave& w, const Operation* op);
const Operation* run_lds_to_memory(Wave& w, const Operation* op);
// Buffers with a format (typed_buffer.cpp); the number of components is in MemoryAccess::components.
const Operation* run_typed_buffer(Wave& w, const Operation* op);

}  // namespace kerncap::softgpu::isa
