// Program control: branches, barriers, messages, hardware registers.
#include <fmt/format.h>

#include "softgpu/isa/code_cache.h"
#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {
namespace {

const Operation* nothing(Wave&, const Operation* op) { return following(op); }

const Operation* end_program(Wave& w, const Operation*) {
  w.state = WaveState::done;
  return nullptr;
}

i32 distance(const Operation* op) { return 1 + static_cast<i16>(op->immediate); }

const Operation* branch(Wave& w, const Operation* op) {
  ++w.engine->counters.branches;
  return w.code->relative(op, distance(op));
}
template <auto Condition>
const Operation* branch_if(Wave& w, const Operation* op) {
  ++w.engine->counters.branches;
  return Condition(w) ? w.code->relative(op, distance(op)) : following(op);
}

const Operation* jump(Wave& w, const Operation* op, u64 target) {
  ++w.engine->counters.branches;
  if (target % 4 != 0)
    return w.fail(op, DispatchStatus::illegal_instruction, fmt::format("jump to the unaligned address {:#x}", target));
  return w.code->at(target);
}
const Operation* get_pc(Wave& w, const Operation* op) {
  w.write64(op->destination.index, address_of(w, op) + 4);
  return following(op);
}
const Operation* set_pc(Wave& w, const Operation* op) { return jump(w, op, read64(w, op->source[0])); }
const Operation* swap_pc(Wave& w, const Operation* op) {
  const u64 target = read64(w, op->source[0]);
  w.write64(op->destination.index, address_of(w, op) + 4);
  return jump(w, op, target);
}
const Operation* call(Wave& w, const Operation* op) {
  w.write64(op->destination.index, address_of(w, op) + 4);
  return branch(w, op);
}

const Operation* barrier(Wave& w, const Operation* op) {
  if (w.workgroup->live == 1) return following(op);
  w.next = following(op);
  w.state = WaveState::barrier;
  ++w.workgroup->waiting;
  return nullptr;
}

const Operation* sleep(Wave& w, const Operation* op) {
  w.next = following(op);
  w.yielded = true;
  return nullptr;
}

// ROCr's trap handler: 2 is llvm.trap (abort, assert), 3 llvm.debugtrap, which does nothing without a debugger.
const Operation* trap(Wave& w, const Operation* op) {
  const unsigned number = op->immediate & 0xff;
  if (number == 3) return following(op);
  return w.fail(op, DispatchStatus::trap, fmt::format("the kernel trapped (s_trap {})", number));
}

constexpr unsigned message_interrupt = 1, message_deallocate_registers = 3;

const Operation* send_message(Wave& w, const Operation* op) {
  const unsigned message = op->immediate & (w.target->major >= 11 ? 0xff : 0xf);
  if (message == message_interrupt) {
    w.engine->host->interrupt(w.s[reg_m0]);
    return following(op);
  }
  if (message == message_deallocate_registers && w.target->major >= 11) return following(op);
  return w.fail(op, DispatchStatus::illegal_instruction, fmt::format("message {} is not supported", message));
}

// gfx11: s_sendmsg_rtn; MSG_RTN_GET_REALTIME is 131 (SIDefines.h). The message is SOP1's source field.
const Operation* send_message_return(Wave& w, const Operation* op) {
  constexpr unsigned get_realtime = 131;
  const unsigned message = op->immediate & 0xff;
  if (message != get_realtime)
    return w.fail(op, DispatchStatus::illegal_instruction, fmt::format("message {} is not supported", message));
  if (op->destination.dwords == 2)
    w.write64(op->destination.index, w.engine->timestamp());
  else
    w.s[op->destination.index] = static_cast<u32>(w.engine->timestamp());
  return following(op);
}

// Hardware registers by number (SIDefines.h, Hwreg). MODE is the only one that a program may change here.
enum HardwareRegister : unsigned {
  hw_mode = 1,
  hw_status = 2,
  hw_trap_status = 3,
  hw_id = 4,
  hw_gpr_alloc = 5,
  hw_lds_alloc = 6,
  hw_ib_status = 7,
  hw_memory_bases = 15,
  hw_flat_scratch_low = 20,
  hw_flat_scratch_high = 21,
  hw_id1 = 23,
  hw_id2 = 24,
  hw_cycles = 29
};

u32 read_hardware(const Wave& w, unsigned id) {
  switch (id) {
    case hw_mode:
      return w.mode;
    case hw_status:
      return (w.scc ? 1u : 0u) | (w.exec() == 0 ? 1u << 9 : 0u) | (w.vcc() == 0 ? 1u << 10 : 0u) | 1u << 16;
    case hw_trap_status:
      return w.trap_status;
    case hw_lds_alloc:
      return static_cast<u32>(w.workgroup->lds.size() / 512) << 12;
    case hw_memory_bases:
      return static_cast<u32>(scratch_aperture >> 48) | static_cast<u32>(lds_aperture >> 48) << 16;
    case hw_flat_scratch_low:
      return w.target->major >= 10 ? w.s[reg_flat_scratch] : 0;  // gfx940: XCC_ID, 0
    case hw_flat_scratch_high:
      return w.target->major >= 10 ? w.s[reg_flat_scratch + 1] : 0;
    case hw_cycles:
      return static_cast<u32>(w.engine->timestamp()) & 0xfffffu;
    default:
      return 0;  // HW_ID and the like: everything runs on compute unit 0
  }
}
struct Field {
  unsigned id, shift;
  u32 mask;
};
Field field_of(u32 immediate) {
  const unsigned size = (immediate >> 11 & 31) + 1;
  return {immediate & 63, immediate >> 6 & 31, static_cast<u32>((u64{1} << size) - 1)};
}
const Operation* get_register(Wave& w, const Operation* op) {
  const Field field = field_of(op->immediate);
  w.s[op->destination.index] = read_hardware(w, field.id) >> field.shift & field.mask;
  return following(op);
}
const Operation* set_register(Wave& w, const Operation* op) {
  const Field field = field_of(op->immediate);
  const u32 value = read32(w, op->source[1]), mask = field.mask << field.shift;
  const auto change = [&](u32& target) { target = (target & ~mask) | (value << field.shift & mask); };
  if (field.id == hw_mode) {
    change(w.mode);
    w.mode_changed();
  } else if (field.id == hw_trap_status) {
    change(w.trap_status);
  } else if (w.target->major >= 10 && (field.id == hw_flat_scratch_low || field.id == hw_flat_scratch_high)) {
    change(w.s[reg_flat_scratch + field.id - hw_flat_scratch_low]);
  }
  return following(op);
}
const Operation* round_mode(Wave& w, const Operation* op) {
  w.mode = (w.mode & ~15u) | (op->immediate & 15u);
  w.mode_changed();
  return following(op);
}
const Operation* denormal_mode(Wave& w, const Operation* op) {
  w.mode = (w.mode & ~0xf0u) | (op->immediate & 15u) << 4;
  w.mode_changed();
  return following(op);
}

// GCN's register indexing: the mode is bits 0-3 of the second source field, the index goes to m0's low byte.
const Operation* index_on(Wave& w, const Operation* op) {
  w.s[reg_m0] = (w.s[reg_m0] & ~0xf0ffu) | (read32(w, op->source[0]) & 0xffu) | (op->immediate >> 8 & 15u) << 12;
  w.index_mode = op->immediate >> 8 & 15u;
  w.mode_changed();
  return following(op);
}
const Operation* index_off(Wave& w, const Operation* op) {
  w.index_mode = 0;
  w.mode_changed();
  return following(op);
}
const Operation* index_set(Wave& w, const Operation* op) {
  w.s[reg_m0] = (w.s[reg_m0] & ~0xffu) | (read32(w, op->source[0]) & 0xffu);
  return following(op);
}
const Operation* index_mode(Wave& w, const Operation* op) {
  w.index_mode = op->immediate & 15u;
  w.mode_changed();
  return following(op);
}

// RDNA's wave64 as two passes over halves of the lanes; the register keeps the mask of the half that waits. Low first.
const Operation* loop_begin(Wave& w, const Operation* op) {
  u32& kept = w.s[op->destination.index];
  u32 &low = w.s[reg_exec], &high = w.s[reg_exec + 1];
  if (low == 0 && high == 0) return branch(w, op);
  if (low == 0) {
    kept = low;
  } else {
    kept = high;
    high = 0;
  }
  return following(op);
}
const Operation* loop_end(Wave& w, const Operation* op) {
  u32& kept = w.s[op->destination.index];
  u32 &low = w.s[reg_exec], &high = w.s[reg_exec + 1];
  if (high != 0) {
    low = kept;
  } else if (kept != 0) {
    high = kept;
    kept = low;
    low = 0;
    return branch(w, op);
  }
  return following(op);
}

const Operation* halt(Wave& w, const Operation* op) {
  if ((op->immediate & 1) == 0) return following(op);
  return w.fail(op, DispatchStatus::trap, "the kernel halted itself (s_sethalt)");
}

Instruction row(const char* name, Execute execute, Type result = Type::none, std::initializer_list<Type> sources = {}) {
  Instruction made;
  made.name = name;
  made.family = Family::sopp;
  made.execute = execute;
  made.result[0] = result;
  std::copy(sources.begin(), sources.end(), made.sources.begin());
  return made;
}

}  // namespace

std::span<const Instruction> program_instructions() {
  static const auto* table = new std::vector<Instruction>{
      row("s_nop", &nothing),
      row("s_waitcnt", &nothing),
      row("s_waitcnt_vscnt", &nothing),
      row("s_waitcnt_vmcnt", &nothing),
      row("s_waitcnt_expcnt", &nothing),
      row("s_waitcnt_lgkmcnt", &nothing),
      row("s_waitcnt_depctr", &nothing),
      row("s_wait_idle", &nothing),
      row("s_wait_event", &nothing),
      row("s_delay_alu", &nothing),
      row("s_setprio", &nothing),
      row("s_incperflevel", &nothing),
      row("s_decperflevel", &nothing),
      row("s_ttracedata", &nothing),
      row("s_ttracedata_imm", &nothing),
      row("s_icache_inv", &nothing),
      row("s_inst_prefetch", &nothing),
      row("s_set_inst_prefetch_distance", &nothing),
      row("s_clause", &nothing),
      row("s_version", &nothing),
      row("s_setvskip", &nothing),
      row("s_endpgm", &end_program),
      row("s_endpgm_saved", &end_program),
      row("s_branch", &branch),
      row("s_cbranch_scc0", &branch_if<[](const Wave& w) { return !w.scc; }>),
      row("s_cbranch_scc1", &branch_if<[](const Wave& w) { return w.scc; }>),
      row("s_cbranch_vccz", &branch_if<[](const Wave& w) { return w.vcc() == 0; }>),
      row("s_cbranch_vccnz", &branch_if<[](const Wave& w) { return w.vcc() != 0; }>),
      row("s_cbranch_execz", &branch_if<[](const Wave& w) { return w.exec() == 0; }>),
      row("s_cbranch_execnz", &branch_if<[](const Wave& w) { return w.exec() != 0; }>),
      row("s_cbranch_cdbgsys", &nothing),
      row("s_cbranch_cdbguser", &nothing),
      row("s_cbranch_cdbgsys_or_user", &nothing),
      row("s_cbranch_cdbgsys_and_user", &nothing),
      row("s_getpc_b64", &get_pc, Type::b64_),
      row("s_setpc_b64", &set_pc, Type::none, {Type::b64_}),
      row("s_swappc_b64", &swap_pc, Type::b64_, {Type::b64_}),
      row("s_call_b64", &call, Type::b64_),
      row("s_barrier", &barrier),
      row("s_sleep", &sleep),
      row("s_trap", &trap),
      row("s_sethalt", &halt),
      row("s_sendmsg", &send_message),
      row("s_sendmsg_rtn_b64", &send_message_return, Type::b64_),
      row("s_sendmsg_rtn_b32", &send_message_return, Type::b32_),
      row("s_wakeup", &nothing),
      row("s_endpgm_ordered_ps_done", &end_program),
      row("s_subvector_loop_begin", &loop_begin, Type::b32_),
      row("s_subvector_loop_end", &loop_end, Type::b32_),
      row("s_getreg_b32", &get_register, Type::b32_),
      row("s_setreg_b32", &set_register, Type::none, {Type::u32_, Type::b32_}),
      row("s_setreg_imm32_b32", &set_register, Type::none, {Type::u32_, Type::b32_}),
      row("s_round_mode", &round_mode),
      row("s_denorm_mode", &denormal_mode),
      row("s_set_gpr_idx_on", &index_on, Type::none, {Type::b32_}),
      row("s_set_gpr_idx_off", &index_off),
      row("s_set_gpr_idx_idx", &index_set, Type::none, {Type::b32_}),
      row("s_set_gpr_idx_mode", &index_mode),
  };
  return *table;
}

}  // namespace kerncap::softgpu::isa
