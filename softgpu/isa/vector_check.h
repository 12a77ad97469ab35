// Checks a vector instruction against a formula on many inputs, with all the ways that operands and lanes come in:
// registers, scalars, all lanes, some lanes, none, destination equal to a source.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "softgpu/isa/instruction_bench.h"
#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {

struct TestTarget {
  const char* processor;
  bool wave32;
};
inline void PrintTo(const TestTarget& target, std::ostream* out) {
  *out << target.processor << (target.wave32 ? "_w32" : "_w64");
}

inline std::string test_target_name(const testing::TestParamInfo<TestTarget>& each) {
  return std::string(each.param.processor) + (each.param.wave32 ? "_w32" : "_w64");
}
#define KERNCAP_FOR_ALL_TARGETS(SUITE)                                                                          \
  INSTANTIATE_TEST_SUITE_P(                                                                                     \
      all, SUITE,                                                                                               \
      testing::Values(TestTarget{"gfx90a", false}, TestTarget{"gfx942", false}, TestTarget{"gfx1030", true},    \
                      TestTarget{"gfx1030", false}, TestTarget{"gfx1100", true}, TestTarget{"gfx1100", false}), \
      test_target_name)

// Numbers where things go wrong, then random ones.
template <class T>
T interesting(std::mt19937_64& random) {
  using Bits = std::conditional_t<sizeof(T) == 8, u64, std::conditional_t<sizeof(T) == 4, u32, u16>>;
  Bits bits = static_cast<Bits>(random());
  const unsigned kind = static_cast<unsigned>(random() % 4);
  if constexpr (std::is_same_v<T, float>) {
    constexpr u32 special[] = {0,           0x80000000u, 0x3f800000u, 0xbf800000u, 0x7f800000u,
                               0xff800000u, 0x7fc00000u, 0x7f800001u, 0xffc12345u, 1,
                               0x807fffffu, 0x00800000u, 0x7f7fffffu, 0xff7fffffu, 0x3f000000u,
                               0x40490fdbu, 0x4f000000u, 0xcf000000u, 0x5f000000u};
    if (kind == 0)
      bits = special[random() % std::size(special)];
    else if (kind < 3)
      bits = std::bit_cast<u32>(static_cast<float>(static_cast<i32>(random())) *
                                std::ldexp(1.0f, -static_cast<int>(random() % 40)));
  } else if constexpr (std::is_same_v<T, double>) {
    constexpr u64 special[] = {0,
                               1ull << 63,
                               0x3ff0000000000000u,
                               0xbff0000000000000u,
                               0x7ff0000000000000u,
                               0xfff0000000000000u,
                               0x7ff8000000000000u,
                               0x7ff0000000000001u,
                               1,
                               0x800fffffffffffffu,
                               0x0010000000000000u,
                               0x7fefffffffffffffu,
                               0x3fe0000000000000u,
                               0x41e0000000000000u};
    if (kind == 0)
      bits = special[random() % std::size(special)];
    else if (kind < 3)
      bits = std::bit_cast<u64>(static_cast<double>(static_cast<i64>(random())) *
                                std::ldexp(1.0, -static_cast<int>(random() % 80)));
  } else if constexpr (std::is_same_v<T, half>) {
    constexpr u16 special[] = {0,      0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00,
                               0x7c01, 1,      0x83ff, 0x0400, 0x7bff, 0x3800};
    if (kind == 0) bits = special[random() % std::size(special)];
  } else {
    constexpr unsigned size = sizeof(T) * 8;
    const Bits special[] = {0,
                            1,
                            2,
                            static_cast<Bits>(~Bits{0}),
                            static_cast<Bits>(Bits{1} << (size - 1)),
                            static_cast<Bits>((Bits{1} << (size - 1)) - 1),
                            31,
                            32,
                            33,
                            0x7f,
                            0x80,
                            0xff,
                            16,
                            64};
    if (kind == 0)
      bits = special[random() % std::size(special)];
    else if (kind == 1)
      bits = static_cast<Bits>(bits >> (random() % size));
  }
  return std::bit_cast<T>(bits);
}

// Bitwise equal, or both NaN: which NaN comes out is checked separately where it is defined.
template <class T>
bool same_result(T got, T wanted) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(wanted)) return std::isnan(got);
    return std::memcmp(&got, &wanted, sizeof(T)) == 0;
  } else if constexpr (std::is_same_v<T, half>) {
    const auto is_nan = [](half h) { return (h.bits & 0x7c00) == 0x7c00 && (h.bits & 0x3ff) != 0; };
    return is_nan(wanted) ? is_nan(got) : got.bits == wanted.bits;
  } else {
    return got == wanted;
  }
}

class VectorCheck : public testing::TestWithParam<TestTarget> {
 protected:
  InstructionBench bench{GetParam().processor, GetParam().wave32};
  std::mt19937_64 random{11};
  unsigned checked = 0;

  // A suite whose instructions the target does not have at all would pass without having tested anything.
  void TearDown() override { EXPECT_GT(checked, 0u) << "the target has none of these instructions"; }

  // `half`: RDNA3's spelling of 16-bit registers, which newer assemblers want.
  template <class T>
  static std::string registers(unsigned first, char kind = 'v', bool half = false) {
    if constexpr (Lane<T>::dwords == 2)
      return fmt::format("{}[{}:{}]", kind, first, first + 1);
    else
      return fmt::format("{}{}{}", kind, first, half && sizeof(T) == 2 && kind == 'v' ? ".l" : "");
  }

  template <class Signature, class F>
  void check(const std::string& name, F expected, const std::string& other_name = "") {
    Checker<Signature>::run(*this, name, other_name, "", expected);
  }
  template <class Signature, class F>
  void check_suffix(const std::string& name, const std::string& suffix, F expected,
                    const std::string& other_name = "") {
    Checker<Signature>::run(*this, name, other_name, suffix, expected);
  }

  template <class Signature>
  struct Checker;
  template <class R, class... A>
  struct Checker<R(A...)> {
    static constexpr unsigned count = sizeof...(A);
    static constexpr unsigned first_source = 8;  // v[8:9], v[10:11], v[12:13]; s as well

    template <class F>
    static void run(VectorCheck& test, const std::string& name, const std::string& other_name,
                    const std::string& suffix, F expected) {
      bool any = false;
      for (const auto& candidate : {name, other_name}) {
        if (candidate.empty()) continue;
        const std::string tail = suffix.empty() ? "" : " " + suffix;
        // All in registers; each one scalar; destination over the first source.
        any |= one(test, candidate, tail, expected, -1, 0);
        if (!any) continue;
        for (int scalar = 0; scalar < static_cast<int>(count); ++scalar)
          one(test, candidate, tail, expected, scalar, 0);
        one(test, candidate, tail, expected, -1, first_source);
        break;
      }
      test.checked += any;
    }

    template <class F>
    static bool one(VectorCheck& test, const std::string& name, const std::string& tail, F expected, int scalar,
                    unsigned destination) {
      for (const bool halves : {false, true}) {
        std::string text = name + " " + registers<R>(destination, 'v', halves);
        unsigned k = 0;
        ((text += ", " + registers<A>(first_source + 2 * k, static_cast<int>(k) == scalar ? 's' : 'v', halves), ++k),
         ...);
        if (execute(test, text + tail, expected, scalar, destination, std::index_sequence_for<A...>{})) return true;
      }
      return false;
    }

    template <class F, std::size_t... k>
    static bool execute(VectorCheck& test, const std::string& text, F expected, int scalar, unsigned destination,
                        std::index_sequence<k...>) {
      InstructionBench& bench = test.bench;
      const bool small = sizeof(R) == 2;
      for (int round = 0; round < 6; ++round) {
        const u64 all = bench.wave().all_lanes;
        const u64 mask = round == 4 ? test.random() & all : round == 5 ? 0 : all;
        bench.set_exec(mask);
        std::vector<std::tuple<A...>> inputs(row_lanes);
        for (unsigned lane = 0; lane < row_lanes; ++lane) {
          inputs[lane] = {interesting<A>(test.random)...};
          (put<std::tuple_element_t<k, std::tuple<A...>>>(test, std::get<k>(inputs[lane]), first_source + 2 * k, lane),
           ...);
        }
        if (scalar >= 0) {
          for (unsigned lane = 0; lane < row_lanes; ++lane)
            ((static_cast<int>(k) == scalar ? void(std::get<k>(inputs[lane]) = std::get<k>(inputs[0])) : void()), ...);
          ((static_cast<int>(k) == scalar ? put_scalar(bench, std::get<k>(inputs[0]), first_source + 2 * k) : void()),
           ...);
        }
        std::vector<u32> before(2 * row_lanes);
        if (destination != first_source)
          for (unsigned i = 0; i < 2 * row_lanes; ++i) bench.v(destination)[i] = 0xabcd0000u + i;
        std::copy(bench.v(destination), bench.v(destination) + 2 * row_lanes, before.begin());
        if (!bench.run(text)) return false;
        EXPECT_FALSE(bench.failed()) << text << ": " << bench.error().message;
        if (bench.failed()) return true;
        for (unsigned lane = 0; lane < bench.lanes(); ++lane) {
          const u32* result = bench.v(destination);
          if (!(mask >> lane & 1)) {
            for (unsigned d = 0; d < Lane<R>::dwords; ++d)
              EXPECT_EQ(result[lane + d * row_lanes], before[lane + d * row_lanes])
                  << text << ": inactive lane " << lane;
            continue;
          }
          const R got = Lane<R>::load(result, lane), wanted = expected(std::get<k>(inputs[lane])...);
          if (!same_result(got, wanted)) {
            std::string values;
            ((values += fmt::format(" {:#x}", bits(std::get<k>(inputs[lane])))), ...);
            ADD_FAILURE() << text << " lane " << lane << ": got "
                          << fmt::format("{:#x}, wanted {:#x}, inputs{}", bits(got), bits(wanted), values);
            return true;
          }
          if (small && bench.target().preserves_high_half) {
            EXPECT_EQ(result[lane] >> 16, before[lane] >> 16) << text;
          }
        }
      }
      return true;
    }
    template <class T>
    static u64 bits(T value) {
      if constexpr (sizeof(T) == 8)
        return std::bit_cast<u64>(value);
      else if constexpr (sizeof(T) == 4)
        return std::bit_cast<u32>(value);
      else
        return std::bit_cast<u16>(value);
    }
    template <class T>
    static void put(VectorCheck& test, T value, unsigned reg, unsigned lane) {
      Lane<T>::store(test.bench.v(reg), lane, value);
      // What lies above 16 bits must not matter.
      if (sizeof(T) == 2) test.bench.v(reg)[lane] |= static_cast<u32>(test.random()) << 16;
    }
    template <class T>
    static void put_scalar(InstructionBench& bench, T value, unsigned reg) {
      bench.s(reg) = static_cast<u32>(bits(value));
      if (sizeof(T) == 8) bench.s(reg + 1) = static_cast<u32>(bits(value) >> 32);
    }
  };
};

}  // namespace kerncap::softgpu::isa
