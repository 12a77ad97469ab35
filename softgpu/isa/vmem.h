// Vector memory instructions: flat, global, scratch and buffer share what they do with the data and differ in how they
// find the address of each lane.
#pragma once

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
};

// Calls visit(lane) for each lane of the mask, in order.
template <class Visit>
void for_lanes(u64 mask, Visit visit) {
  while (mask != 0) {
    visit(static_cast<unsigned>(std::countr_zero(mask)));
    mask &= mask - 1;
  }
}

// Fills Engine::address for the operation's lanes.
void flat_addresses(Wave& w, const Operation* op);
// Result of looking for the memory behind the addresses; on failure the wave has failed.
const Operation* run_memory(Wave& w, const Operation* op);

}  // namespace kerncap::softgpu::isa
