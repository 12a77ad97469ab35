// Sparse matrix instructions of CDNA3: D += A*B, where of each four numbers of A along k only two are there. Src2 says
// for each pair which two they are: two bits for each (V_SMFMAC in the CDNA3 manual; layouts as AMD's matrix
// instruction calculator prints them).
#include <deque>

#include "softgpu/isa/matrix_elements.h"

namespace kerncap::softgpu::isa {
namespace {

struct SparseShape {
  u8 size, k;  // M and N, K
  Element a, b;
};

const Operation* sparse_matrix(Wave& w, const Operation* op) {
  count_vector(w);
  ++w.engine->counters.matrix;
  const SparseShape& shape = *static_cast<const SparseShape*>(op->instruction->detail);
  const u32 *a = plain_source(w, op, 0), *b = plain_source(w, op, 1), *index = plain_source(w, op, 2);
  const Modifiers* m = op->modifiers;
  const unsigned size = shape.size,
                 in_lane = shape.k * size / 64u;  // k values that a lane of A and B stands for
  // A lane has 8 or 16 bits of indices. CBSZ 0: ABID chooses among those in the register; else the first are meant.
  const unsigned index_bits = in_lane, sets = 32 / index_bits;
  const unsigned set = m != nullptr && m->cbsz == 0 ? m->abid % sets : 0;
  const bool integer = shape.a == Element::int8;
  u32* d = w.row(op->destination.index);
  u32* result = w.engine->temporary[4];
  for (unsigned i = 0; i < size; ++i)
    for (unsigned j = 0; j < size; ++j) {
      const unsigned groups = 64 / size, lane = i / 4 % groups * size + j, reg = i / 4 / groups * 4 + i % 4;
      float sum = std::bit_cast<float>(d[reg * row_lanes + lane]);
      i64 whole = static_cast<i32>(d[reg * row_lanes + lane]);
      for (unsigned kept = 0; kept < shape.k / 2u; ++kept) {
        const unsigned group = kept / (in_lane / 2), within = kept % (in_lane / 2);
        const unsigned a_lane = group * size + i, b_lane = group * size + j;
        const u32 choice = index[a_lane] >> (set * index_bits + 2 * within) & 3;
        const double x = matrix_element(a, a_lane, within, shape.a),
                     y = matrix_element(b, b_lane, within / 2 * 4 + choice, shape.b);
        if (integer)
          whole += static_cast<i64>(x) * static_cast<i64>(y);
        else
          sum = std::fma(static_cast<float>(x), static_cast<float>(y), sum);
      }
      result[reg * row_lanes + lane] = integer ? static_cast<u32>(whole) : std::bit_cast<u32>(sum);
    }
  std::memcpy(d, result,
              size * size / 64u * row_lanes * sizeof(u32));  // EXEC is ignored
  return following(op);
}

}  // namespace

std::span<const Instruction> sparse_matrix_instructions() {
  static const auto* table = [] {
    struct Named {
      const char* name;
      SparseShape shape;
    };
    using enum Element;
    static const auto* shapes = new std::deque<Named>{
        {"v_smfmac_f32_16x16x32_f16", {16, 32, f16, f16}},     {"v_smfmac_f32_32x32x16_f16", {32, 16, f16, f16}},
        {"v_smfmac_f32_16x16x32_bf16", {16, 32, bf16, bf16}},  {"v_smfmac_f32_32x32x16_bf16", {32, 16, bf16, bf16}},
        {"v_smfmac_i32_16x16x64_i8", {16, 64, int8, int8}},    {"v_smfmac_i32_32x32x32_i8", {32, 32, int8, int8}},
        {"v_smfmac_f32_16x16x64_bf8_bf8", {16, 64, bf8, bf8}}, {"v_smfmac_f32_16x16x64_bf8_fp8", {16, 64, bf8, fp8}},
        {"v_smfmac_f32_16x16x64_fp8_bf8", {16, 64, fp8, bf8}}, {"v_smfmac_f32_16x16x64_fp8_fp8", {16, 64, fp8, fp8}},
        {"v_smfmac_f32_32x32x32_bf8_bf8", {32, 32, bf8, bf8}}, {"v_smfmac_f32_32x32x32_bf8_fp8", {32, 32, bf8, fp8}},
        {"v_smfmac_f32_32x32x32_fp8_bf8", {32, 32, fp8, bf8}}, {"v_smfmac_f32_32x32x32_fp8_fp8", {32, 32, fp8, fp8}},
    };
    auto* made = new std::vector<Instruction>;
    for (const auto& [name, shape] : *shapes) {
      Instruction row =
          special(name, &sparse_matrix, {Type::wide, Type::none}, {Type::wide, Type::wide, Type::u32_, Type::none});
      row.family = Family::mfma;
      row.detail = &shape;
      made->push_back(row);
    }
    return made;
  }();
  return *table;
}

}  // namespace kerncap::softgpu::isa
