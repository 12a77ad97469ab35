// Every matrix instruction against plain loops over matrices, which are laid out in registers as AMD's calculator says
// (matrix_layouts.inc), not as this library thinks.
#include <gtest/gtest.h>

#include "softgpu/isa/vector_check.h"

namespace kerncap::softgpu::isa {
namespace {

struct LayoutRow {
  const char* processor;
  unsigned lanes;
  const char *name, *a, *b, *d, *indices;
};
constexpr LayoutRow layouts[] = {
#include "softgpu/isa/matrix_layouts.inc"
};

struct Place {
  unsigned lane = 0, bit = 0;
};
// Three lists of bits: where each bit of row, column and block goes.
class Layout {
 public:
  Layout(const std::string& text, std::array<unsigned, 3> first_bits) : first_(first_bits) {
    std::size_t list = 0;
    for (const char c : text)
      if (c == ',')
        ++list;
      else
        targets_[list].push_back(c >= 'a' ? Place{1u << (c - 'a'), 0} : Place{0, 1u << (c - '0')});
  }
  unsigned size(unsigned axis) const { return first_[axis] << targets_[axis].size(); }
  Place operator()(unsigned row, unsigned column, unsigned block) const {
    Place sum;
    const std::array<unsigned, 3> index{row, column, block};
    for (unsigned axis = 0; axis < 3; ++axis)
      for (unsigned k = 0; k < targets_[axis].size(); ++k)
        if (index[axis] / first_[axis] >> k & 1) {
          sum.lane += targets_[axis][k].lane;
          sum.bit += targets_[axis][k].bit;
        }
    return sum;
  }

 private:
  std::array<unsigned, 3> first_;
  std::array<std::vector<Place>, 3> targets_;
};

enum class Kind { f64, f32, f16, bf16, integer8, integer4, integer32, fp8, bf8 };
unsigned bits_of(Kind kind) {
  switch (kind) {
    case Kind::f64:
      return 64;
    case Kind::f32:
    case Kind::integer32:
      return 32;
    case Kind::f16:
    case Kind::bf16:
      return 16;
    case Kind::integer4:
      return 4;
    default:
      return 8;
  }
}
// A small whole number in the format; the 8-bit floats' numbers are from CDNA3's tables.
u64 encode(Kind kind, int x) {
  const float f = static_cast<float>(x);
  const auto small = [x](u64 one, u64 two, u64 three) {
    const u64 magnitude[] = {0, one, two, three};
    return magnitude[std::abs(x)] | (x < 0 ? 0x80u : 0u);
  };
  switch (kind) {
    case Kind::f64:
      return std::bit_cast<u64>(static_cast<double>(x));
    case Kind::f32:
      return std::bit_cast<u32>(f);
    case Kind::f16:
      return float_to_half(f).bits;
    case Kind::bf16:
      return std::bit_cast<u32>(f) >> 16;
    case Kind::fp8:
      return small(0x40, 0x48, 0x4c);
    case Kind::bf8:
      return small(0x40, 0x44, 0x46);
    case Kind::integer4:
      return static_cast<u64>(x) & 15;
    case Kind::integer8:
      return static_cast<u64>(x) & 255;
    default:
      return static_cast<u32>(x);
  }
}

class MatrixProof : public VectorCheck {
 protected:
  static constexpr unsigned a_register = 0, b_register = 32, index_register = 60, c_register = 64, d_register = 96;

  void put(unsigned first, Place place, unsigned bits, u64 value) {
    for (unsigned done = 0; done < bits; done += 32) {
      const unsigned bit = place.bit + done, width = std::min(bits, 32u);
      u32& word = bench.v(first + bit / 32)[place.lane];
      const u32 mask = width == 32 ? ~0u : ((1u << width) - 1) << bit % 32;
      word = (word & ~mask) | (static_cast<u32>(value >> done) << bit % 32 & mask);
    }
  }
  u64 get(unsigned first, Place place, unsigned bits) {
    const u64 low = bench.v(first + place.bit / 32)[place.lane];
    if (bits == 64) return low | u64{bench.v(first + place.bit / 32 + 1)[place.lane]} << 32;
    return bits == 32 ? low : low >> place.bit % 32 & ((1u << bits) - 1);
  }
  static std::string registers(unsigned first, const Layout& layout, unsigned bits) {
    unsigned last = 0;
    for (unsigned axis = 0; axis < 3; ++axis) {
      std::array<unsigned, 3> index{};
      index[axis] = layout.size(axis) - 1;
      last += layout(index[0], index[1], index[2]).bit;
    }
    const unsigned count = (last + std::max(bits, 1u) + 31) / 32;
    return count == 1 ? fmt::format("v{}", first) : fmt::format("v[{}:{}]", first, first + count - 1);
  }

  void verify(const LayoutRow& row) {
    const std::string name = row.name;
    const bool sparse = name.find("smfmac") != std::string::npos, wave_matrix = name.find("wmma") != std::string::npos;
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    Kind a_kind = Kind::f32, b_kind, d_kind = Kind::f32;
    if (has("fp8") || has("bf8")) {
      a_kind = name[name.size() - 7] == 'f' ? Kind::fp8 : Kind::bf8;  // ..._fp8_bf8
      b_kind = name.ends_with("fp8") ? Kind::fp8 : Kind::bf8;
    } else {
      const std::string input = name.substr(name.rfind('x'));
      if (input.find("bf16") != std::string::npos)
        a_kind = Kind::bf16;
      else if (input.find("f16") != std::string::npos)
        a_kind = Kind::f16;
      else if (input.find("f64") != std::string::npos)
        a_kind = Kind::f64;
      else if (input.find("iu4") != std::string::npos)
        a_kind = Kind::integer4;
      else if (input.find("i8") != std::string::npos || input.find("iu8") != std::string::npos)
        a_kind = Kind::integer8;
      b_kind = a_kind;
    }
    if (has("mfma_i32") || has("smfmac_i32") || has("wmma_i32")) d_kind = Kind::integer32;
    if (has("mfma_f64")) d_kind = Kind::f64;
    if (has("wmma_f16")) d_kind = Kind::f16;
    if (has("wmma_bf16")) d_kind = Kind::bf16;
    const unsigned a_bits = bits_of(a_kind), b_bits = bits_of(b_kind), d_bits = bits_of(d_kind);
    const Layout a(row.a, {1, sparse ? 4u : 1u, 1}), b(row.b, {1, 1, 1}), d(row.d, {1, 1, 1});
    const unsigned m = a.size(0), k_count = a.size(1), blocks = std::max(a.size(2), 1u), n = b.size(1);
    const auto small = [&] { return static_cast<int>(random() % 7) - 3; };
    const auto index = [](unsigned block, unsigned row_, unsigned column) { return (block * 64 + row_) * 64 + column; };
    std::vector<int> A(16 * 4096), B(16 * 4096), C(16 * 4096);
    for (unsigned r = 0; r < 160; ++r)
      for (unsigned lane = 0; lane < row_lanes; ++lane) bench.v(r)[lane] = 0xdeadbeef;
    const Layout indices(sparse ? row.indices : "", {1, 4, 1});
    for (unsigned block = 0; block < blocks; ++block) {
      for (unsigned i = 0; i < m; ++i)
        for (unsigned k = 0; k < k_count; k += sparse ? 4 : 1) {
          if (!sparse) {
            const int x = A[index(block, i, k)] = small();
            Place place = a(i, k, block);
            for (unsigned copy = 0; copy < (wave_matrix ? row.lanes : 16u); copy += 16)
              put(a_register, {place.lane + copy, place.bit}, a_bits, encode(a_kind, x));
            continue;
          }
          const unsigned first = static_cast<unsigned>(random() % 3),
                         second = first + 1 + static_cast<unsigned>(random() % (3 - first));
          put(index_register, indices(i, k, 0), 4, first | second << 2);
          const Place place = a(i, k, block);
          for (const unsigned kept : {0u, 1u}) {
            const int x = A[index(block, i, k + (kept ? second : first))] = small();
            put(a_register, {place.lane, place.bit + kept * a_bits}, a_bits, encode(a_kind, x));
          }
        }
      for (unsigned k = 0; k < k_count; ++k)
        for (unsigned j = 0; j < n; ++j) {
          const int x = B[index(block, k, j)] = small();
          const Place place = b(k, j, block);
          for (unsigned copy = 0; copy < (wave_matrix ? row.lanes : 16u); copy += 16)
            put(b_register, {place.lane + copy, place.bit}, b_bits, encode(b_kind, x));
        }
      for (unsigned i = 0; i < m; ++i)
        for (unsigned j = 0; j < n; ++j)
          put(sparse ? d_register : c_register, d(i, j, block), d_bits,
              encode(d_kind, C[index(block, i, j)] = small()));
    }
    std::string text = name + " " + registers(d_register, d, d_bits) + ", " +
                       registers(a_register, a, sparse ? 2 * a_bits : a_bits) + ", " +
                       registers(b_register, b, b_bits) + ", " +
                       (sparse ? fmt::format("v{}", index_register) : registers(c_register, d, d_bits));
    if (name.find("_iu") != std::string::npos) text += " neg_lo:[1,1,0]";
    bench.set_exec(wave_matrix ? bench.wave().all_lanes : 1);  // MFMA ignores it
    ASSERT_TRUE(bench.run(text)) << text;
    ASSERT_FALSE(bench.failed()) << bench.error().message;
    ++checked;
    for (unsigned block = 0; block < blocks; ++block)
      for (unsigned i = 0; i < m; ++i)
        for (unsigned j = 0; j < n; ++j) {
          int sum = C[index(block, i, j)];
          for (unsigned k = 0; k < k_count; ++k) sum += A[index(block, i, k)] * B[index(block, k, j)];
          ASSERT_EQ(get(d_register, d(i, j, block), d_bits), encode_wide(d_kind, sum))
              << text << " block " << block << " row " << i << " column " << j;
        }
  }
  static u64 encode_wide(Kind kind, int x) { return encode(kind, x); }
};

TEST_P(MatrixProof, elements_are_where_the_calculator_says) {
  for (const LayoutRow& row : layouts)
    if (bench.target().processor == row.processor && bench.lanes() == row.lanes) verify(row);
  // The older spellings, which CDNA3's assembler knows as well, are the same instructions.
  if (bench.target().gfx940)
    for (LayoutRow row : layouts)
      if (std::string(row.processor) == "gfx90a") {
        const std::string name = row.name;
        if (name.find("32x32x8i8") != std::string::npos || name.find("16x16x16i8") != std::string::npos) continue;
        if (assemble("gfx942", false, name + " v[96:127], v0, v32, v[64:95]")) verify(row);
      }
  if (bench.target().major == 10) ++checked;  // RDNA2 has none
}

TEST_P(MatrixProof, xf32_has_ten_bits_of_mantissa) {
  ++checked;
  if (!bench.target().gfx940) return;
  for (unsigned r = 0; r < 128; ++r) std::fill(bench.v(r), bench.v(r) + row_lanes, 0u);
  // Row 0 of A and column 0 of B: one product.
  bench.v(0)[0] = std::bit_cast<u32>(1.0f + 0x1p-10f + 0x1p-12f);  // rounds down to 1 + 2^-10
  bench.v(32)[0] = std::bit_cast<u32>(2.0f);
  ASSERT_TRUE(bench.run("v_mfma_f32_16x16x8_xf32 v[96:99], v[0:1], v[32:33], 0"));
  EXPECT_EQ(std::bit_cast<float>(bench.v(96)[0]), 2.0f * (1.0f + 0x1p-10f));
}

TEST_P(MatrixProof, sparse_indices_are_chosen_by_abid) {
  ++checked;
  if (!bench.target().gfx940) return;
  // A row of ones, B's column j has k in row k: the sum tells which rows were taken.
  for (unsigned r = 0; r < 128; ++r) std::fill(bench.v(r), bench.v(r) + row_lanes, 0u);
  const auto half_pair = [](float x, float y) { return float_to_half(x).bits | u32{float_to_half(y).bits} << 16; };
  for (unsigned lane = 0; lane < 64; ++lane) {
    bench.v(0)[lane] = half_pair(1, 1);  // the first four k only
    for (unsigned r = 0; r < 4; ++r) {
      const float k = static_cast<float>(lane / 16 * 8 + 2 * r);
      bench.v(32 + r)[lane] = half_pair(k, k + 1);
    }
    bench.v(60)[lane] = 0x04 | 0x09 << 8 | 0x0e << 16 | 0x0cu << 24;  // pairs (0,1) (1,2) (2,3) (0,3)
  }
  const float pairs[] = {0 + 1, 1 + 2, 2 + 3, 0 + 3};
  for (unsigned abid = 0; abid < 4; ++abid)
    for (unsigned cbsz = 0; cbsz < 2; ++cbsz) {
      for (unsigned r = 96; r < 100; ++r) std::fill(bench.v(r), bench.v(r) + row_lanes, 0u);
      std::string text = "v_smfmac_f32_16x16x32_f16 v[96:99], v[0:1], v[32:35], v60";
      if (cbsz != 0) text += " cbsz:1";
      if (abid != 0) text += fmt::format(" abid:{}", abid);
      ASSERT_TRUE(bench.run(text));
      const float one = pairs[cbsz == 0 ? abid : 0];
      EXPECT_EQ(std::bit_cast<float>(bench.v(96)[0]), 4 * one + 2 * (8 + 16 + 24)) << text;
    }
}

KERNCAP_FOR_ALL_TARGETS(MatrixProof);

}  // namespace
}  // namespace kerncap::softgpu::isa
