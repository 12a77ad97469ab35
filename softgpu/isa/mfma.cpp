// Matrix instructions of CDNA: D = A*B + C on whole waves, in `blocks` independent products of M x N x K.
//
// Layouts (AMD's matrix instruction calculator and LLVM's tests agree): lane numbers A's row i (or B's column j) and
// the k-group; a result register holds rows in groups of 4 (f64: one row for each register, blocks of 4 lanes groups).
#include <algorithm>
#include <deque>

#include "softgpu/isa/matrix_elements.h"

namespace kerncap::softgpu::isa {
namespace {

struct Shape {
  u8 m, n, k, blocks;  // of one block
  Element input;       // of A
  u8 per_lane;         // consecutive k values in a lane's A and B registers
  Element other;       // of B: differs for the mixed 8-bit formats only
};

// BLGP rearranges the lanes that B is read from (for f64 it negates A, B, C instead).
unsigned permuted_lane(unsigned lane, unsigned blgp) {
  switch (blgp) {
    case 1:
      return lane & 31;  // first 32 lanes to all
    case 2:
      return (lane & 31) | 32;  // second 32 lanes to all
    case 3:
      return (lane + 16) & 63;  // rotated by 16
    case 4:
      return lane & 15;  // one group of 16 to all
    case 5:
      return (lane & 15) | 16;
    case 6:
      return (lane & 15) | 32;
    case 7:
      return (lane & 15) | 48;
    default:
      return lane;
  }
}

const Operation* matrix(Wave& w, const Operation* op) {
  count_vector(w);
  ++w.engine->counters.matrix;
  const Shape& shape = *static_cast<const Shape*>(op->instruction->detail);
  const u32 *a = plain_source(w, op, 0), *b = plain_source(w, op, 1);
  const Operand& addend = op->source[2];
  const bool constant = addend.kind == OperandKind::constant;
  const u32* c = constant ? addend.row : w.row(addend.index);
  const Modifiers* m = op->modifiers;
  const unsigned cbsz = m ? m->cbsz : 0, abid = m ? m->abid : 0, blgp = m ? m->blgp : 0;
  const bool wide = shape.input == Element::f64, integer = shape.input == Element::int8;
  const unsigned groups_k = shape.k / shape.per_lane;  // lane groups along k
  const unsigned dwords = wide ? 2 : 1;
  const unsigned results = shape.m * shape.n * shape.blocks / 64u;  // values per lane
  u32* result = w.engine->temporary[4];
  for (unsigned block = 0; block < shape.blocks; ++block) {
    // CBSZ broadcasts A's block number ABID within groups of 2^CBSZ blocks.
    const unsigned a_block = cbsz && !wide ? ((block >> cbsz) << cbsz) + (abid & ((1u << cbsz) - 1)) : block;
    for (unsigned i = 0; i < shape.m; ++i)
      for (unsigned j = 0; j < shape.n; ++j) {
        // Where D[i][j] of this block is: lane and register.
        unsigned lane, index;
        if (wide) {
          // f64: 16x16x4 has rows i = 4*register + lane/16; 4x4x4 has a block for each group of 16 lanes.
          lane = shape.m == 16 ? (i % 4) * 16 + j : i * 16 + block * 4 + j;
          index = shape.m == 16 ? i / 4 : 0;
        } else {
          const unsigned column_groups = 64u / shape.n;  // lane groups over rows, or over blocks
          const unsigned row_groups = std::min<unsigned>(column_groups, std::max<unsigned>(shape.m / 4u, 1));
          const unsigned group = i / 4 % row_groups;
          const unsigned blocks_in_lanes = column_groups / row_groups;
          lane = (block % blocks_in_lanes * row_groups + group) * shape.n + j;
          index = block / blocks_in_lanes * (shape.m * 4u / (4 * row_groups)) + i / 4 / row_groups * 4 + i % 4;
        }
        double sum = 0;
        float single = 0;
        i64 whole = 0;
        const u32* from = constant ? c : c + index * dwords * row_lanes;
        if (wide) {
          sum = constant ? std::bit_cast<double>(c[0] | u64{c[row_lanes]} << 32) : Lane<double>::load(from, lane);
          if (blgp & 4) sum = -sum;
        } else if (integer) {
          whole = static_cast<i32>(from[lane]);
        } else {
          single = std::bit_cast<float>(from[lane]);
        }
        for (unsigned k = 0; k < shape.k; ++k) {
          const unsigned group = k / shape.per_lane, within = k % shape.per_lane;
          unsigned a_lane, b_lane;
          if (wide && shape.m == 4) {
            a_lane = group * 16 + a_block * 4 + i;
            b_lane = group * 16 + block * 4 + j;
          } else {
            a_lane = (a_block * groups_k + group) * shape.m + i;
            b_lane = (block * groups_k + group) * shape.n + j;
          }
          if (!wide) b_lane = permuted_lane(b_lane, blgp);
          double x = matrix_element(a, a_lane, within, shape.input), y = matrix_element(b, b_lane, within, shape.other);
          if (wide) {
            if (blgp & 1) x = -x;
            if (blgp & 2) y = -y;
            sum = std::fma(x, y, sum);
          } else if (integer) {
            whole += static_cast<i64>(x) * static_cast<i64>(y);
          } else {
            single = std::fma(static_cast<float>(x), static_cast<float>(y), single);
          }
        }
        if (wide)
          Lane<double>::store(result + index * 2 * row_lanes, lane, sum);
        else
          result[index * row_lanes + lane] = integer ? static_cast<u32>(whole) : std::bit_cast<u32>(single);
      }
  }
  // Matrix instructions ignore EXEC.
  std::memcpy(w.row(op->destination.index), result, results * dwords * row_lanes * sizeof(u32));
  return following(op);
}

}  // namespace

std::span<const Instruction> matrix_instructions() {
  static const auto* table = [] {
    struct Named {
      const char* name;
      Shape shape;
    };
    using enum Element;
    static const auto* shapes = new std::deque<Named>{
        {"v_mfma_f32_32x32x1f32", {32, 32, 1, 2, f32, 1, f32}},
        {"v_mfma_f32_16x16x1f32", {16, 16, 1, 4, f32, 1, f32}},
        {"v_mfma_f32_4x4x1f32", {4, 4, 1, 16, f32, 1, f32}},
        {"v_mfma_f32_32x32x2f32", {32, 32, 2, 1, f32, 1, f32}},
        {"v_mfma_f32_16x16x4f32", {16, 16, 4, 1, f32, 1, f32}},
        {"v_mfma_f32_32x32x4f16", {32, 32, 4, 2, f16, 4, f16}},
        {"v_mfma_f32_16x16x4f16", {16, 16, 4, 4, f16, 4, f16}},
        {"v_mfma_f32_4x4x4f16", {4, 4, 4, 16, f16, 4, f16}},
        {"v_mfma_f32_32x32x8f16", {32, 32, 8, 1, f16, 4, f16}},
        {"v_mfma_f32_16x16x16f16", {16, 16, 16, 1, f16, 4, f16}},
        {"v_mfma_i32_32x32x4i8", {32, 32, 4, 2, int8, 4, int8}},
        {"v_mfma_i32_16x16x4i8", {16, 16, 4, 4, int8, 4, int8}},
        {"v_mfma_i32_4x4x4i8", {4, 4, 4, 16, int8, 4, int8}},
        {"v_mfma_i32_32x32x8i8", {32, 32, 8, 1, int8, 4, int8}},
        {"v_mfma_i32_16x16x16i8", {16, 16, 16, 1, int8, 4, int8}},
        {"v_mfma_f32_32x32x2bf16", {32, 32, 2, 2, bf16, 2, bf16}},
        {"v_mfma_f32_16x16x2bf16", {16, 16, 2, 4, bf16, 2, bf16}},
        {"v_mfma_f32_4x4x2bf16", {4, 4, 2, 16, bf16, 2, bf16}},
        {"v_mfma_f32_32x32x4bf16", {32, 32, 4, 1, bf16, 2, bf16}},
        {"v_mfma_f32_16x16x8bf16", {16, 16, 8, 1, bf16, 2, bf16}},
        {"v_mfma_f32_32x32x4bf16_1k", {32, 32, 4, 2, bf16, 4, bf16}},
        {"v_mfma_f32_16x16x4bf16_1k", {16, 16, 4, 4, bf16, 4, bf16}},
        {"v_mfma_f32_4x4x4bf16_1k", {4, 4, 4, 16, bf16, 4, bf16}},
        {"v_mfma_f32_32x32x8bf16_1k", {32, 32, 8, 1, bf16, 4, bf16}},
        {"v_mfma_f32_16x16x16bf16_1k", {16, 16, 16, 1, bf16, 4, bf16}},
        {"v_mfma_f64_16x16x4f64", {16, 16, 4, 1, f64, 1, f64}},
        {"v_mfma_i32_16x16x32_i8", {16, 16, 32, 1, int8, 8, int8}},
        {"v_mfma_i32_32x32x16_i8", {32, 32, 16, 1, int8, 8, int8}},
        {"v_mfma_f32_16x16x32_fp8_fp8", {16, 16, 32, 1, fp8, 8, fp8}},
        {"v_mfma_f32_16x16x32_fp8_bf8", {16, 16, 32, 1, fp8, 8, bf8}},
        {"v_mfma_f32_16x16x32_bf8_fp8", {16, 16, 32, 1, bf8, 8, fp8}},
        {"v_mfma_f32_16x16x32_bf8_bf8", {16, 16, 32, 1, bf8, 8, bf8}},
        {"v_mfma_f32_32x32x16_fp8_fp8", {32, 32, 16, 1, fp8, 8, fp8}},
        {"v_mfma_f32_32x32x16_fp8_bf8", {32, 32, 16, 1, fp8, 8, bf8}},
        {"v_mfma_f32_32x32x16_bf8_fp8", {32, 32, 16, 1, bf8, 8, fp8}},
        {"v_mfma_f32_32x32x16_bf8_bf8", {32, 32, 16, 1, bf8, 8, bf8}},
        {"v_mfma_f32_16x16x8_xf32", {16, 16, 8, 1, xf32, 2, xf32}},
        {"v_mfma_f32_32x32x4_xf32", {32, 32, 4, 1, xf32, 2, xf32}},
        {"v_mfma_f64_4x4x4f64", {4, 4, 4, 4, f64, 1, f64}},
    };
    auto* made = new std::vector<Instruction>;
    for (const auto& [name, shape] : *shapes) {
      const Type type = shape.input == f64 ? Type::f64_ : shape.input == int8 ? Type::i32_ : Type::f32_;
      Instruction row = special(name, &matrix, {Type::wide, Type::none}, {Type::wide, Type::wide, type, Type::none});
      row.family = Family::mfma;
      row.detail = &shape;
      made->push_back(row);
    }
    return made;
  }();
  return *table;
}

}  // namespace kerncap::softgpu::isa
