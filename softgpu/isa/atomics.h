// Read-modify-write operations, for global memory (real host atomics) and LDS.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>

#include "softgpu/isa/scalar_types.h"

namespace kerncap::softgpu::isa {

// Replaces *pointer by change(*pointer), atomically as bits (floats included); returns the old value.
template <class T, class Change>
T atomic_update(std::byte* pointer, Change change) {
  using Bits = std::conditional_t<sizeof(T) == 8, u64, u32>;
  std::atomic_ref<Bits> target(*reinterpret_cast<Bits*>(pointer));
  Bits now = target.load();
  while (!target.compare_exchange_weak(now, std::bit_cast<Bits>(change(std::bit_cast<T>(now))))) {
  }
  return std::bit_cast<T>(now);
}

template <class T>
T atomic_add(T now, T operand) {
  return static_cast<T>(now + operand);
}
template <class T>
T atomic_sub(T now, T operand) {
  return static_cast<T>(now - operand);
}
template <class T>
T atomic_reverse_sub(T now, T operand) {
  return static_cast<T>(operand - now);
}
template <class T>
T atomic_min(T now, T operand) {
  return std::min(now, operand);
}
template <class T>
T atomic_max(T now, T operand) {
  return std::max(now, operand);
}
template <class T>
T atomic_and(T now, T operand) {
  return now & operand;
}
template <class T>
T atomic_or(T now, T operand) {
  return now | operand;
}
template <class T>
T atomic_xor(T now, T operand) {
  return now ^ operand;
}
template <class T>
T atomic_swap(T, T operand) {
  return operand;
}
template <class T>
T atomic_inc(T now, T operand) {
  return now >= operand ? T{0} : static_cast<T>(now + 1);
}
template <class T>
T atomic_dec(T now, T operand) {
  return now == 0 || now > operand ? operand : static_cast<T>(now - 1);
}
template <class T>
T atomic_float_min(T now, T operand) {
  return std::fmin(now, operand);
}
template <class T>
T atomic_float_max(T now, T operand) {
  return std::fmax(now, operand);
}

inline u32 atomic_add_pk_f16(u32 now, u32 operand) {
  const auto add = [](u32 a, u32 b) {
    return u32{float_to_half(half_to_float({static_cast<u16>(a)}) + half_to_float({static_cast<u16>(b)})).bits};
  };
  return add(now, operand) | add(now >> 16, operand >> 16) << 16;
}
inline u32 atomic_add_pk_bf16(u32 now, u32 operand) {
  const auto add = [](u32 a, u32 b) {
    return u32{float_to_bfloat(bfloat_to_float({static_cast<u16>(a)}) + bfloat_to_float({static_cast<u16>(b)})).bits};
  };
  return add(now, operand) | add(now >> 16, operand >> 16) << 16;
}

}  // namespace kerncap::softgpu::isa
