#include "softgpu/isa/valu.h"

#include <xmmintrin.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace kerncap::softgpu::isa {

Instruction special(const char* name, Execute execute, std::array<Type, 2> result, std::array<Type, 4> sources,
                    unsigned flags) {
  Instruction row;
  row.name = name;
  row.family = Family::special_valu;
  row.execute = execute;
  row.result = result;
  row.sources = sources;
  row.flags = static_cast<u16>(flags);
  return row;
}

u64 pack_mask(const u32* row, unsigned lanes) {
  u64 mask = 0;
#ifdef __AVX2__
  for (unsigned i = 0; i < lanes; i += 8) {
    const __m256 part = _mm256_castsi256_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(row + i)));
    mask |= u64{static_cast<u32>(_mm256_movemask_ps(part))} << i;
  }
#else
  for (unsigned i = 0; i < lanes; ++i) mask |= u64{row[i] >> 31} << i;
#endif
  return mask;
}

void unpack_mask(u64 mask, u32* row, unsigned lanes) {
  for (unsigned base = 0; base < lanes; base += 32) {
    const u32 part = static_cast<u32>(mask >> base);
    for (unsigned i = 0; i < 32; ++i) row[base + i] = (part & (1u << i)) ? ~0u : 0u;
  }
}

void Wave::fill_mask(u64 mask) {
  unpack_mask(mask, mask_row, lanes);
  mask_key = mask;
}

const u32* spread(const Wave& w, const Operand& o, u32* into) {
  for (unsigned k = 0; k < o.dwords; ++k) {
    const u32 value = o.kind == OperandKind::scalar ? w.s[o.index + k] : (k == 0 ? read32(w, o) : 0);
    u32* row = into + k * row_lanes;
    for (unsigned i = 0; i < row_lanes; ++i) row[i] = value;
  }
  return into;
}

void blend(Wave& w, u32* destination, const u32* result, unsigned dwords, u64 active) {
  alignas(64) u32 other[row_lanes];
  const u32* mask = other;
  if (active == w.exec())
    mask = w.execution_row();
  else
    unpack_mask(active, other, w.lanes);
  for (unsigned k = 0; k < dwords; ++k) {
    for (unsigned part = 0; part < w.lanes; part += part_lanes) {
      u32* d = destination + k * row_lanes + part;
      const u32 *r = result + k * row_lanes + part, *m = mask + part;
#pragma GCC ivdep
      for (unsigned i = 0; i < part_lanes; ++i) d[i] = (r[i] & m[i]) | (d[i] & ~m[i]);
    }
  }
}

namespace {

u32 select_part(u32 value, Select select, bool sign) {
  switch (select) {
    case Select::dword:
      return value;
    case Select::byte_0:
    case Select::byte_1:
    case Select::byte_2:
    case Select::byte_3: {
      const u8 part = static_cast<u8>(value >> 8 * (static_cast<unsigned>(select) - 1));
      return sign ? static_cast<u32>(static_cast<i32>(static_cast<i8>(part))) : part;
    }
    default: {
      const u16 part = static_cast<u16>(select == Select::word_0 ? value : value >> 16);
      return sign ? static_cast<u32>(static_cast<i32>(static_cast<i16>(part))) : part;
    }
  }
}

// Negation and absolute value flip or clear the sign bit of the type.
void apply_sign(u32* rows, Type type, bool absolute, bool negate, unsigned lanes) {
  u32 sign = 0x80000000u;
  if (dwords_of(type) == 2) rows += row_lanes;
  if (type == Type::f16_ || type == Type::u16_ || type == Type::i16_ || type == Type::bf16_) sign = 0x8000u;
  if (type == Type::pk_f16 || type == Type::pk_i16) sign = 0x80008000u;
  for (unsigned i = 0; i < lanes; ++i) {
    if (absolute) rows[i] &= ~sign;
    if (negate) rows[i] ^= sign;
  }
}

void apply_packed(u32* rows, Type type, const Modifiers& m, unsigned k, unsigned lanes) {
  const bool low_from_high = m.op_sel >> k & 1, high_from_high = m.op_sel_hi >> k & 1;
  const bool negate_low = m.neg_lo >> k & 1, negate_high = m.neg_hi >> k & 1;
  if (type == Type::pk_f32) {
    for (unsigned i = 0; i < lanes; ++i) {
      const u32 low = rows[i], high = rows[i + row_lanes];
      rows[i] = (low_from_high ? high : low) ^ (negate_low ? 0x80000000u : 0u);
      rows[i + row_lanes] = (high_from_high ? high : low) ^ (negate_high ? 0x80000000u : 0u);
    }
    return;
  }
  if (type != Type::pk_f16 && type != Type::pk_i16) {  // a whole register, such as a dot product's addend
    if (type == Type::f32_ && negate_low) apply_sign(rows, type, false, true, lanes);
    return;
  }
  for (unsigned i = 0; i < lanes; ++i) {
    const u32 low = rows[i] & 0xffff, high = rows[i] >> 16;
    const u32 a = (low_from_high ? high : low) ^ (negate_low ? 0x8000u : 0u);
    const u32 b = (high_from_high ? high : low) ^ (negate_high ? 0x8000u : 0u);
    rows[i] = a | b << 16;
  }
}

bool is_16_bit(Type type) {
  return type == Type::f16_ || type == Type::u16_ || type == Type::i16_ || type == Type::bf16_;
}

}  // namespace

void modified_sources(Wave& w, const Operation* op, const u32** sources, u64& active) {
  const Modifiers& m = *op->modifiers;
  const bool packed = op->instruction->flags & instruction_packed;
  const u64 exec = w.exec();
  for (unsigned k = 0; k < op->source_count; ++k) {
    const u32* from = plain_source(w, op, k);
    const Type type = op->instruction->sources[k];
    const bool absolute = m.absolute >> k & 1, negate = m.negate >> k & 1;
    const bool high = !packed && m.has_op_sel && is_16_bit(type) && (m.op_sel >> k & 1);
    const bool select = m.sdwa && k < 2 && m.source_select[k] != Select::dword;
    const bool dpp = m.dpp && k == 0;
    if (!absolute && !negate && !high && !select && !dpp && !packed) {
      sources[k] = from;
      continue;
    }
    const unsigned dwords = op->source[k].dwords;
    u32* to = w.engine->temporary[k];
    if (dpp) {
      alignas(64) u32 copy[2 * row_lanes];
      std::memcpy(copy, from, dwords * row_lanes * sizeof(u32));
      for (unsigned i = 0; i < w.lanes; ++i) {
        const int lane = m.lane[i];
        const bool valid = lane >= 0 && (m.dpp_fetch_inactive || (exec >> lane & 1));
        const bool enabled = (m.row_mask >> (i / 16) & 1) && (m.bank_mask >> (i % 16 / 4) & 1);
        if (!enabled || (!valid && !m.bound_control)) active &= ~(u64{1} << i);
        for (unsigned d = 0; d < dwords; ++d)
          to[i + d * row_lanes] = valid ? copy[lane + static_cast<int>(d * row_lanes)] : 0;
      }
    } else if (to != from) {
      std::memcpy(to, from, dwords * row_lanes * sizeof(u32));
    }
    if (select)
      for (unsigned i = 0; i < w.lanes; ++i) to[i] = select_part(to[i], m.source_select[k], m.sign_extend >> k & 1);
    if (high)
      for (unsigned i = 0; i < w.lanes; ++i) to[i] >>= 16;
    if (packed) apply_packed(to, type, m, k, w.lanes);
    if (absolute || negate) apply_sign(to, type, absolute, negate, w.lanes);
    sources[k] = to;
  }
}

namespace {

template <class T>
T scaled_and_clamped(T value, int scale, bool clamp) {
  if (scale) value *= scale == 1 ? T(2) : scale == 2 ? T(4) : T(0.5);
  if (clamp) value = value > T(0) ? (value < T(1) ? value : T(1)) : T(0);  // a NaN becomes 0 (DX10_CLAMP)
  return value;
}

half scaled_and_clamped(half value, int scale, bool clamp) {
  return float_to_half(scaled_and_clamped(half_to_float(value), scale, clamp));
}

void clamp_rows(u32* rows, Type type, int scale, bool clamp, unsigned lanes) {
  for (unsigned i = 0; i < lanes; ++i) switch (type) {
      case Type::f64_:
        Lane<double>::store(rows, i, scaled_and_clamped(Lane<double>::load(rows, i), scale, clamp));
        break;
      case Type::f32_:
      case Type::b32_:
        Lane<float>::store(rows, i, scaled_and_clamped(Lane<float>::load(rows, i), scale, clamp));
        break;
      case Type::f16_:
        Lane<half>::store(rows, i, scaled_and_clamped(Lane<half>::load(rows, i), scale, clamp));
        break;
      case Type::pk_f16: {
        const pair_half p = Lane<pair_half>::load(rows, i);
        Lane<pair_half>::store(rows, i,
                               {scaled_and_clamped(p.low, scale, clamp), scaled_and_clamped(p.high, scale, clamp)});
        break;
      }
      case Type::pk_f32: {
        const pair_float p = Lane<pair_float>::load(rows, i);
        Lane<pair_float>::store(rows, i,
                                {scaled_and_clamped(p.low, scale, clamp), scaled_and_clamped(p.high, scale, clamp)});
        break;
      }
      default:
        break;  // integers: the decoder chose a saturating instruction instead
    }
}

u32 place_part(u32 old, u32 result, Select select, Unused unused) {
  unsigned shift = 0, width = 32;
  switch (select) {
    case Select::dword:
      return result;
    case Select::byte_0:
    case Select::byte_1:
    case Select::byte_2:
    case Select::byte_3:
      shift = 8 * (static_cast<unsigned>(select) - 1);
      width = 8;
      break;
    default:
      shift = select == Select::word_0 ? 0 : 16;
      width = 16;
  }
  const u32 mask = ((1u << width) - 1) << shift;
  const u32 placed = result << shift & mask;
  if (unused == Unused::preserve) return placed | (old & ~mask);
  if (unused == Unused::pad) return placed;
  const bool negative = result >> (width - 1) & 1;
  const u64 above = ~((u64{1} << (shift + width)) - 1);
  return placed | (negative ? static_cast<u32>(above) : 0);
}

}  // namespace

void store_result(Wave& w, const Operation* op, const u32* result, u64 active) {
  u32* destination = w.row(op->destination.index);
  const unsigned dwords = op->destination_dwords;
  const Modifiers* m = op->modifiers;
  const bool keeps = op->flags & flag_preserve_high;
  if (m == nullptr && !keeps) {
    if (active == w.all_lanes)
      std::memcpy(destination, result, dwords * row_lanes * sizeof(u32));
    else
      blend(w, destination, result, dwords, active);
    return;
  }
  alignas(64) u32 changed[2 * row_lanes];
  std::memcpy(changed, result, dwords * row_lanes * sizeof(u32));
  bool to_high = false;
  if (m != nullptr) {
    if (m->clamp || m->output_scale)
      clamp_rows(changed, op->instruction->result[0], m->output_scale, m->clamp, w.lanes);
    if (m->sdwa && m->destination_select != Select::dword)
      for (unsigned i = 0; i < w.lanes; ++i)
        changed[i] = place_part(destination[i], changed[i], m->destination_select, m->unused);
    to_high = m->has_op_sel && !(op->instruction->flags & instruction_packed) &&
              is_16_bit(op->instruction->result[0]) && (m->op_sel >> 3 & 1);
  }
  if (to_high)
    for (unsigned i = 0; i < w.lanes; ++i) changed[i] = (changed[i] << 16) | (destination[i] & 0xffffu);
  else if (keeps)
    for (unsigned i = 0; i < w.lanes; ++i) changed[i] = (changed[i] & 0xffffu) | (destination[i] & 0xffff0000u);
  blend(w, destination, changed, dwords, active);
}

namespace {

// Register indexing (s_set_gpr_idx_on): m0's low byte is added to vector register numbers.
const Operation* run_indexed(Wave& w, const Operation* op) {
  Operation indexed;
  indexed.instruction = op->instruction;
  indexed.rows = op->rows;
  indexed.modifiers = op->modifiers;
  indexed.dwords = op->dwords;
  indexed.destination_dwords = op->destination_dwords;
  indexed.source_count = op->source_count;
  indexed.flags = op->flags;
  indexed.destination = op->destination;
  indexed.source = op->source;
  const unsigned offset = w.s[reg_m0] & 0xffu;
  const auto move = [&](Operand& o, unsigned bit) {
    if ((w.index_mode >> bit & 1) && o.kind == OperandKind::vector)
      o.index = static_cast<u16>((o.index + offset) % max_lane_registers);
  };
  for (unsigned k = 0; k < 3; ++k) move(indexed.source[k], k);
  move(indexed.destination, 3);
  const u8 saved = w.index_mode;
  w.index_mode = 0;
  w.mode_changed();
  run_valu(w, &indexed);
  w.index_mode = saved;
  w.mode_changed();
  return following(op);
}

}  // namespace

namespace {

// Some lanes are off: the result goes through a temporary row.
[[gnu::noinline]] const Operation* run_masked(Wave& w, const Operation* op, const u32* const* sources) {
  const u64 active = w.exec();
  if (active == 0) return following(op);
  u32* result = w.engine->temporary[3];
  op->rows(result, sources, w.lanes);
  blend(w, w.row(op->destination.index), result, op->destination_dwords, active);
  return following(op);
}

// Halves are computed in single precision, where the host flushes nothing of theirs.
void flush_half_denormals(u32* rows, Type type, unsigned lanes) {
  const auto flushed = [](u32 bits) { return (bits & 0x7c00u) == 0 ? bits & 0x8000u : bits & 0xffffu; };
  if (type == Type::f16_)
    for (unsigned i = 0; i < lanes; ++i) rows[i] = (rows[i] & 0xffff0000u) | flushed(rows[i]);
  if (type == Type::pk_f16)
    for (unsigned i = 0; i < lanes; ++i) rows[i] = flushed(rows[i]) | flushed(rows[i] >> 16) << 16;
}
void flush_half_sources(Wave& w, const Operation* op, const u32** sources) {
  for (unsigned k = 0; k < op->source_count && k < 3; ++k) {
    const Type type = op->instruction->sources[k];
    if (type != Type::f16_ && type != Type::pk_f16) continue;
    u32* to = w.engine->temporary[k];
    if (to != sources[k]) std::memcpy(to, sources[k], row_lanes * sizeof(u32));
    flush_half_denormals(to, type, w.lanes);
    sources[k] = to;
  }
}

// Modifiers, a MODE that isn't the default, halves that keep their neighbour.
[[gnu::noinline]] const Operation* run_general(Wave& w, const Operation* op) {
  if (w.index_mode != 0) return run_indexed(w, op);
  const u32* sources[4];
  u64 active = w.exec();
  sources_of(w, op, sources, active);
  if (active == 0) return following(op);
  u32* result = w.engine->temporary[3];
  if (!(w.mode >> 6 & 1)) flush_half_sources(w, op, sources);
  {
    const ModeScope mode(w, op->instruction->flags);
    op->rows(result, sources, w.lanes);
  }
  if (!(w.mode >> 7 & 1)) flush_half_denormals(result, op->instruction->result[0], w.lanes);
  store_result(w, op, result, active);
  return following(op);
}

}  // namespace

const Operation* run_valu(Wave& w, const Operation* op) {
  count_vector(w);
  if (op->modifiers != nullptr || !w.mode_is_default || (op->flags & flag_preserve_high)) [[unlikely]]
    return run_general(w, op);
  const u32* sources[3];
  sources[0] = plain_source(w, op, 0);
  if (op->source_count > 1) sources[1] = plain_source(w, op, 1);
  if (op->source_count > 2) sources[2] = plain_source(w, op, 2);
  if (w.exec() != w.all_lanes) [[unlikely]]
    return run_masked(w, op, sources);
  op->rows(w.row(op->destination.index), sources, w.lanes);
  return following(op);
}

const Operation* run_compare(Wave& w, const Operation* op) {
  count_vector(w);
  const u32* sources[4];
  u64 active = w.exec();
  sources_of(w, op, sources, active);
  u32* result = w.engine->temporary[3];
  if (w.mode_is_default) {
    op->rows(result, sources, w.lanes);
  } else {
    if (!(w.mode >> 6 & 1)) flush_half_sources(w, op, sources);
    const ModeScope mode(w, op->instruction->flags);
    op->rows(result, sources, w.lanes);
  }
  const u64 mask = pack_mask(result, w.lanes) & active;
  if (op->destination.kind == OperandKind::scalar) w.write_mask(op->destination.index, mask);
  if (op->instruction->flags & instruction_writes_exec) w.write_mask(reg_exec, mask);
  return following(op);
}

// MODE (LLVM's AMDGPUUsage, compute_pgm_rsrc1): bits 0-1 round f32, 2-3 round f16/f64, 4-5 denormals of f32, 6-7 of
// f16/f64. Rounding: 0 nearest, 1 +inf, 2 -inf, 3 zero. Denormals: bit 0 keeps sources, bit 1 keeps results.
ModeScope::ModeScope(const Wave& w, unsigned instruction_flags) {
  if (w.mode_is_default || !(instruction_flags & (instruction_f32_mode | instruction_f64_mode))) return;
  const bool wide = instruction_flags & instruction_f64_mode;
  const unsigned rounding = w.mode >> (wide ? 2 : 0) & 3, denormals = w.mode >> (wide ? 6 : 4) & 3;
  constexpr unsigned host_rounding[4] = {_MM_ROUND_NEAREST, _MM_ROUND_UP, _MM_ROUND_DOWN, _MM_ROUND_TOWARD_ZERO};
  constexpr unsigned sources_are_zero = 1u << 6, results_are_zero = 1u << 15;  // MXCSR.DAZ and FTZ
  saved_ = _mm_getcsr();
  unsigned wanted = (saved_ & ~(3u << 13 | sources_are_zero | results_are_zero)) | host_rounding[rounding];
  if (!(denormals & 1)) wanted |= sources_are_zero;
  if (!(denormals & 2)) wanted |= results_are_zero;
  _mm_setcsr(wanted);
  changed_ = true;
}
ModeScope::~ModeScope() {
  if (changed_) _mm_setcsr(saved_);
}

}  // namespace kerncap::softgpu::isa
