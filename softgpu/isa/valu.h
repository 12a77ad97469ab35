// Vector instructions as loops over rows: how lanes are read and written, and the drivers around the loops.
//
// A row function computes all lanes, active or not: no vector instruction can fault, and one loop without conditions is
// what the compiler turns into vector code. The driver then stores only the active lanes.
#pragma once

#include <utility>

#include "softgpu/isa/wave.h"

namespace kerncap::softgpu::isa {

template <class T>
struct Lane;

#define KERNCAP_LANE32(T, TYPE)                                                          \
  template <>                                                                            \
  struct Lane<T> {                                                                       \
    static constexpr Type type = TYPE;                                                   \
    static constexpr unsigned dwords = 1;                                                \
    static T load(const u32* p, unsigned i) { return std::bit_cast<T>(p[i]); }           \
    static void store(u32* p, unsigned i, T value) { p[i] = std::bit_cast<u32>(value); } \
  };
KERNCAP_LANE32(u32, Type::u32_)
KERNCAP_LANE32(i32, Type::i32_)
KERNCAP_LANE32(float, Type::f32_)
KERNCAP_LANE32(b32, Type::b32_)
#undef KERNCAP_LANE32

#define KERNCAP_LANE64(T, TYPE)                                                                              \
  template <>                                                                                                \
  struct Lane<T> {                                                                                           \
    static constexpr Type type = TYPE;                                                                       \
    static constexpr unsigned dwords = 2;                                                                    \
    static T load(const u32* p, unsigned i) { return std::bit_cast<T>(p[i] | u64{p[i + row_lanes]} << 32); } \
    static void store(u32* p, unsigned i, T value) {                                                         \
      const u64 bits = std::bit_cast<u64>(value);                                                            \
      p[i] = static_cast<u32>(bits);                                                                         \
      p[i + row_lanes] = static_cast<u32>(bits >> 32);                                                       \
    }                                                                                                        \
  };
KERNCAP_LANE64(u64, Type::u64_)
KERNCAP_LANE64(i64, Type::i64_)
KERNCAP_LANE64(double, Type::f64_)
KERNCAP_LANE64(b64, Type::b64_)
#undef KERNCAP_LANE64

#define KERNCAP_LANE16(T, TYPE)                                                                  \
  template <>                                                                                    \
  struct Lane<T> {                                                                               \
    static constexpr Type type = TYPE;                                                           \
    static constexpr unsigned dwords = 1;                                                        \
    static T load(const u32* p, unsigned i) { return std::bit_cast<T>(static_cast<u16>(p[i])); } \
    static void store(u32* p, unsigned i, T value) { p[i] = std::bit_cast<u16>(value); }         \
  };
KERNCAP_LANE16(u16, Type::u16_)
KERNCAP_LANE16(i16, Type::i16_)
KERNCAP_LANE16(half, Type::f16_)
KERNCAP_LANE16(bfloat, Type::bf16_)
#undef KERNCAP_LANE16

// Comparisons: a row of 0 / ~0, which the driver packs into a mask.
template <>
struct Lane<bool> {
  static constexpr Type type = Type::mask;
  static constexpr unsigned dwords = 1;
  static void store(u32* p, unsigned i, bool value) { p[i] = value ? ~0u : 0u; }
};

// Two 16-bit integers or halves, and two floats, in one or two registers.
struct pair_i16 {
  u16 low, high;
};
struct pair_half {
  half low, high;
};
struct pair_float {
  float low, high;
};
template <>
struct Lane<pair_i16> {
  static constexpr Type type = Type::pk_i16;
  static constexpr unsigned dwords = 1;
  static pair_i16 load(const u32* p, unsigned i) { return {static_cast<u16>(p[i]), static_cast<u16>(p[i] >> 16)}; }
  static void store(u32* p, unsigned i, pair_i16 v) { p[i] = v.low | u32{v.high} << 16; }
};
template <>
struct Lane<pair_half> {
  static constexpr Type type = Type::pk_f16;
  static constexpr unsigned dwords = 1;
  static pair_half load(const u32* p, unsigned i) { return {{static_cast<u16>(p[i])}, {static_cast<u16>(p[i] >> 16)}}; }
  static void store(u32* p, unsigned i, pair_half v) { p[i] = v.low.bits | u32{v.high.bits} << 16; }
};
template <>
struct Lane<pair_float> {
  static constexpr Type type = Type::pk_f32;
  static constexpr unsigned dwords = 2;
  static pair_float load(const u32* p, unsigned i) {
    return {std::bit_cast<float>(p[i]), std::bit_cast<float>(p[i + row_lanes])};
  }
  static void store(u32* p, unsigned i, pair_float v) {
    p[i] = std::bit_cast<u32>(v.low);
    p[i + row_lanes] = std::bit_cast<u32>(v.high);
  }
};

constexpr unsigned dwords_of(Type type) {
  switch (type) {
    case Type::u64_:
    case Type::i64_:
    case Type::f64_:
    case Type::b64_:
    case Type::pk_f32:
      return 2;
    default:
      return 1;
  }
}

template <class Signature, class F>
struct Rows;
// Loops of constant length, which is what compilers make vector code of; wave32 has one part, wave64 two.
inline constexpr unsigned part_lanes = 32;
// A lane reads and writes only its own column, and rows either coincide or are apart: no dependency between lanes.
template <class R, class A, class F>
struct Rows<R(A), F> {
  static void run(u32* d, const u32* const* s, unsigned lanes) {
    const u32* a = s[0];
    for (unsigned part = 0; part < lanes; part += part_lanes, d += part_lanes, a += part_lanes)
#pragma GCC ivdep
      for (unsigned i = 0; i < part_lanes; ++i) Lane<R>::store(d, i, F{}(Lane<A>::load(a, i)));
  }
};
template <class R, class A, class B, class F>
struct Rows<R(A, B), F> {
  static void run(u32* d, const u32* const* s, unsigned lanes) {
    const u32 *a = s[0], *b = s[1];
    for (unsigned part = 0; part < lanes; part += part_lanes, d += part_lanes, a += part_lanes, b += part_lanes)
#pragma GCC ivdep
      for (unsigned i = 0; i < part_lanes; ++i) Lane<R>::store(d, i, F{}(Lane<A>::load(a, i), Lane<B>::load(b, i)));
  }
};
template <class R, class A, class B, class C, class F>
struct Rows<R(A, B, C), F> {
  static void run(u32* d, const u32* const* s, unsigned lanes) {
    const u32 *a = s[0], *b = s[1], *c = s[2];
    for (unsigned part = 0; part < lanes;
         part += part_lanes, d += part_lanes, a += part_lanes, b += part_lanes, c += part_lanes)
#pragma GCC ivdep
      for (unsigned i = 0; i < part_lanes; ++i)
        Lane<R>::store(d, i, F{}(Lane<A>::load(a, i), Lane<B>::load(b, i), Lane<C>::load(c, i)));
  }
};

template <class Signature>
struct SignatureTypes;
template <class R, class... A>
struct SignatureTypes<R(A...)> {
  static constexpr Type result = Lane<R>::type;
  static constexpr std::array<Type, 4> sources{Lane<A>::type...};
  static constexpr bool is_f32 = std::is_same_v<R, float> || (std::is_same_v<A, float> || ...);
  static constexpr bool is_f64 =
      std::is_same_v<R, double> || (std::is_same_v<A, double> || ...) || std::is_same_v<R, half>;
};

// A table row for an instruction that is a function of its lanes.
template <class Signature, class F>
Instruction lanewise(F, const char* name, unsigned flags = 0) {
  using Types = SignatureTypes<Signature>;
  Instruction row;
  row.name = name;
  row.family = Family::valu;
  row.rows = &Rows<Signature, F>::run;
  row.result = {Types::result, Type::none};
  row.sources = Types::sources;
  row.flags = static_cast<u16>(flags);
  if (Types::is_f64)
    row.flags |= instruction_f64_mode;
  else if (Types::is_f32)
    row.flags |= instruction_f32_mode;
  return row;
}
// ... and for one with its own execute function.
Instruction special(const char* name, Execute execute, std::array<Type, 2> result, std::array<Type, 4> sources,
                    unsigned flags = 0);

inline const Operation* following(const Operation* op) { return op + op->dwords; }

// Rows of source k as they are: registers in place, scalars spread over temporary rows.
const u32* spread(const Wave& w, const Operand& o, u32* into);
inline const u32* plain_source(Wave& w, const Operation* op, unsigned k) {
  const Operand& o = op->source[k];
  if (o.kind == OperandKind::vector) [[likely]]
    return w.row(o.index);
  if (o.kind == OperandKind::constant) return o.row;
  return spread(w, o, w.engine->temporary[k]);
}

// Sources with SDWA, DPP, op_sel, neg and abs applied; narrows `active` where DPP disables lanes.
void modified_sources(Wave& w, const Operation* op, const u32** sources, u64& active);
// All the sources of an operation, with modifiers when there are any.
inline void sources_of(Wave& w, const Operation* op, const u32** sources, u64& active) {
  if (op->modifiers == nullptr) [[likely]] {
    for (unsigned k = 0; k < op->source_count; ++k) sources[k] = plain_source(w, op, k);
  } else {
    modified_sources(w, op, sources, active);
  }
}
// Stores result rows in the destination for the active lanes, with clamp, output scale, SDWA destination selects.
void store_result(Wave& w, const Operation* op, const u32* result, u64 active);
void blend(Wave& w, u32* destination, const u32* result, unsigned dwords, u64 active);
u64 pack_mask(const u32* row, unsigned lanes);
void unpack_mask(u64 mask, u32* row, unsigned lanes);

// One vector instruction of the counters.
inline void count_vector(Wave& w) {
  DispatchCounters& counters = w.engine->counters;
  ++counters.valu;
  if (const u64 exec = w.exec(); exec != w.all_lanes) [[unlikely]] {
    ++counters.partial_valu;
    counters.inactive_lanes += w.lanes - static_cast<unsigned>(std::popcount(exec));
  }
}

const Operation* run_valu(Wave& w, const Operation* op);
const Operation* run_compare(Wave& w, const Operation* op);

// Sets the host's rounding and denormal handling as MODE asks, for one instruction.
class ModeScope {
 public:
  ModeScope(const Wave& w, unsigned instruction_flags);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  unsigned saved_ = 0;
  bool changed_ = false;
};

}  // namespace kerncap::softgpu::isa
