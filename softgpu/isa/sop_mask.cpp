// Scalar instructions on masks and bits: SOP1, EXEC-saving logic, moves through m0, wave64 loops in two passes.
#include "softgpu/isa/code_cache.h"
#include "softgpu/isa/scalar_row.h"

namespace kerncap::softgpu::isa {
namespace {

// EXEC-saving logic: destination = EXEC; EXEC = F(source, EXEC).
template <class T, class F>
const Operation* save_exec(Wave& w, const Operation* op) {
  const T source = read_scalar<T>(w, op->source[0]);
  const T exec = sizeof(T) == 8 ? static_cast<T>(w.read64(reg_exec)) : static_cast<T>(w.s[reg_exec]);
  const T result = F{}(source, exec);
  write_scalar<T>(w, op->destination, exec);
  if constexpr (sizeof(T) == 8)
    w.write64(reg_exec, result);
  else
    w.s[reg_exec] = result;
  w.scc = result != 0;
  return following(op);
}
// ..._wrexec: destination and EXEC = F.
template <class T, class F>
const Operation* write_exec(Wave& w, const Operation* op) {
  const T source = read_scalar<T>(w, op->source[0]);
  const T exec = sizeof(T) == 8 ? static_cast<T>(w.read64(reg_exec)) : static_cast<T>(w.s[reg_exec]);
  const T result = F{}(source, exec);
  write_scalar<T>(w, op->destination, result);
  if constexpr (sizeof(T) == 8)
    w.write64(reg_exec, result);
  else
    w.s[reg_exec] = result;
  w.scc = result != 0;
  return following(op);
}
template <class T>
Instruction exec_operation(const char* name, Execute execute) {
  Instruction row;
  row.name = name;
  row.family = Family::salu;
  row.execute = execute;
  row.result[0] = row.sources[0] = scalar_type<T>();
  return row;
}

template <class T, class F>
Instruction saving_exec(F, const char* name) {
  return exec_operation<T>(name, &save_exec<T, F>);
}
template <class T, class F>
Instruction writing_exec(F, const char* name) {
  return exec_operation<T>(name, &write_exec<T, F>);
}

u64 quad_mask(u64 value) {
  u64 result = 0;
  for (unsigned i = 0; i < 16; ++i) result |= u64{(value >> 4 * i & 15) != 0} << i;
  return result;
}
u64 whole_quads(u64 value) {
  u64 result = 0;
  for (unsigned i = 0; i < 16; ++i)
    if (value >> 4 * i & 15) result |= u64{15} << 4 * i;
  return result;
}
u64 reverse_bits(u64 value) {
  u64 result = 0;
  for (unsigned i = 0; i < 64; ++i) result |= (value >> i & 1) << (63 - i);
  return result;
}
// Bits from the top that equal the sign, -1 when all do.
template <class T>
u32 sign_bits(T value) {
  const auto same = static_cast<std::make_unsigned_t<T>>(value < 0 ? ~value : value);
  return same == 0 ? ~0u : static_cast<u32>(std::countl_zero(same));
}

const Operation* move_relative_source(Wave& w, const Operation* op) {
  const unsigned index = op->source[0].index + w.s[reg_m0];
  if (index >= reg_vcc) return w.fail(op, DispatchStatus::illegal_instruction, "m0 leads past the scalar registers");
  w.s[op->destination.index] = w.s[index];
  return following(op);
}
const Operation* move_relative_source64(Wave& w, const Operation* op) {
  const unsigned index = op->source[0].index + w.s[reg_m0];
  if (index + 1 >= reg_vcc)
    return w.fail(op, DispatchStatus::illegal_instruction, "m0 leads past the scalar registers");
  w.write64(op->destination.index, w.read64(index));
  return following(op);
}
const Operation* move_relative_destination(Wave& w, const Operation* op) {
  const unsigned index = op->destination.index + w.s[reg_m0];
  if (index >= reg_vcc) return w.fail(op, DispatchStatus::illegal_instruction, "m0 leads past the scalar registers");
  w.s[index] = read32(w, op->source[0]);
  return following(op);
}
const Operation* move_relative_destination64(Wave& w, const Operation* op) {
  const unsigned index = op->destination.index + w.s[reg_m0];
  if (index + 1 >= reg_vcc)
    return w.fail(op, DispatchStatus::illegal_instruction, "m0 leads past the scalar registers");
  w.write64(index, read64(w, op->source[0]));
  return following(op);
}
const Operation* bit_replicate(Wave& w, const Operation* op) {
  const u32 value = read32(w, op->source[0]);
  u64 result = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (value >> i & 1) result |= u64{3} << 2 * i;
  w.write64(op->destination.index, result);
  return following(op);
}
template <class T, bool set>
const Operation* change_bit(Wave& w, const Operation* op) {
  const u32 bit = read32(w, op->source[0]) & (sizeof(T) * 8 - 1);
  const T old =
      sizeof(T) == 8 ? static_cast<T>(w.read64(op->destination.index)) : static_cast<T>(w.s[op->destination.index]);
  write_scalar<T>(w, op->destination, set ? old | T{1} << bit : old & ~(T{1} << bit));
  return following(op);
}
template <class T>
const Operation* conditional_move(Wave& w, const Operation* op) {
  if (w.scc) write_scalar<T>(w, op->destination, read_scalar<T>(w, op->source[0]));
  return following(op);
}

// s_movrelsd_2: m0 has an offset for the source in bits 0-9 and one for the destination in bits 16-25.
const Operation* move_relative_both(Wave& w, const Operation* op) {
  const unsigned from = op->source[0].index + (w.s[reg_m0] & 0x3ff),
                 to = op->destination.index + (w.s[reg_m0] >> 16 & 0x3ff);
  if (from >= reg_vcc || to >= reg_vcc)
    return w.fail(op, DispatchStatus::illegal_instruction, "m0 leads past the scalar registers");
  w.s[to] = w.s[from];
  return following(op);
}

}  // namespace

std::span<const Instruction> scalar_mask_instructions() {
  static const auto* table = new std::vector<Instruction>{
#define KERNCAP_LOGIC(NAME, EXPRESSION)                                                        \
  saving_exec<u64>([](u64 a, u64 b) -> u64 { return EXPRESSION; }, "s_" NAME "_saveexec_b64"), \
      saving_exec<u32>([](u32 a, u32 b) -> u32 { return EXPRESSION; }, "s_" NAME "_saveexec_b32")
      KERNCAP_LOGIC("and", a & b),
      KERNCAP_LOGIC("or", a | b),
      KERNCAP_LOGIC("xor", a ^ b),
      KERNCAP_LOGIC("andn2", a & ~b),
      KERNCAP_LOGIC("orn2", a | ~b),
      KERNCAP_LOGIC("nand", ~(a & b)),
      KERNCAP_LOGIC("nor", ~(a | b)),
      KERNCAP_LOGIC("xnor", ~(a ^ b)),
#undef KERNCAP_LOGIC
      saving_exec<u64>([](u64 a, u64 b) -> u64 { return ~a & b; }, "s_andn1_saveexec_b64"),
      saving_exec<u32>([](u32 a, u32 b) -> u32 { return ~a & b; }, "s_andn1_saveexec_b32"),
      saving_exec<u64>([](u64 a, u64 b) -> u64 { return ~a | b; }, "s_orn1_saveexec_b64"),
      saving_exec<u32>([](u32 a, u32 b) -> u32 { return ~a | b; }, "s_orn1_saveexec_b32"),
      writing_exec<u64>([](u64 a, u64 b) -> u64 { return ~a & b; }, "s_andn1_wrexec_b64"),
      writing_exec<u32>([](u32 a, u32 b) -> u32 { return ~a & b; }, "s_andn1_wrexec_b32"),
      writing_exec<u64>([](u64 a, u64 b) -> u64 { return a & ~b; }, "s_andn2_wrexec_b64"),
      writing_exec<u32>([](u32 a, u32 b) -> u32 { return a & ~b; }, "s_andn2_wrexec_b32"),
      // SOP1
      sop<u32(u32)>([](u32 a, bool&) { return a; }, "s_mov_b32"),
      sop<u64(u64)>([](u64 a, bool&) { return a; }, "s_mov_b64"),
      scalar_row("s_cmov_b32", &conditional_move<u32>, Type::b32_, {Type::b32_}),
      scalar_row("s_cmov_b64", &conditional_move<u64>, Type::b64_, {Type::b64_}),
      sop<u32(u32)>(
          [](u32 a, bool& c) {
            c = ~a != 0;
            return ~a;
          },
          "s_not_b32"),
      sop<u64(u64)>(
          [](u64 a, bool& c) {
            c = ~a != 0;
            return ~a;
          },
          "s_not_b64"),
      sop<u32(u32)>(
          [](u32 a, bool& c) {
            const u32 r = static_cast<u32>(whole_quads(a));
            c = r != 0;
            return r;
          },
          "s_wqm_b32"),
      sop<u64(u64)>(
          [](u64 a, bool& c) {
            const u64 r = whole_quads(a);
            c = r != 0;
            return r;
          },
          "s_wqm_b64"),
      sop<u32(u32)>(
          [](u32 a, bool& c) {
            const u32 r = static_cast<u32>(quad_mask(a));
            c = r != 0;
            return r;
          },
          "s_quadmask_b32"),
      sop<u64(u64)>(
          [](u64 a, bool& c) {
            const u64 r = quad_mask(a);
            c = r != 0;
            return r;
          },
          "s_quadmask_b64"),
      sop<u32(u32)>([](u32 a, bool&) { return static_cast<u32>(reverse_bits(a) >> 32); }, "s_brev_b32"),
      sop<u64(u64)>([](u64 a, bool&) { return reverse_bits(a); }, "s_brev_b64"),
      sop<u32(u32)>(
          [](u32 a, bool& c) {
            const u32 r = 32u - static_cast<u32>(std::popcount(a));
            c = r != 0;
            return r;
          },
          "s_bcnt0_i32_b32"),
      sop<u32(u64)>(
          [](u64 a, bool& c) {
            const u32 r = 64u - static_cast<u32>(std::popcount(a));
            c = r != 0;
            return r;
          },
          "s_bcnt0_i32_b64"),
      sop<u32(u32)>(
          [](u32 a, bool& c) {
            const u32 r = static_cast<u32>(std::popcount(a));
            c = r != 0;
            return r;
          },
          "s_bcnt1_i32_b32"),
      sop<u32(u64)>(
          [](u64 a, bool& c) {
            const u32 r = static_cast<u32>(std::popcount(a));
            c = r != 0;
            return r;
          },
          "s_bcnt1_i32_b64"),
      sop<u32(u32)>([](u32 a, bool&) { return ~a == 0 ? ~0u : static_cast<u32>(std::countr_one(a)); }, "s_ff0_i32_b32"),
      sop<u32(u64)>([](u64 a, bool&) { return ~a == 0 ? ~0u : static_cast<u32>(std::countr_one(a)); }, "s_ff0_i32_b64"),
      sop<u32(u32)>([](u32 a, bool&) { return a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a)); }, "s_ff1_i32_b32"),
      sop<u32(u64)>([](u64 a, bool&) { return a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a)); }, "s_ff1_i32_b64"),
      sop<u32(u32)>([](u32 a, bool&) { return a == 0 ? ~0u : static_cast<u32>(std::countl_zero(a)); },
                    "s_flbit_i32_b32"),
      sop<u32(u64)>([](u64 a, bool&) { return a == 0 ? ~0u : static_cast<u32>(std::countl_zero(a)); },
                    "s_flbit_i32_b64"),
      sop<u32(i32)>([](i32 a, bool&) { return sign_bits(a); }, "s_flbit_i32"),
      sop<u32(i64)>([](i64 a, bool&) { return sign_bits(a); }, "s_flbit_i32_i64"),
      sop<i32(u32)>([](u32 a, bool&) { return i32{static_cast<i8>(a)}; }, "s_sext_i32_i8"),
      sop<i32(u32)>([](u32 a, bool&) { return i32{static_cast<i16>(a)}; }, "s_sext_i32_i16"),
      sop<u32(u32)>(
          [](u32 a, bool& c) {
            const u32 r = a >> 31 ? 0u - a : a;
            c = r != 0;
            return r;
          },
          "s_abs_i32"),
      scalar_row("s_bitset0_b32", &change_bit<u32, false>, Type::b32_, {Type::b32_}),
      scalar_row("s_bitset0_b64", &change_bit<u64, false>, Type::b64_, {Type::b32_}),
      scalar_row("s_bitset1_b32", &change_bit<u32, true>, Type::b32_, {Type::b32_}),
      scalar_row("s_bitset1_b64", &change_bit<u64, true>, Type::b64_, {Type::b32_}),
      scalar_row("s_movrels_b32", &move_relative_source, Type::b32_, {Type::b32_}),
      scalar_row("s_movrels_b64", &move_relative_source64, Type::b64_, {Type::b64_}),
      scalar_row("s_movreld_b32", &move_relative_destination, Type::b32_, {Type::b32_}),
      scalar_row("s_movreld_b64", &move_relative_destination64, Type::b64_, {Type::b64_}),
      scalar_row("s_bitreplicate_b64_b32", &bit_replicate, Type::b64_, {Type::b32_}),
      scalar_row("s_cmovk_i32", &conditional_move<u32>, Type::b32_, {Type::b32_}, instruction_signed_k),
      scalar_row("s_movrelsd_2_b32", &move_relative_both, Type::b32_, {Type::b32_}),
  };
  return *table;
}

}  // namespace kerncap::softgpu::isa
