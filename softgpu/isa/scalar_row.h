// Making table rows of scalar instructions: functions of their sources and SCC.
#pragma once

#include <algorithm>

#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {

template <class T>
T read_scalar(const Wave& w, const Operand& o) {
  if constexpr (sizeof(T) == 8)
    return static_cast<T>(read64(w, o));
  else
    return static_cast<T>(read32(w, o));
}
template <class T>
void write_scalar(Wave& w, const Operand& o, T value) {
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
struct ScalarFunction;
template <class R, class... A, class F>
struct ScalarFunction<R(A...), F> {
  template <std::size_t... k>
  static const Operation* apply(Wave& w, const Operation* op, std::index_sequence<k...>) {
    bool scc = w.scc;
    if constexpr (std::is_void_v<R>) {
      F{}(read_scalar<A>(w, op->source[k])..., scc);
    } else {
      write_scalar<R>(w, op->destination, F{}(read_scalar<A>(w, op->source[k])..., scc));
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
    write_scalar<R>(w, op->destination, F{}(first, read_scalar<Rest>(w, op->source[0])..., scc));
    w.scc = scc;
    return following(op);
  }
  static const Operation* run_accumulating(Wave& w, const Operation* op) { return accumulate<A...>(w, op); }
};

template <class Signature, class F>
struct ScalarMaker;
template <class R, class... A, class F>
struct ScalarMaker<R(A...), F> {
  static Instruction make(const char* name) {
    Instruction row;
    row.name = name;
    row.family = Family::salu;
    row.execute = &ScalarFunction<R(A...), F>::run;
    if constexpr (!std::is_void_v<R>) row.result[0] = scalar_type<R>();
    row.sources = {scalar_type<A>()...};
    return row;
  }
};
template <class Signature, class F>
Instruction sop(F, const char* name) {
  return ScalarMaker<Signature, F>::make(name);
}
// SOPK with destination as first source: the text has destination and immediate.
template <class Signature, class F>
Instruction sopk_accumulate(F, const char* name) {
  Instruction row = ScalarMaker<Signature, F>::make(name);
  row.execute = &ScalarFunction<Signature, F>::run_accumulating;
  row.sources = {Type::b32_, Type::none, Type::none, Type::none};
  row.flags = instruction_signed_k;
  return row;
}
template <class Signature, class F>
Instruction sopk(F, const char* name, bool is_signed) {
  Instruction row = ScalarMaker<Signature, F>::make(name);
  if (is_signed) row.flags = instruction_signed_k;
  return row;
}

inline Instruction scalar_row(const char* name, Execute execute, Type result, std::initializer_list<Type> sources,
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

}  // namespace kerncap::softgpu::isa
