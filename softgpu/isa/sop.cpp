// Scalar arithmetic: SOP1, SOP2, SOPC and SOPK's arithmetic.
#include <algorithm>

#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {
namespace {

template <class T>
T read(const Wave& w, const Operand& o) {
  if constexpr (sizeof(T) == 8)
    return static_cast<T>(read64(w, o));
  else
    return static_cast<T>(read32(w, o));
}
template <class T>
void write(Wave& w, const Operand& o, T value) {
  if constexpr (sizeof(T) == 8)
    w.write64(o.index, static_cast<u64>(value));
  else
    w.s[o.index] = static_cast<u32>(value);
}
template <class T>
constexpr Type scalar_type() {
  if constexpr (std::is_same_v<T, float>)
    return Type::f32_;
  else
    return sizeof(T) == 8 ? (std::is_signed_v<T> ? Type::i64_ : Type::b64_) : Type::b32_;
}

// F(sources..., scc) -> result; changes scc where the instruction does.
template <class Signature, class F>
struct Scalar;
template <class R, class... A, class F>
struct Scalar<R(A...), F> {
  template <std::size_t... k>
  static const Operation* apply(Wave& w, const Operation* op, std::index_sequence<k...>) {
    bool scc = w.scc;
    if constexpr (std::is_void_v<R>) {
      F{}(read<A>(w, op->source[k])..., scc);
    } else {
      write<R>(w, op->destination, F{}(read<A>(w, op->source[k])..., scc));
    }
    w.scc = scc;
    return following(op);
  }
  static const Operation* run(Wave& w, const Operation* op) { return apply(w, op, std::index_sequence_for<A...>{}); }
  // SOPK and others that read their destination as the first source.
  template <class First, class... Rest>
  static const Operation* accumulate(Wave& w, const Operation* op) {
    bool scc = w.scc;
    const First first = sizeof(First) == 8 ? static_cast<First>(w.read64(op->destination.index))
                                           : static_cast<First>(w.s[op->destination.index]);
    write<R>(w, op->destination, F{}(first, read<Rest>(w, op->source[0])..., scc));
    w.scc = scc;
    return following(op);
  }
  static const Operation* run_accumulating(Wave& w, const Operation* op) { return accumulate<A...>(w, op); }
};

template <class Signature, class F>
struct Maker;
template <class R, class... A, class F>
struct Maker<R(A...), F> {
  static Instruction make(const char* name) {
    Instruction row;
    row.name = name;
    row.family = Family::salu;
    row.execute = &Scalar<R(A...), F>::run;
    if constexpr (!std::is_void_v<R>) row.result[0] = scalar_type<R>();
    row.sources = {scalar_type<A>()...};
    return row;
  }
};
template <class Signature, class F>
Instruction sop(F, const char* name) {
  return Maker<Signature, F>::make(name);
}
// SOPK with destination as first source: the text has destination and immediate.
template <class Signature, class F>
Instruction sopk_accumulate(F, const char* name) {
  Instruction row = Maker<Signature, F>::make(name);
  row.execute = &Scalar<Signature, F>::run_accumulating;
  row.sources = {Type::b32_, Type::none, Type::none, Type::none};
  row.flags = instruction_signed_k;
  return row;
}
template <class Signature, class F>
Instruction sopk(F, const char* name, bool is_signed) {
  Instruction row = Maker<Signature, F>::make(name);
  if (is_signed) row.flags = instruction_signed_k;
  return row;
}

// EXEC-saving logic: destination = EXEC; EXEC = F(source, EXEC).
template <class T, class F>
const Operation* save_exec(Wave& w, const Operation* op) {
  const T source = read<T>(w, op->source[0]);
  const T exec = sizeof(T) == 8 ? static_cast<T>(w.read64(reg_exec)) : static_cast<T>(w.s[reg_exec]);
  const T result = F{}(source, exec);
  write<T>(w, op->destination, exec);
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
  const T source = read<T>(w, op->source[0]);
  const T exec = sizeof(T) == 8 ? static_cast<T>(w.read64(reg_exec)) : static_cast<T>(w.s[reg_exec]);
  const T result = F{}(source, exec);
  write<T>(w, op->destination, result);
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

template <class T>
T bit_field(T value, u32 offset, u32 width) {
  if (width == 0) return 0;
  constexpr u32 bits = sizeof(T) * 8;
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>) {
    if (offset + width >= bits) return value >> offset;
    return static_cast<T>(static_cast<U>(value) << (bits - offset - width)) >> (bits - width);
  } else {
    return offset + width >= bits ? value >> offset : (value >> offset) & ((U{1} << width) - 1);
  }
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
  write<T>(w, op->destination, set ? old | T{1} << bit : old & ~(T{1} << bit));
  return following(op);
}
template <class T>
const Operation* conditional_move(Wave& w, const Operation* op) {
  if (w.scc) write<T>(w, op->destination, read<T>(w, op->source[0]));
  return following(op);
}
Instruction scalar_row(const char* name, Execute execute, Type result, std::initializer_list<Type> sources,
                       unsigned flags = 0) {
  Instruction row;
  row.name = name;
  row.family = Family::salu;
  row.execute = execute;
  row.result[0] = result;
  std::copy(sources.begin(), sources.end(), row.sources.begin());
  row.flags = static_cast<u16>(flags);
  return row;
}

}  // namespace

std::span<const Instruction> scalar_instructions() {
  static const auto* table =
      new std::vector<Instruction>{
          // SOP2
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = u64{a} + b;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_add_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                c = b > a;
                return a - b;
              },
              "s_sub_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = a + b;
                c = (~(a ^ b) & (a ^ r)) >> 31;
                return r;
              },
              "s_add_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = a - b;
                c = ((a ^ b) & (a ^ r)) >> 31;
                return r;
              },
              "s_sub_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = u64{a} + b + c;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_addc_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 t = u64{b} + c;
                c = t > a;
                return static_cast<u32>(a - t);
              },
              "s_subb_u32"),
          sop<i32(i32, i32)>(
              [](i32 a, i32 b, bool& c) {
                c = a < b;
                return c ? a : b;
              },
              "s_min_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                c = a < b;
                return c ? a : b;
              },
              "s_min_u32"),
          sop<i32(i32, i32)>(
              [](i32 a, i32 b, bool& c) {
                c = a > b;
                return c ? a : b;
              },
              "s_max_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                c = a > b;
                return c ? a : b;
              },
              "s_max_u32"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool& c) { return c ? a : b; }, "s_cselect_b32"),
          sop<u64(u64, u64)>([](u64 a, u64 b, bool& c) { return c ? a : b; }, "s_cselect_b64"),
#define KERNCAP_LOGIC(NAME, EXPRESSION)                                                            \
  sop<u32(u32, u32)>(                                                                              \
      [](u32 a, u32 b, bool& c) {                                                                  \
        const u32 r = EXPRESSION;                                                                  \
        c = r != 0;                                                                                \
        return r;                                                                                  \
      },                                                                                           \
      "s_" NAME "_b32"),                                                                           \
      sop<u64(u64, u64)>(                                                                          \
          [](u64 a, u64 b, bool& c) {                                                              \
            const u64 r = EXPRESSION;                                                              \
            c = r != 0;                                                                            \
            return r;                                                                              \
          },                                                                                       \
          "s_" NAME "_b64"),                                                                       \
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
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = a << (b & 31);
                c = r != 0;
                return r;
              },
              "s_lshl_b32"),
          sop<u64(u64, u32)>(
              [](u64 a, u32 b, bool& c) {
                const u64 r = a << (b & 63);
                c = r != 0;
                return r;
              },
              "s_lshl_b64"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = a >> (b & 31);
                c = r != 0;
                return r;
              },
              "s_lshr_b32"),
          sop<u64(u64, u32)>(
              [](u64 a, u32 b, bool& c) {
                const u64 r = a >> (b & 63);
                c = r != 0;
                return r;
              },
              "s_lshr_b64"),
          sop<i32(i32, u32)>(
              [](i32 a, u32 b, bool& c) {
                const i32 r = a >> (b & 31);
                c = r != 0;
                return r;
              },
              "s_ashr_i32"),
          sop<i64(i64, u32)>(
              [](i64 a, u32 b, bool& c) {
                const i64 r = a >> (b & 63);
                c = r != 0;
                return r;
              },
              "s_ashr_i64"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return ((1u << (a & 31)) - 1) << (b & 31); }, "s_bfm_b32"),
          sop<u64(u32, u32)>([](u32 a, u32 b, bool&) { return ((u64{1} << (a & 63)) - 1) << (b & 63); }, "s_bfm_b64"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return a * b; }, "s_mul_i32"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return static_cast<u32>(u64{a} * b >> 32); }, "s_mul_hi_u32"),
          sop<i32(i32, i32)>([](i32 a, i32 b, bool&) { return static_cast<i32>(i64{a} * b >> 32); }, "s_mul_hi_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = bit_field<u32>(a, b & 31, b >> 16 & 127);
                c = r != 0;
                return r;
              },
              "s_bfe_u32"),
          sop<i32(i32, u32)>(
              [](i32 a, u32 b, bool& c) {
                const i32 r = bit_field<i32>(a, b & 31, b >> 16 & 127);
                c = r != 0;
                return r;
              },
              "s_bfe_i32"),
          sop<u64(u64, u32)>(
              [](u64 a, u32 b, bool& c) {
                const u64 r = bit_field<u64>(a, b & 63, b >> 16 & 127);
                c = r != 0;
                return r;
              },
              "s_bfe_u64"),
          sop<i64(i64, u32)>(
              [](i64 a, u32 b, bool& c) {
                const i64 r = bit_field<i64>(a, b & 63, b >> 16 & 127);
                c = r != 0;
                return r;
              },
              "s_bfe_i64"),
          sop<i32(i32, i32)>(
              [](i32 a, i32 b, bool& c) {
                const i64 d = i64{a} - b;
                const i32 r = static_cast<i32>(d < 0 ? -d : d);
                c = r != 0;
                return r;
              },
              "s_absdiff_i32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = (u64{a} << 1) + b;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_lshl1_add_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = (u64{a} << 2) + b;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_lshl2_add_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = (u64{a} << 3) + b;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_lshl3_add_u32"),
          sop<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u64 r = (u64{a} << 4) + b;
                c = r >> 32;
                return static_cast<u32>(r);
              },
              "s_lshl4_add_u32"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return (a & 0xffffu) | b << 16; }, "s_pack_ll_b32_b16"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return (a & 0xffffu) | (b & 0xffff0000u); },
                             "s_pack_lh_b32_b16"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return a >> 16 | (b & 0xffff0000u); }, "s_pack_hh_b32_b16"),
          sop<u32(u32, u32)>([](u32 a, u32 b, bool&) { return a >> 16 | b << 16; }, "s_pack_hl_b32_b16"),
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
          sop<u32(u32)>([](u32 a, bool&) { return ~a == 0 ? ~0u : static_cast<u32>(std::countr_one(a)); },
                        "s_ff0_i32_b32"),
          sop<u32(u64)>([](u64 a, bool&) { return ~a == 0 ? ~0u : static_cast<u32>(std::countr_one(a)); },
                        "s_ff0_i32_b64"),
          sop<u32(u32)>([](u32 a, bool&) { return a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a)); },
                        "s_ff1_i32_b32"),
          sop<u32(u64)>([](u64 a, bool&) { return a == 0 ? ~0u : static_cast<u32>(std::countr_zero(a)); },
                        "s_ff1_i32_b64"),
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
  // SOPC
#define KERNCAP_COMPARE(NAME, OPERATOR)                                                                   \
  sop<void(i32, i32)>([](i32 a, i32 b, bool& c) { c = a OPERATOR b; }, "s_cmp_" NAME "_i32"),             \
      sop<void(u32, u32)>([](u32 a, u32 b, bool& c) { c = a OPERATOR b; }, "s_cmp_" NAME "_u32"),         \
      sopk<void(i32, i32)>([](i32 a, i32 b, bool& c) { c = a OPERATOR b; }, "s_cmpk_" NAME "_i32", true), \
      sopk<void(u32, u32)>([](u32 a, u32 b, bool& c) { c = a OPERATOR(b & 0xffffu); }, "s_cmpk_" NAME "_u32", false)
          KERNCAP_COMPARE("eq", ==),
          KERNCAP_COMPARE("lg", !=),
          KERNCAP_COMPARE("gt", >),
          KERNCAP_COMPARE("ge", >=),
          KERNCAP_COMPARE("lt", <),
          KERNCAP_COMPARE("le", <=),
#undef KERNCAP_COMPARE
          sop<void(u64, u64)>([](u64 a, u64 b, bool& c) { c = a == b; }, "s_cmp_eq_u64"),
          sop<void(u64, u64)>([](u64 a, u64 b, bool& c) { c = a != b; }, "s_cmp_lg_u64"),
          sop<void(u32, u32)>([](u32 a, u32 b, bool& c) { c = !(a >> (b & 31) & 1); }, "s_bitcmp0_b32"),
          sop<void(u32, u32)>([](u32 a, u32 b, bool& c) { c = a >> (b & 31) & 1; }, "s_bitcmp1_b32"),
          sop<void(u64, u32)>([](u64 a, u32 b, bool& c) { c = !(a >> (b & 63) & 1); }, "s_bitcmp0_b64"),
          sop<void(u64, u32)>([](u64 a, u32 b, bool& c) { c = a >> (b & 63) & 1; }, "s_bitcmp1_b64"),
          // SOPK
          sopk<i32(i32)>([](i32 a, bool&) { return a; }, "s_movk_i32", true),
          scalar_row("s_cmovk_i32", &conditional_move<u32>, Type::b32_, {Type::b32_}, instruction_signed_k),
          sopk_accumulate<u32(u32, u32)>(
              [](u32 a, u32 b, bool& c) {
                const u32 r = a + b;
                c = (~(a ^ b) & (a ^ r)) >> 31;
                return r;
              },
              "s_addk_i32"),
          sopk_accumulate<u32(u32, u32)>([](u32 a, u32 b, bool&) { return a * b; }, "s_mulk_i32"),
      };
  return *table;
}

}  // namespace kerncap::softgpu::isa
