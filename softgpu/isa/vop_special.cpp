// Vector instructions that are more than a function of their lanes: masks in and out, scalar results, other lanes.
#include "softgpu/isa/float_rules.h"
#include "softgpu/isa/valu.h"
#include "softgpu/isa/vmem.h"

namespace kerncap::softgpu::isa {
namespace {

void put_mask(Wave& w, const Operand& to, u64 mask) {
  if (to.kind == OperandKind::scalar) w.write_mask(to.index, mask);
}
u64 mask_source(const Wave& w, const Operand& o) {
  if (o.kind == OperandKind::scalar) return w.read_mask(o.index);
  if (o.kind == OperandKind::constant) return o.row[0] | u64{o.row[row_lanes]} << 32;
  return 0;
}
// The mask is the last source and no row: take the others as rows.
void sources_before_mask(Wave& w, const Operation* op, unsigned count, const u32** sources, u64& active) {
  if (op->modifiers == nullptr) {
    for (unsigned k = 0; k < count; ++k) sources[k] = plain_source(w, op, k);
  } else {
    const u32* all[4];
    modified_sources(w, op, all, active);
    std::copy(all, all + count, sources);
  }
}

const Operation* conditional_mask(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* sources[2];
  u64 active = w.exec();
  sources_before_mask(w, op, 2, sources, active);
  alignas(64) u32 chosen[row_lanes];
  unpack_mask(mask_source(w, op->source[2]), chosen, w.lanes);
  const u32 *a = sources[0], *b = sources[1];
  u32* result = w.engine->temporary[3];
  for (unsigned i = 0; i < row_lanes; ++i) result[i] = (b[i] & chosen[i]) | (a[i] & ~chosen[i]);
  store_result(w, op, result, active);
  return following(op);
}

// F(a, b, carry in, result) -> carry out
template <bool carry_in, auto F>
const Operation* carry(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* sources[2];
  u64 active = w.exec();
  sources_before_mask(w, op, 2, sources, active);
  alignas(64) u32 in[row_lanes] = {};
  if constexpr (carry_in) unpack_mask(mask_source(w, op->source[2]), in, w.lanes);
  u32* result = w.engine->temporary[3];
  alignas(64) u32 out[row_lanes] = {};
  const u32 *a = sources[0], *b = sources[1];
  for (unsigned i = 0; i < row_lanes; ++i) {
    const u32 c = carry_in ? in[i] & 1 : 0;
    u32 sum;
    out[i] = F(a[i], b[i], c, sum) ? ~0u : 0u;
    result[i] = sum;
  }
  if (op->modifiers != nullptr && op->modifiers->clamp)
    for (unsigned i = 0; i < w.lanes; ++i)
      if (out[i]) result[i] = F(~0u, 1u, 0u, out[i]) ? ~0u : 0u;  // sums saturate high, differences at zero
  const u64 flags = pack_mask(out, w.lanes);
  store_result(w, op, result, active);
  put_mask(w, op->destination2, flags & active);
  return following(op);
}
constexpr auto add = [](u32 a, u32 b, u32 c, u32& r) {
  const u64 s = u64{a} + b + c;
  r = static_cast<u32>(s);
  return (s >> 32) != 0;
};
constexpr auto subtract = [](u32 a, u32 b, u32 c, u32& r) {
  r = a - b - c;
  return u64{b} + c > a;
};
constexpr auto reverse_subtract = [](u32 a, u32 b, u32 c, u32& r) {
  r = b - a - c;
  return u64{a} + c > b;
};

template <class T>
const Operation* run_divide_scale(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* sources[4];
  u64 active = w.exec();
  sources_of(w, op, sources, active);
  u32* result = w.engine->temporary[3];
  u64 flags = 0;
  for (unsigned i = 0; i < w.lanes; ++i) {
    bool flag = false;
    Lane<T>::store(
        result, i,
        divide_scale(Lane<T>::load(sources[0], i), Lane<T>::load(sources[1], i), Lane<T>::load(sources[2], i), flag));
    flags |= u64{flag} << i;
  }
  store_result(w, op, result, active);
  put_mask(w, op->destination2, flags & active);
  return following(op);
}
template <class T>
const Operation* run_divide_fma(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* sources[4];
  u64 active = w.exec();
  sources_of(w, op, sources, active);
  u32* result = w.engine->temporary[3];
  const u64 flags = w.vcc();
  const ModeScope mode(w, op->instruction->flags);
  for (unsigned i = 0; i < w.lanes; ++i)
    Lane<T>::store(result, i,
                   divide_fma(Lane<T>::load(sources[0], i), Lane<T>::load(sources[1], i), Lane<T>::load(sources[2], i),
                              flags >> i & 1));
  store_result(w, op, result, active);
  return following(op);
}

template <class T>
const Operation* multiply_add_wide(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* sources[4];
  u64 active = w.exec();
  sources_of(w, op, sources, active);
  u32* result = w.engine->temporary[3];
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  using Sum = std::conditional_t<std::is_signed_v<T>, i64, u64>;
  u64 flags = 0;
  for (unsigned i = 0; i < w.lanes; ++i) {
    const Wide sum = static_cast<Wide>(Lane<T>::load(sources[0], i)) * Lane<T>::load(sources[1], i) +
                     static_cast<Wide>(Lane<Sum>::load(sources[2], i));
    Lane<u64>::store(result, i, static_cast<u64>(sum));
    flags |= u64{sum != static_cast<Wide>(static_cast<Sum>(sum))} << i;
  }
  store_result(w, op, result, active);
  put_mask(w, op->destination2, flags & active);
  return following(op);
}

u32 lane_number(const Wave& w, const Operand& o) {
  const u32 number = o.kind == OperandKind::constant ? o.row[0] : read32(w, o);
  return number % w.lanes;
}
// Lane accesses ignore EXEC.
const Operation* read_lane(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* row = plain_source(w, op, 0);
  w.s[op->destination.index] = row[lane_number(w, op->source[1])];
  return following(op);
}
const Operation* read_first_lane(Wave& w, const Operation* op) {
  count_vector(w);
  const u64 exec = w.exec();
  const u32* row = plain_source(w, op, 0);
  w.s[op->destination.index] = row[exec == 0 ? 0 : static_cast<unsigned>(std::countr_zero(exec))];
  return following(op);
}
const Operation* write_lane(Wave& w, const Operation* op) {
  count_vector(w);
  const Operand& value = op->source[0];
  w.row(op->destination.index)[lane_number(w, op->source[1])] =
      value.kind == OperandKind::constant ? value.row[0] : read32(w, value);
  return following(op);
}

template <bool high>
const Operation* count_mask_bits(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* sources[4];
  u64 active = w.exec();
  sources_of(w, op, sources, active);
  u32* result = w.engine->temporary[3];
  for (unsigned i = 0; i < row_lanes; ++i) {
    const u64 below = (u64{1} << i) - 1;
    const u32 mask = static_cast<u32>(high ? below >> 32 : below);
    result[i] = static_cast<u32>(std::popcount(sources[0][i] & mask)) + sources[1][i];
  }
  store_result(w, op, result, active);
  return following(op);
}

const Operation* swap(Wave& w, const Operation* op) {
  count_vector(w);
  u32 *a = w.row(op->destination.index), *b = w.row(op->source[0].index);
  for_lanes(w.exec(), [&](unsigned i) { std::swap(a[i], b[i]); });
  return following(op);
}

// RDNA: v_permlane16 reads lane numbers of 4 bits from a pair of scalars; x16 from the other row of the pair.
template <bool across>
const Operation* permute_lanes(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* row = plain_source(w, op, 0);
  const auto scalar = [&](unsigned k) {
    return op->source[k].kind == OperandKind::constant ? op->source[k].row[0] : read32(w, op->source[k]);
  };
  const u64 selectors = scalar(1) | u64{scalar(2)} << 32, exec = w.exec();
  const Modifiers* m = op->modifiers;
  const bool fetch_inactive = m != nullptr && (m->op_sel & 1), bound_control = m != nullptr && (m->op_sel & 2);
  alignas(64) u32 copy[row_lanes], result[row_lanes] = {};
  std::memcpy(copy, row, sizeof copy);
  u64 written = 0;
  for_lanes(exec, [&](unsigned i) {
    const unsigned from = ((i & ~15u) ^ (across ? 16u : 0u)) | static_cast<unsigned>(selectors >> 4 * (i & 15) & 15);
    if (fetch_inactive || (exec >> from & 1))
      result[i] = copy[from];
    else if (!bound_control)
      return;
    written |= u64{1} << i;
  });
  blend(w, w.row(op->destination.index), result, 1, written);
  return following(op);
}
const Operation* permute_halves(Wave& w, const Operation* op) {
  count_vector(w);
  if (w.lanes == 32) return following(op);  // there is no other half
  const u32* row = plain_source(w, op, 0);
  alignas(64) u32 copy[row_lanes], result[row_lanes];
  std::memcpy(copy, row, sizeof copy);
  for (unsigned i = 0; i < row_lanes; ++i) result[i] = copy[i ^ 32];
  blend(w, w.row(op->destination.index), result, 1, w.exec());
  return following(op);
}

// v_movrel*: register numbers plus m0.
template <bool source, bool destination>
const Operation* move_relative(Wave& w, const Operation* op) {
  count_vector(w);
  const unsigned offset = w.s[reg_m0];
  const unsigned to = op->destination.index + (destination ? offset : 0);
  const u32* from = plain_source(w, op, 0);
  if (source) {
    if (op->source[0].index + offset >= accumulator_base)
      return w.fail(op, DispatchStatus::illegal_instruction, "m0 leads past the vector registers");
    from = w.row(op->source[0].index + offset);
  }
  if (to >= accumulator_base)
    return w.fail(op, DispatchStatus::illegal_instruction, "m0 leads past the vector registers");
  blend(w, w.row(to), from, 1, w.exec());
  return following(op);
}

// v_movrelsd_2, v_swaprel: m0 has an offset for the source in bits 0-9 and one for the destination in bits 16-25.
template <bool exchange>
const Operation* move_relative_both(Wave& w, const Operation* op) {
  count_vector(w);
  const unsigned m0 = w.s[reg_m0];
  const unsigned to = op->destination.index + (m0 >> 16 & 0x3ff), from = op->source[0].index + (m0 & 0x3ff);
  if (op->source[0].kind != OperandKind::vector || to >= accumulator_base || from >= accumulator_base)
    return w.fail(op, DispatchStatus::illegal_instruction, "m0 leads past the vector registers");
  u32 *a = w.row(to), *b = w.row(from);
  if constexpr (exchange)
    for_lanes(w.exec(), [&](unsigned i) { std::swap(a[i], b[i]); });
  else
    blend(w, a, b, 1, w.exec());
  return following(op);
}

// Halves of two registers change places (RDNA3's true 16-bit registers).
const Operation* swap_halves(Wave& w, const Operation* op) {
  count_vector(w);
  const unsigned op_sel = op->modifiers == nullptr ? 0 : op->modifiers->op_sel;
  const unsigned a_shift = op_sel & 8 ? 16 : 0, b_shift = op_sel & 1 ? 16 : 0;
  u32 *a = w.row(op->destination.index), *b = w.row(op->source[0].index);
  for_lanes(w.exec(), [&](unsigned i) {
    const u32 x = a[i] >> a_shift & 0xffffu, y = b[i] >> b_shift & 0xffffu;
    a[i] = (a[i] & ~(0xffffu << a_shift)) | y << a_shift;
    b[i] = (b[i] & ~(0xffffu << b_shift)) | x << b_shift;
  });
  return following(op);
}

// Four masked sums of absolute byte differences, at four byte offsets, each added to a dword of its own.
const Operation* masked_sad_quad(Wave& w, const Operation* op) {
  count_vector(w);
  const u32 *a = plain_source(w, op, 0), *b = plain_source(w, op, 1), *c = plain_source(w, op, 2);
  u32* result = w.engine->temporary[4];
  for (unsigned i = 0; i < w.lanes; ++i) {
    const u64 window = a[i] | u64{a[i + row_lanes]} << 32;
    for (unsigned k = 0; k < 4; ++k) {
      u32 sum = op->source[2].dwords == 4 ? c[i + k * row_lanes] : c[i];
      for (unsigned byte = 0; byte < 4; ++byte) {
        const u32 x = static_cast<u32>(window >> 8 * (k + byte)) & 255, y = b[i] >> 8 * byte & 255;
        if (y != 0) sum += x > y ? x - y : y - x;
      }
      result[i + k * row_lanes] = sum;
    }
  }
  blend(w, w.row(op->destination.index), result, 4, w.exec());
  return following(op);
}

const Operation* nothing(Wave&, const Operation* op) { return following(op); }

}  // namespace

std::span<const Instruction> special_vector_instructions() {
  constexpr Type u = Type::u32_, b = Type::b32_, m = Type::mask, none = Type::none, f = Type::f32_, d = Type::f64_;
  constexpr unsigned f32_mode = instruction_f32_mode, f64_mode = instruction_f64_mode;
  static const auto* table = new std::vector<Instruction>{
      special("v_cndmask_b32", &conditional_mask, {b, none}, {b, b, m, none}),
      special("v_cndmask_b16", &conditional_mask, {Type::u16_, none}, {Type::f16_, Type::f16_, m, none}),
      special("v_add_co_u32", &carry<false, add>, {u, m}, {u, u, none, none}),
      special("v_sub_co_u32", &carry<false, subtract>, {u, m}, {u, u, none, none}),
      special("v_subrev_co_u32", &carry<false, reverse_subtract>, {u, m}, {u, u, none, none}),
      special("v_addc_co_u32", &carry<true, add>, {u, m}, {u, u, m, none}),
      special("v_subb_co_u32", &carry<true, subtract>, {u, m}, {u, u, m, none}),
      special("v_subbrev_co_u32", &carry<true, reverse_subtract>, {u, m}, {u, u, m, none}),
      special("v_div_scale_f32", &run_divide_scale<float>, {f, m}, {f, f, f, none}, f32_mode),
      special("v_div_scale_f64", &run_divide_scale<double>, {d, m}, {d, d, d, none}, f64_mode),
      special("v_div_fmas_f32", &run_divide_fma<float>, {f, none}, {f, f, f, none}, f32_mode),
      special("v_div_fmas_f64", &run_divide_fma<double>, {d, none}, {d, d, d, none}, f64_mode),
      special("v_mad_u64_u32", &multiply_add_wide<u32>, {Type::u64_, m}, {u, u, Type::u64_, none}),
      special("v_mad_i64_i32", &multiply_add_wide<i32>, {Type::i64_, m}, {Type::i32_, Type::i32_, Type::i64_, none}),
      special("v_readlane_b32", &read_lane, {u, none}, {u, u, none, none}),
      special("v_readfirstlane_b32", &read_first_lane, {u, none}, {u, none, none, none}),
      special("v_writelane_b32", &write_lane, {u, none}, {u, u, none, none}),
      special("v_mbcnt_lo_u32_b32", &count_mask_bits<false>, {u, none}, {u, u, none, none}),
      special("v_mbcnt_hi_u32_b32", &count_mask_bits<true>, {u, none}, {u, u, none, none}),
      special("v_swap_b32", &swap, {u, none}, {u, none, none, none}),
      special("v_permlane16_b32", &permute_lanes<false>, {u, none}, {u, u, u, none}),
      special("v_permlanex16_b32", &permute_lanes<true>, {u, none}, {u, u, u, none}),
      special("v_permlane64_b32", &permute_halves, {u, none}, {u, none, none, none}),
      special("v_movreld_b32", &move_relative<false, true>, {u, none}, {u, none, none, none}),
      special("v_movrels_b32", &move_relative<true, false>, {u, none}, {u, none, none, none}),
      special("v_movrelsd_b32", &move_relative<true, true>, {u, none}, {u, none, none, none}),
      special("v_movrelsd_2_b32", &move_relative_both<false>, {u, none}, {u, none, none, none}),
      special("v_swaprel_b32", &move_relative_both<true>, {u, none}, {u, none, none, none}),
      special("v_swap_b16", &swap_halves, {Type::u16_, none}, {Type::u16_, none, none, none},
              instruction_own_modifiers),
      special("v_mqsad_u32_u8", &masked_sad_quad, {Type::wide, none}, {Type::u64_, u, Type::wide, none}),
      special("v_nop", &nothing, {none, none}, {none, none, none, none}),
      special("v_pipeflush", &nothing, {none, none}, {none, none, none, none}),
      special("v_clrexcp", &nothing, {none, none}, {none, none, none, none}),
  };
  return *table;
}

}  // namespace kerncap::softgpu::isa
