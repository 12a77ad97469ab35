#include "softgpu/isa/vmem.h"

#include <algorithm>

namespace kerncap::softgpu::isa {
namespace {

constexpr u64 page_mask = AddressSpace::page_size - 1;

// Where `bytes` from `address` on are, or nullptr after a fault.
std::byte* resolve_slowly(Access& access, unsigned lane, u64 address) {
  Engine& e = *access.w.engine;
  const unsigned bytes = access.bytes, permission = access.permission();
  for (unsigned k = 0; k < bytes; ++k)
    if (e.translate(address + k, permission) == nullptr) {
      access.fault(address + k);
      return nullptr;
    }
  if (std::byte* whole = e.memory->translate_range(address, bytes, permission)) return whole;
  Staged stage{lane, address, {}};
  for (unsigned k = 0; k < bytes && access.kind == MemoryKind::load; ++k)
    stage.bytes[k] = *e.translate(address + k, permission_read);
  access.staged.push_back(stage);
  return nullptr;
}

void resolve_global(Access& access) {
  Wave& w = access.w;
  Engine& e = *w.engine;
  const unsigned bytes = access.bytes, permission = access.permission();
  const u64 last_start = AddressSpace::page_size - bytes;
  if (access.active == w.all_lanes) {
    const u64 first = e.address[0];
    u64 difference = 0, crossing = 0;
    for (unsigned i = 0; i < w.lanes; ++i) {
      difference |= e.address[i] ^ first;
      crossing |= (last_start - (e.address[i] & page_mask)) >> 63;
    }
    if ((difference & ~page_mask) == 0 && crossing == 0) {
      std::byte* host = e.translate(first, permission);
      if (host == nullptr) return access.fault(first);
      const u64 delta = reinterpret_cast<u64>(host) - first;
      for (unsigned i = 0; i < w.lanes; ++i) e.pointer[i] = reinterpret_cast<std::byte*>(e.address[i] + delta);
      return;
    }
  }
  u64 page = ~u64{0}, delta = 0;
  for (u64 rest = access.active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const u64 address = e.address[lane];
    if ((address & page_mask) > last_start) {
      e.pointer[lane] = resolve_slowly(access, lane, address);
      if (access.failed) return;
      continue;
    }
    if ((address & ~page_mask) != page) {
      std::byte* host = e.translate(address, permission);
      if (host == nullptr) return access.fault(address);
      page = address & ~page_mask;
      delta = reinterpret_cast<u64>(host) - address;
    }
    e.pointer[lane] = reinterpret_cast<std::byte*>(address + delta);
  }
}

// Private memory is contiguous per lane here; the hardware's interleaving is not observable.
std::byte* private_pointer(Access& access, unsigned lane, u64 offset) {
  Wave& w = access.w;
  if (offset + access.bytes > w.scratch_bytes) {
    access.failed = true;
    access.failure = w.memory_fault(access.op, scratch_aperture + offset, access.kind != MemoryKind::load);
    return nullptr;
  }
  return w.scratch + lane * w.scratch_bytes + offset;
}

alignas(16) const std::array<std::byte, 16> zeros{};
alignas(16) thread_local std::array<std::byte, 16> discarded;

// Flat: the upper half of the address tells global memory, LDS and private memory apart.
void resolve_flat(Access& access) {
  Wave& w = access.w;
  Engine& e = *w.engine;
  u64 global = 0;
  for (u64 rest = access.active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const u64 address = e.address[lane], aperture = address & ~(aperture_size - 1),
              offset = address & (aperture_size - 1);
    if (aperture == lds_aperture) {
      auto& lds = w.workgroup->lds;
      if (offset + access.bytes <= lds.size())
        e.pointer[lane] = lds.data() + offset;
      else
        e.pointer[lane] = access.kind == MemoryKind::load ? const_cast<std::byte*>(zeros.data()) : discarded.data();
    } else if (aperture == scratch_aperture) {
      e.pointer[lane] = private_pointer(access, lane, offset);
      if (access.failed) return;
    } else {
      global |= u64{1} << lane;
    }
  }
  const u64 all = access.active;
  access.active = global;
  if (global != 0) resolve_global(access);
  access.active = all;
}

void resolve_scratch(Access& access) {
  Wave& w = access.w;
  const Operation* op = access.op;
  const bool has_vector = op->source[0].kind != OperandKind::none;
  const u32 scalar = op->source[2].kind == OperandKind::none ? 0 : read32(w, op->source[2]);
  const u32* row = has_vector ? plain_source(w, op, 0) : nullptr;
  for (u64 rest = access.active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const u32 offset = (has_vector ? row[lane] : 0) + scalar + op->immediate;
    w.engine->pointer[lane] = private_pointer(access, lane, offset);
    if (access.failed) return;
  }
}

// Buffer descriptors: base 0-47, stride 48-61, swizzle enable 63 (GCN), records 64-95, format in the last dword, with
// add-tid at bit 23 (GFX9). The descriptor that a wave gets for private memory is swizzled with the lane's number.
void resolve_buffer(Access& access) {
  Wave& w = access.w;
  Engine& e = *w.engine;
  const Operation* op = access.op;
  const u32* descriptor = &w.s[op->source[2].index];
  const u32 scalar = read32(w, op->source[3]);
  const bool offen = op->flags & flag_offen, idxen = op->flags & flag_idxen;
  const u32* address_row = op->source[0].kind == OperandKind::vector ? w.row(op->source[0].index) : nullptr;
  const u32* index_row = idxen ? address_row : nullptr;
  const u32* offset_row = offen ? address_row + (idxen ? row_lanes : 0) : nullptr;
  const u64 base = descriptor[0] | u64{descriptor[1] & 0xffffu} << 32;
  const u32 stride = descriptor[1] >> 16 & 0x3fffu, records = descriptor[2];
  if ((descriptor[1] >> 16) == scratch_descriptor_high) {
    // The scalar offset counts a whole wave's bytes. base is the wave's offset, 0 here, plus what the prologue adds.
    const u32 uniform = scalar / w.lanes + static_cast<u32>(base);
    for (u64 rest = access.active; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      const u32 offset = uniform + (offset_row ? offset_row[lane] : 0) + op->immediate;
      e.pointer[lane] = private_pointer(access, lane, offset);
      if (access.failed) return;
    }
    return;
  }
  u64 inside = 0;
  const u64 requested = access.active;
  for (u64 rest = requested; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const u64 index = index_row ? index_row[lane] : 0, offset = u64{offset_row ? offset_row[lane] : 0} + op->immediate;
    // Raw buffers (stride 0, or no index): bytes against num_records; structured ones: the record number.
    const bool structured = stride != 0 && idxen;
    const bool in_bounds = structured ? index < records && offset + access.bytes <= std::max<u64>(stride, 1)
                                      : offset + access.bytes <= (stride != 0 ? u64{records} * stride : u64{records});
    if (in_bounds) {
      inside |= u64{1} << lane;
      e.address[lane] = base + scalar + index * stride + offset;
    }
  }
  access.active = inside;
  if (inside != 0) resolve_global(access);
}

// What the bytes count as (execution.h); flat instructions count as global memory, wherever a lane's address leads.
Traffic traffic_kind(const Access& access) {
  switch (static_cast<AddressMode>(access.op->destination2.index)) {
    case AddressMode::scratch:
      return Traffic::private_memory;
    case AddressMode::buffer:
      if (access.w.s[access.op->source[2].index + 1] >> 16 == scratch_descriptor_high) return Traffic::private_memory;
      return Traffic::global;
    default:
      return Traffic::global;
  }
}

// Fills Engine::address for the operation's lanes.
void flat_addresses(Wave& w, const Operation* op) {
  Engine& e = *w.engine;
  const auto offset = static_cast<u64>(static_cast<i64>(static_cast<i32>(op->immediate)));
  const Operand& scalar = op->source[2];
  const bool adds_lane = op->instruction->flags & instruction_adds_lane;
  if (scalar.kind != OperandKind::none || adds_lane) {
    const u64 base = (scalar.kind == OperandKind::none ? 0 : read64(w, scalar)) + offset;
    if (op->source[0].kind == OperandKind::none) {
      const u64 step = adds_lane ? 4 : 0;
      for (unsigned i = 0; i < w.lanes; ++i) e.address[i] = base + step * i;
      return;
    }
    const u32* row = w.row(op->source[0].index);
    for (unsigned i = 0; i < w.lanes; ++i) e.address[i] = base + row[i];
    return;
  }
  const u32* row = w.row(op->source[0].index);
  for (unsigned i = 0; i < w.lanes; ++i) e.address[i] = (row[i] | u64{row[i + row_lanes]} << 32) + offset;
}

}  // namespace

void find_lanes(Access& access) {
  switch (static_cast<AddressMode>(access.op->destination2.index)) {
    case AddressMode::global:
      flat_addresses(access.w, access.op);
      resolve_global(access);
      break;
    case AddressMode::flat:
      flat_addresses(access.w, access.op);
      resolve_flat(access);
      break;
    case AddressMode::scratch:
      resolve_scratch(access);
      break;
    case AddressMode::buffer:
      resolve_buffer(access);
      break;
  }
  if (access.failed) return;
  for (Staged& stage : access.staged) access.w.engine->pointer[stage.lane] = stage.bytes.data();
}

void finish_access(Access& access) {
  Engine& e = *access.w.engine;
  const u64 moved = static_cast<u64>(std::popcount(access.active)) * access.bytes;
  MemoryTraffic& traffic = e.counters.memory[static_cast<unsigned>(traffic_kind(access))];
  if (access.kind != MemoryKind::store) {
    e.counters.bytes_read += moved;
    traffic.bytes_read += moved;
  }
  if (access.kind != MemoryKind::load) {
    e.counters.bytes_written += moved;
    traffic.bytes_written += moved;
    for (const Staged& stage : access.staged)
      for (unsigned k = 0; k < access.bytes; ++k) *e.translate(stage.address + k, permission_write) = stage.bytes[k];
  }
}

const Operation* run_memory(Wave& w, const Operation* op) {
  Engine& e = *w.engine;
  ++e.counters.vmem;
  const u64 active = w.exec();
  if (active == 0) return following(op);
  const MemoryAccess& what = *static_cast<const MemoryAccess*>(op->instruction->detail);
  Access access{w, op, what.kind, what.bytes, active, {}};
  find_lanes(access);
  if (access.failed) return access.failure;
  if (access.kind == MemoryKind::atomic)
    for (u64 rest = access.active; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (reinterpret_cast<u64>(e.pointer[lane]) % what.bytes != 0) return w.memory_fault(op, e.address[lane], true);
    }
  u32* result = (op->flags & flag_glc) ? w.row(op->destination.index) : nullptr;
  const u32* data = op->source[1].kind == OperandKind::vector ? w.row(op->source[1].index) : nullptr;
  u64 moved = access.active;
  if (const u64 discarded = active & ~moved; discarded != 0 && result != nullptr) {
    // What is outside of a buffer reads as zero.
    if (access.kind == MemoryKind::load) {
      for_lanes(discarded, [&](unsigned lane) { e.pointer[lane] = const_cast<std::byte*>(zeros.data()); });
      moved = active;
    } else {
      for_lanes(discarded, [&](unsigned lane) {
        for (unsigned d = 0; d < op->destination.dwords; ++d) result[d * row_lanes + lane] = 0;
      });
    }
  }
  what.move(moved, e.pointer.data(), result, data);
  finish_access(access);
  return following(op);
}

namespace {

// Where a lane's dword is in LDS: m0's low half plus the instruction's offset plus four bytes for each lane before it.
std::byte* lds_dword(Wave& w, const Operation* op, unsigned lane) {
  const u64 at = (w.s[reg_m0] & 0xffffu) + static_cast<u64>(i64{static_cast<i32>(op->immediate)}) + 4ull * lane;
  auto& lds = w.workgroup->lds;
  return at + 4 <= lds.size() ? lds.data() + at : nullptr;
}

}  // namespace

const Operation* run_memory_to_lds(Wave& w, const Operation* op) {
  Engine& e = *w.engine;
  ++e.counters.vmem;
  const u64 requested = w.exec();
  if (requested == 0) return following(op);
  const MemoryAccess& what = *static_cast<const MemoryAccess*>(op->instruction->detail);
  Access access{w, op, MemoryKind::load, what.bytes, requested, {}};
  find_lanes(access);
  if (access.failed) return access.failure;
  alignas(64) u32 values[row_lanes] = {};  // what a buffer's bounds discard is zero
  what.move(access.active, e.pointer.data(), values, nullptr);
  for_lanes(requested, [&](unsigned lane) {
    if (std::byte* to = lds_dword(w, op, lane)) std::memcpy(to, &values[lane], 4);
  });
  finish_access(access);
  e.counters.memory[static_cast<unsigned>(Traffic::lds)].bytes_written +=
      4ull * static_cast<u64>(std::popcount(requested));
  return following(op);
}

const Operation* run_lds_to_memory(Wave& w, const Operation* op) {
  Engine& e = *w.engine;
  ++e.counters.vmem;
  const u64 requested = w.exec();
  if (requested == 0) return following(op);
  Access access{w, op, MemoryKind::store, 4, requested, {}};
  find_lanes(access);
  if (access.failed) return access.failure;
  for_lanes(access.active, [&](unsigned lane) {
    if (const std::byte* from = lds_dword(w, op, lane))
      std::memcpy(e.pointer[lane], from, 4);
    else
      std::memset(e.pointer[lane], 0, 4);
  });
  finish_access(access);
  e.counters.memory[static_cast<unsigned>(Traffic::lds)].bytes_read +=
      4ull * static_cast<u64>(std::popcount(requested));
  return following(op);
}

}  // namespace kerncap::softgpu::isa
