// Wave matrix instructions of RDNA3: D = A*B + C, 16x16x16. A's row i and B's column j are whole in lane i and lane j,
// and again in the lane 16 above (RDNA3 manual, "Wave Matrix Multiply Accumulate"); C and D have column j in lane j mod
// 16, register r holds the rows r * (wave size / 16) + lane / 16.
#include <algorithm>
#include <deque>

#include "softgpu/isa/half_math.h"

namespace kerncap::softgpu::isa {
namespace {

enum class Element : u8 { f16, bf16, iu8, iu4 };
enum class Result : u8 { f32, i32_, f16, bf16 };
struct Kind {
  Element input;
  Result result;
};

i64 integer_element(const u32* rows, unsigned lane, unsigned k, unsigned bits, bool is_signed) {
  const unsigned per_dword = 32 / bits;
  const u32 value = rows[k / per_dword * row_lanes + lane] >> bits * (k % per_dword) & ((1u << bits) - 1);
  return is_signed && (value >> (bits - 1)) ? static_cast<i64>(value) - (1 << bits) : value;
}
float float_element(const u32* rows, unsigned lane, unsigned k, Element type, bool negate) {
  const u16 bits = static_cast<u16>(rows[k / 2 * row_lanes + lane] >> 16 * (k % 2));
  const float value = type == Element::f16 ? half_to_float({bits}) : bfloat_to_float({bits});
  return negate ? -value : value;
}

const Operation* wave_matrix(Wave& w, const Operation* op) {
  count_vector(w);
  ++w.engine->counters.matrix;
  const Kind kind = *static_cast<const Kind*>(op->instruction->detail);
  const u32 *a = plain_source(w, op, 0), *b = plain_source(w, op, 1);
  const Operand& addend = op->source[2];
  const bool constant = addend.kind == OperandKind::constant;
  const u32* c = constant ? addend.row : w.row(addend.index);
  const Modifiers* m = op->modifiers;
  const unsigned neg_lo = m ? m->neg_lo : 0, neg_hi = m ? m->neg_hi : 0;
  const bool high = m != nullptr && m->has_op_sel && (m->op_sel & 4), clamp = m != nullptr && m->clamp;
  const unsigned rows_apart = w.lanes / 16u, registers = 16 / rows_apart;
  const bool narrow = kind.result == Result::f16 || kind.result == Result::bf16;
  u32* result = w.engine->temporary[4];
  const u32* before = w.row(op->destination.index);
  for (unsigned r = 0; r < registers; ++r)
    for (unsigned lane = 0; lane < w.lanes; ++lane) {
      const unsigned i = r * rows_apart + lane / 16, j = lane % 16;
      const u32 old = constant ? c[lane] : c[r * row_lanes + lane];
      u32 bits;
      if (kind.result == Result::i32_) {
        // neg_lo says that A (bit 0) or B (bit 1) is signed.
        i64 sum = static_cast<i32>(old);
        const unsigned width = kind.input == Element::iu8 ? 8 : 4;
        for (unsigned k = 0; k < 16; ++k)
          sum += integer_element(a, i, k, width, neg_lo & 1) * integer_element(b, j, k, width, neg_lo & 2);
        if (clamp) sum = std::clamp<i64>(sum, std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max());
        bits = static_cast<u32>(sum);
      } else {
        float sum;
        if (!narrow)
          sum = std::bit_cast<float>(old);
        else if (kind.result == Result::f16)
          sum = half_to_float({static_cast<u16>(high && !constant ? old >> 16 : old)});
        else
          sum = bfloat_to_float({static_cast<u16>(high && !constant ? old >> 16 : old)});
        if (neg_hi & 4) sum = std::fabs(sum);
        if (neg_lo & 4) sum = -sum;
        for (unsigned k = 0; k < 16; ++k) {
          // neg_lo negates the even elements, neg_hi the odd ones.
          const unsigned sign = k % 2 ? neg_hi : neg_lo;
          sum =
              std::fma(float_element(a, i, k, kind.input, sign & 1), float_element(b, j, k, kind.input, sign & 2), sum);
        }
        bits = std::bit_cast<u32>(sum);
        if (narrow) {
          const u32 half_bits = kind.result == Result::f16 ? float_to_half(sum).bits : float_to_bfloat(sum).bits;
          const u32 kept = before[r * row_lanes + lane];
          bits = high ? (kept & 0xffffu) | half_bits << 16 : (kept & 0xffff0000u) | half_bits;
        }
      }
      result[r * row_lanes + lane] = bits;
    }
  for (unsigned r = 0; r < registers; ++r)
    std::memcpy(w.row(op->destination.index + r), result + r * row_lanes, w.lanes * sizeof(u32));
  return following(op);
}

}  // namespace

std::span<const Instruction> wave_matrix_instructions() {
  static const auto* table = [] {
    struct Named {
      const char* name;
      Kind kind;
    };
    static const auto* kinds = new std::deque<Named>{
        {"v_wmma_f32_16x16x16_f16", {Element::f16, Result::f32}},
        {"v_wmma_f32_16x16x16_bf16", {Element::bf16, Result::f32}},
        {"v_wmma_f16_16x16x16_f16", {Element::f16, Result::f16}},
        {"v_wmma_bf16_16x16x16_bf16", {Element::bf16, Result::bf16}},
        {"v_wmma_i32_16x16x16_iu8", {Element::iu8, Result::i32_}},
        {"v_wmma_i32_16x16x16_iu4", {Element::iu4, Result::i32_}},
    };
    auto* made = new std::vector<Instruction>;
    for (const auto& [name, kind] : *kinds) {
      const Type type = kind.result == Result::i32_ ? Type::i32_ : kind.result == Result::f32 ? Type::f32_ : Type::f16_;
      Instruction row = special(name, &wave_matrix, {Type::wide, Type::none},
                                {Type::wide, Type::wide, type, Type::none}, instruction_packed);
      row.family = Family::mfma;
      row.detail = &kind;
      made->push_back(row);
    }
    return made;
  }();
  return *table;
}

}  // namespace kerncap::softgpu::isa
