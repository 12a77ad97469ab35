// Matrix instructions against plain loops, with the register layouts written out once more from the manuals' tables.
#include <gtest/gtest.h>

#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {
namespace {

// A matrix of small integers, which every format represents exactly.
struct Matrix {
  int rows, columns;
  std::vector<int> values;
  Matrix(int r, int c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
  int& at(int i, int j) { return values[static_cast<std::size_t>(i * columns + j)]; }
};

class MatrixInstructions : public VectorCheck {
 protected:
  Matrix random_matrix(int rows, int columns) {
    Matrix made(rows, columns);
    for (int& x : made.values) x = static_cast<int>(random() % 7) - 3;
    return made;
  }
  static u16 half_bits(int x) { return float_to_half(static_cast<float>(x)).bits; }
  static u16 bfloat_bits(int x) { return static_cast<u16>(std::bit_cast<u32>(static_cast<float>(x)) >> 16); }
  void put16(unsigned reg, unsigned lane, unsigned index, u16 bits) {
    u32& word = bench.v(reg + index / 2)[lane];
    word = index % 2 ? (word & 0xffffu) | u32{bits} << 16 : (word & 0xffff0000u) | bits;
  }
};

TEST_P(MatrixInstructions, f32_32x32x2) {
  ++checked;
  if (!bench.target().gfx90a) return;
  Matrix a = random_matrix(32, 2), b = random_matrix(2, 32), c = random_matrix(32, 32);
  // A[i][k] in lane 32k + i, B[k][j] in lane 32k + j; D[i][j] in lane 32 * (i / 4 % 2) + j, register i / 8 * 4 + i % 4.
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < 32; ++i) {
      bench.v(0)[32 * k + i] = std::bit_cast<u32>(static_cast<float>(a.at(i, k)));
      bench.v(1)[32 * k + i] = std::bit_cast<u32>(static_cast<float>(b.at(k, i)));
    }
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j)
      bench.v(16 + i / 8 * 4 + i % 4)[32 * (i / 4 % 2) + j] = std::bit_cast<u32>(static_cast<float>(c.at(i, j)));
  bench.set_exec(1);  // ignored
  ASSERT_TRUE(bench.run("v_mfma_f32_32x32x2f32 v[32:47], v0, v1, v[16:31]"));
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j) {
      const float wanted = static_cast<float>(c.at(i, j) + a.at(i, 0) * b.at(0, j) + a.at(i, 1) * b.at(1, j));
      ASSERT_EQ(std::bit_cast<float>(bench.v(32 + i / 8 * 4 + i % 4)[32 * (i / 4 % 2) + j]), wanted) << i << " " << j;
    }
}

TEST_P(MatrixInstructions, f32_16x16x16_of_halves_into_accumulators) {
  ++checked;
  if (!bench.target().gfx90a) return;
  Matrix a = random_matrix(16, 16), b = random_matrix(16, 16);
  // A[i][k] in lane 16 * (k / 4) + i, element k % 4; D[i][j] in lane 16 * (i / 4) + j, register i % 4.
  for (const bool brain : {false, true}) {
    for (int i = 0; i < 16; ++i)
      for (int k = 0; k < 16; ++k) {
        put16(0, static_cast<unsigned>(16 * (k / 4) + i), static_cast<unsigned>(k % 4),
              brain ? bfloat_bits(a.at(i, k)) : half_bits(a.at(i, k)));
        put16(2, static_cast<unsigned>(16 * (k / 4) + i), static_cast<unsigned>(k % 4),
              brain ? bfloat_bits(b.at(k, i)) : half_bits(b.at(k, i)));
      }
    ASSERT_TRUE(bench.run(brain ? "v_mfma_f32_16x16x16bf16_1k a[0:3], v[0:1], v[2:3], 1.0"
                                : "v_mfma_f32_16x16x16f16 a[0:3], v[0:1], v[2:3], 1.0"));
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 16; ++j) {
        int sum = 1;
        for (int k = 0; k < 16; ++k) sum += a.at(i, k) * b.at(k, j);
        ASSERT_EQ(std::bit_cast<float>(bench.v(accumulator_base + static_cast<unsigned>(i % 4))[16 * (i / 4) + j]),
                  static_cast<float>(sum));
      }
  }
  ASSERT_TRUE(bench.run("v_accvgpr_read_b32 v9, a2"));
  EXPECT_EQ(bench.v(9)[5], bench.v(accumulator_base + 2)[5]);
}

TEST_P(MatrixInstructions, four_by_four_blocks_with_a_broadcast) {
  ++checked;
  if (!bench.target().gfx90a || bench.target().gfx940) return;
  // 16 blocks: lane 4 * block + i; CBSZ 2 and ABID 1: block 1 of each four gives A to all four.
  for (unsigned lane = 0; lane < 64; ++lane) {
    bench.v(0)[lane] = std::bit_cast<u32>(static_cast<float>(lane));
    bench.v(1)[lane] = std::bit_cast<u32>(static_cast<float>(lane % 5));
  }
  ASSERT_TRUE(bench.run("v_mfma_f32_4x4x1f32 v[4:7], v0, v1, 0 cbsz:2 abid:1"));
  for (unsigned block = 0; block < 16; ++block)
    for (unsigned i = 0; i < 4; ++i)
      for (unsigned j = 0; j < 4; ++j) {
        const unsigned source = block / 4 * 4 + 1;
        EXPECT_EQ(std::bit_cast<float>(bench.v(4 + i)[4 * block + j]),
                  static_cast<float>((4 * source + i) * ((4 * block + j) % 5)));
      }
}

TEST_P(MatrixInstructions, i8_and_f64) {
  ++checked;
  if (!bench.target().gfx90a) return;
  Matrix a = random_matrix(16, 4), b = random_matrix(4, 16);
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 4; ++k) {
      Lane<double>::store(bench.v(0), static_cast<unsigned>(16 * k + i), a.at(i, k));
      Lane<double>::store(bench.v(2), static_cast<unsigned>(16 * k + i), b.at(k, i));
    }
  ASSERT_TRUE(bench.run("v_mfma_f64_16x16x4f64 v[8:15], v[0:1], v[2:3], 0"));
  // D[i][j] in lane 16 * (i % 4) + j, register pair i / 4.
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      int sum = 0;
      for (int k = 0; k < 4; ++k) sum += a.at(i, k) * b.at(k, j);
      ASSERT_EQ(
          Lane<double>::load(bench.v(8 + 2 * static_cast<unsigned>(i / 4)), static_cast<unsigned>(16 * (i % 4) + j)),
          sum);
    }
  if (bench.target().gfx940) return;
  Matrix c = random_matrix(32, 8), d = random_matrix(8, 32);
  // A[i][k] in lane 32 * (k / 4) + i, byte k % 4.
  for (int i = 0; i < 32; ++i)
    for (int half_k = 0; half_k < 2; ++half_k) {
      u32 x = 0, y = 0;
      for (int k = 0; k < 4; ++k) {
        x |= (static_cast<u32>(c.at(i, 4 * half_k + k)) & 255) << 8 * k;
        y |= (static_cast<u32>(d.at(4 * half_k + k, i)) & 255) << 8 * k;
      }
      bench.v(0)[32 * half_k + i] = x;
      bench.v(1)[32 * half_k + i] = y;
    }
  ASSERT_TRUE(bench.run("v_mfma_i32_32x32x8i8 a[0:15], v0, v1, 0"));
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j) {
      int sum = 0;
      for (int k = 0; k < 8; ++k) sum += c.at(i, k) * d.at(k, j);
      ASSERT_EQ(
          static_cast<i32>(bench.v(accumulator_base + static_cast<unsigned>(i / 8 * 4 + i % 4))[32 * (i / 4 % 2) + j]),
          sum);
    }
}

TEST_P(MatrixInstructions, wave_matrix_of_rdna3) {
  ++checked;
  if (bench.target().major < 11) return;
  Matrix a = random_matrix(16, 16), b = random_matrix(16, 16);
  for (unsigned lane = 0; lane < bench.lanes(); ++lane)
    for (unsigned k = 0; k < 16; ++k) {
      put16(0, lane, k, half_bits(a.at(static_cast<int>(lane % 16), static_cast<int>(k))));
      put16(8, lane, k, half_bits(b.at(static_cast<int>(k), static_cast<int>(lane % 16))));
    }
  const unsigned registers = GetParam().wave32 ? 8 : 4, groups = GetParam().wave32 ? 2 : 4;
  ASSERT_TRUE(bench.run(fmt::format("v_wmma_f32_16x16x16_f16 v[16:{}], v[0:7], v[8:15], 2.0", 15 + registers)));
  for (unsigned r = 0; r < registers; ++r)
    for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
      int sum = 2;
      for (int k = 0; k < 16; ++k)
        sum += a.at(static_cast<int>(r * groups + lane / 16), k) * b.at(k, static_cast<int>(lane % 16));
      ASSERT_EQ(std::bit_cast<float>(bench.v(16 + r)[lane]), static_cast<float>(sum)) << r << " " << lane;
    }
}

TEST_P(MatrixInstructions, dual_issue_reads_both_halves_before_it_writes) {
  ++checked;
  if (bench.target().major < 11 || !GetParam().wave32) return;
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    bench.v(0)[i] = std::bit_cast<u32>(2.0f), bench.v(1)[i] = std::bit_cast<u32>(static_cast<float>(i));
    bench.v(2)[i] = std::bit_cast<u32>(3.0f), bench.v(3)[i] = std::bit_cast<u32>(10.0f);
  }
  ASSERT_TRUE(bench.run("v_dual_mul_f32 v0, v0, v2 :: v_dual_add_f32 v1, v1, v3"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    EXPECT_EQ(std::bit_cast<float>(bench.v(0)[i]), 6.0f);
    EXPECT_EQ(std::bit_cast<float>(bench.v(1)[i]), static_cast<float>(i) + 10.0f);
  }
  ASSERT_TRUE(bench.run("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0"));
  for (unsigned i = 0; i < bench.lanes(); ++i) {
    EXPECT_EQ(std::bit_cast<float>(bench.v(0)[i]), static_cast<float>(i) + 10.0f);
    EXPECT_EQ(std::bit_cast<float>(bench.v(1)[i]), 6.0f);
  }
  bench.s(reg_vcc) = 0x0f0f0f0f;
  ASSERT_TRUE(bench.run("v_dual_cndmask_b32 v4, v0, v1 :: v_dual_fmac_f32 v3, v2, v4"));
  for (unsigned i = 0; i < bench.lanes(); ++i) EXPECT_EQ(bench.v(4)[i], bench.v(0x0f0f0f0f >> i & 1 ? 1 : 0)[i]);
}

KERNCAP_FOR_ALL_TARGETS(MatrixInstructions);

}  // namespace
}  // namespace kerncap::softgpu::isa
