// State of a running wave, its workgroup, and of the engine thread that runs it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/execution.h"
#include "softgpu/isa/operation.h"

namespace kerncap::softgpu::isa {

class CodeCache;
struct Workgroup;
struct DispatchState;

// What a processor does differently, decided once.
struct Target {
  std::string processor;
  unsigned major = 9;  // 9: GCN/CDNA, 10: RDNA1/2, 11: RDNA3
  bool gfx90a = false, gfx940 = false;
  bool packed_work_item_ids = false;  // x, y, z in v0
  bool architected_flat_scratch = false;
  bool preserves_high_half = false;     // 16-bit results
  bool cmpx_writes_destination = true;  // v_cmpx writes its SGPRs besides EXEC
  unsigned lds_bytes = 65536;
};

enum class WaveState : u8 { ready, barrier, done, failed };

// Per engine thread: scratch rows and the cache of translations.
struct Engine {
  alignas(64) u32 temporary[5][32 * row_lanes];  // materialised sources (3), results, more
  struct TlbEntry {
    u64 page = ~u64{0};
    std::byte* host = nullptr;
    unsigned permissions = 0;
  };
  std::array<TlbEntry, 256> tlb;
  AddressSpace* memory = nullptr;
  DispatchHost* host = nullptr;
  u64 memory_generation = 0;
  DispatchCounters counters;
  bool count_details = false;
  alignas(64) std::array<u64, row_lanes> address;
  alignas(64) std::array<std::byte*, row_lanes> pointer;

  // Before each slice: drops the translations when the space or its contents changed.
  void attach(AddressSpace* space, DispatchHost* its_host);
  u64 timestamp() const { return host->timestamp(); }
  // Host pointer of one byte, for accesses that stay in its page; nullptr: fault.
  std::byte* translate(u64 gpu_address, unsigned permissions) {
    const u64 page = gpu_address >> AddressSpace::page_bits;
    TlbEntry& entry = tlb[page % tlb.size()];
    if (entry.page == page && (entry.permissions & permissions) == permissions)
      return entry.host + (gpu_address & (AddressSpace::page_size - 1));
    return fill(entry, gpu_address, permissions);
  }

 private:
  std::byte* fill(TlbEntry& entry, u64 gpu_address, unsigned permissions);
};

struct Wave {
  Wave();
  ~Wave();
  Wave(const Wave&) = delete;
  Wave& operator=(const Wave&) = delete;
  u32* v = nullptr;  // rows
  union {
    u32 s[scalar_registers];
    u64 pair[scalar_registers / 2];
  };
  bool scc = false;
  u8 lanes = 64;
  WaveState state = WaveState::ready;
  bool mode_is_default = true;  // round to nearest, no flushing, no register indexing
  bool yielded = false;
  bool in_global_sync = false, global_flag = false;  // waits at a global barrier, which had this flag
  u8 index_mode = 0;  // s_set_gpr_idx_on: bits 0-2 sources, bit 3 destination are indexed by m0
  u32 mode = 0;
  u32 trap_status = 0;
  u32 index = 0;  // in its workgroup
  u64 all_lanes = ~u64{0};
  const Operation* next = nullptr;
  u64 program_counter = 0;  // valid when `next` is null
  Engine* engine = nullptr;
  Workgroup* workgroup = nullptr;
  DispatchState* dispatch = nullptr;
  CodeCache* code = nullptr;
  const Target* target = nullptr;
  std::byte* scratch = nullptr;  // lanes * scratch_bytes
  u64 scratch_bytes = 0;         // per lane
  u64 scratch_capacity = 0;
  void reserve_scratch(u64 bytes);
  u64 mask_key = 0;
  alignas(64) u32 mask_row[row_lanes];  // EXEC as 0 / ~0, valid when mask_key == exec

  u64 exec() const { return lanes == 64 ? pair[reg_exec / 2] : s[reg_exec]; }
  u64 vcc() const { return lanes == 64 ? pair[reg_vcc / 2] : s[reg_vcc]; }
  u32* row(unsigned index_) { return v + index_ * row_lanes; }
  u64 read_mask(unsigned reg) const {
    if (lanes == 32) return s[reg];
    return s[reg] | u64{s[reg + 1]} << 32;
  }
  void write_mask(unsigned reg, u64 value) {
    s[reg] = static_cast<u32>(value);
    if (lanes == 64) s[reg + 1] = static_cast<u32>(value >> 32);
  }
  u64 read64(unsigned reg) const { return s[reg] | u64{s[reg + 1]} << 32; }
  void write64(unsigned reg, u64 value) {
    s[reg] = static_cast<u32>(value);
    s[reg + 1] = static_cast<u32>(value >> 32);
  }
  const u32* execution_row() {
    const u64 mask = exec();
    if (mask != mask_key) fill_mask(mask);
    return mask_row;
  }
  void fill_mask(u64 mask);
  void mode_changed() { mode_is_default = (mode & 0xffu) == 0xf0u && index_mode == 0; }
  // Ends the wave with an error; returns nullptr so that handlers can return it.
  const Operation* fail(const Operation* at, DispatchStatus status, std::string what);
  const Operation* memory_fault(const Operation* at, u64 address, bool write);
};

// One constant or register as the number that scalar instructions see.
inline u32 read32(const Wave& w, const Operand& o) {
  switch (o.kind) {
    case OperandKind::scalar:
      return w.s[o.index];
    case OperandKind::constant:
      return static_cast<u32>(o.value);
    case OperandKind::scc:
      return w.scc;
    case OperandKind::vccz:
      return w.vcc() == 0;
    case OperandKind::execz:
      return w.exec() == 0;
    default:
      return 0;
  }
}
inline u64 read64(const Wave& w, const Operand& o) {
  if (o.kind == OperandKind::scalar) return w.read64(o.index);
  if (o.kind == OperandKind::constant) return o.value;
  return read32(w, o);
}

struct Workgroup {
  std::vector<std::unique_ptr<Wave>> waves;
  std::vector<std::byte> lds;
  std::array<u32, 3> id{};
  unsigned live = 0, waiting = 0;
  unsigned cursor = 0;   // next wave to run
  bool polls = false;    // its last slice did little but read memory in a loop, or sleep
  bool blocked = false;  // every wave waits at a barrier, of the workgroup or of the grid
  u64 random = 0;        // of a dispatch with a seed
};

// The pc of an operation; operations know their place in the cache's pages.
u64 address_of(const Wave& w, const Operation* op);

}  // namespace kerncap::softgpu::isa
