// Scalar memory: loads, stores, atomics, clocks, cache maintenance.
#include "softgpu/isa/atomics.h"
#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {
namespace {

// Scalar addresses are dword-aligned: the low two bits are ignored.
const Operation* load_from(Wave& w, const Operation* op, u64 address, u64 available) {
  Engine& e = *w.engine;
  const unsigned dwords = op->destination_dwords;
  u32 values[16];
  for (unsigned k = 0; k < dwords; ++k) {
    const u64 at = address + 4 * k;
    if (4ull * k + 4 > available) {
      values[k] = 0;  // past num_records
      continue;
    }
    const std::byte* from = e.translate(at, permission_read);
    if (from == nullptr) return w.memory_fault(op, at, false);
    std::memcpy(&values[k], from, 4);
  }
  for (unsigned k = 0; k < dwords; ++k) w.s[op->destination.index + k] = values[k];
  ++e.counters.smem;
  e.counters.bytes_read += dwords * 4;
  e.counters.memory[static_cast<unsigned>(Traffic::scalar)].bytes_read += dwords * 4;
  return following(op);
}

// offset: the immediate is 21 bits, signed; an SGPR offset is 32 bits, unsigned.
u64 offset_of(const Wave& w, const Operation* op, unsigned k = 1) {
  const Operand& o = op->source[k];
  const u64 first = o.kind == OperandKind::constant ? static_cast<u64>(static_cast<i64>(static_cast<i32>(o.value)))
                                                    : u64{read32(w, o)};
  return first + static_cast<u64>(static_cast<i64>(static_cast<i32>(op->immediate)));
}

const Operation* load(Wave& w, const Operation* op) {
  return load_from(w, op, (read64(w, op->source[0]) + offset_of(w, op)) & ~u64{3}, ~u64{0});
}

// A buffer's base, and how many bytes it has from the offset on.
struct BufferPlace {
  u64 address, available;
};
BufferPlace place_in_buffer(const Wave& w, const Operation* op, unsigned k) {
  const u32* descriptor = &w.s[op->source[k].index];
  const u64 base = descriptor[0] | u64{descriptor[1] & 0xffffu} << 32, offset = offset_of(w, op, k + 1) & ~u64{3};
  const u32 stride = descriptor[1] >> 16 & 0x3fffu;
  const u64 size = stride == 0 ? descriptor[2] : u64{stride} * descriptor[2];
  return {(base + offset) & ~u64{3}, offset < size ? size - offset : 0};
}
const Operation* buffer_load(Wave& w, const Operation* op) {
  const BufferPlace place = place_in_buffer(w, op, 0);
  return load_from(w, op, place.address, place.available);
}

// GFX9's scalar stores; the data is the first source.
const Operation* store_to(Wave& w, const Operation* op, u64 address, u64 available) {
  Engine& e = *w.engine;
  const unsigned dwords = op->instruction->bytes / 4;
  for (unsigned k = 0; k < dwords; ++k) {
    if (4ull * k + 4 > available) break;
    std::byte* to = e.translate(address + 4 * k, permission_write);
    if (to == nullptr) return w.memory_fault(op, address + 4 * k, true);
    const u32 value = w.s[op->source[0].index + k];
    std::memcpy(to, &value, 4);
    e.counters.bytes_written += 4;
    e.counters.memory[static_cast<unsigned>(Traffic::scalar)].bytes_written += 4;
  }
  ++e.counters.smem;
  return following(op);
}
const Operation* store(Wave& w, const Operation* op) {
  return store_to(w, op, (read64(w, op->source[1]) + offset_of(w, op, 2)) & ~u64{3}, ~u64{0});
}
const Operation* buffer_store(Wave& w, const Operation* op) {
  const BufferPlace place = place_in_buffer(w, op, 1);
  return store_to(w, op, place.address, place.available);
}

// GFX9's scalar atomics: the data register gets the old value where the text says glc.
template <class T, auto F, bool in_buffer, unsigned operands = 1>
const Operation* atomic(Wave& w, const Operation* op) {
  Engine& e = *w.engine;
  ++e.counters.smem;
  BufferPlace place{(read64(w, op->source[1]) + offset_of(w, op, 2)) & ~u64{3}, ~u64{0}};
  if constexpr (in_buffer) place = place_in_buffer(w, op, 1);
  const auto value_at = [&](unsigned k) {
    const unsigned reg = op->source[0].index + k * static_cast<unsigned>(sizeof(T) / 4);
    return sizeof(T) == 8 ? static_cast<T>(w.read64(reg)) : static_cast<T>(w.s[reg]);
  };
  const T first = value_at(0), second = operands == 2 ? value_at(1) : T{};
  T old{};
  if (place.available >= sizeof(T)) {
    std::byte* at = e.translate(place.address, unsigned{permission_read} | permission_write);
    if (at == nullptr || place.address % sizeof(T) != 0) return w.memory_fault(op, place.address, true);
    if constexpr (operands == 2)
      old = atomic_update<T>(at, [&](T now) { return now == second ? first : now; });
    else
      old = atomic_update<T>(at, [&](T now) { return F(now, first); });
    e.counters.bytes_read += sizeof(T);
    e.counters.bytes_written += sizeof(T);
    MemoryTraffic& traffic = e.counters.memory[static_cast<unsigned>(Traffic::scalar)];
    traffic.bytes_read += sizeof(T);
    traffic.bytes_written += sizeof(T);
  }
  if (op->flags & flag_glc) {
    if constexpr (sizeof(T) == 8)
      w.write64(op->source[0].index, static_cast<u64>(old));
    else
      w.s[op->source[0].index] = static_cast<u32>(old);
  }
  return following(op);
}

const Operation* clock(Wave& w, const Operation* op) {
  w.write64(op->destination.index, w.engine->timestamp());
  return following(op);
}

const Operation* nothing(Wave&, const Operation* op) { return following(op); }

Instruction row(const char* name, Execute execute, unsigned dwords, std::initializer_list<Type> sources) {
  Instruction made;
  made.name = name;
  made.family = Family::smem;
  made.execute = execute;
  made.bytes = static_cast<u8>(dwords * 4);
  if (dwords != 0) made.result[0] = Type::wide;
  std::copy(sources.begin(), sources.end(), made.sources.begin());
  return made;
}

// No result: the data comes first, as a source.
Instruction storing(const char* name, Execute execute, unsigned dwords) {
  Instruction made = row(name, execute, 0, {Type::wide, Type::wide, Type::u32_});
  made.bytes = static_cast<u8>(dwords * 4);
  return made;
}

}  // namespace

std::span<const Instruction> scalar_memory_instructions() {
  constexpr Type wide = Type::wide, offset = Type::u32_;
  static const auto* table = new std::vector<Instruction>{
      row("s_load_dword", &load, 1, {wide, offset}),
      row("s_load_dwordx2", &load, 2, {wide, offset}),
      row("s_load_dwordx4", &load, 4, {wide, offset}),
      row("s_load_dwordx8", &load, 8, {wide, offset}),
      row("s_load_dwordx16", &load, 16, {wide, offset}),
      row("s_buffer_load_dword", &buffer_load, 1, {wide, offset}),
      row("s_buffer_load_dwordx2", &buffer_load, 2, {wide, offset}),
      row("s_buffer_load_dwordx4", &buffer_load, 4, {wide, offset}),
      row("s_buffer_load_dwordx8", &buffer_load, 8, {wide, offset}),
      row("s_buffer_load_dwordx16", &buffer_load, 16, {wide, offset}),
      storing("s_store_dword", &store, 1),
      storing("s_store_dwordx2", &store, 2),
      storing("s_store_dwordx4", &store, 4),
      storing("s_buffer_store_dword", &buffer_store, 1),
      storing("s_buffer_store_dwordx2", &buffer_store, 2),
      storing("s_buffer_store_dwordx4", &buffer_store, 4),
#define KERNCAP_SCALAR_ATOMIC(NAME, T, WIDE, F)                                \
  storing("s_atomic_" NAME, &isa::atomic<T, &F<T>, false>, 1),                 \
      storing("s_atomic_" NAME "_x2", &isa::atomic<WIDE, &F<WIDE>, false>, 2), \
      storing("s_buffer_atomic_" NAME, &isa::atomic<T, &F<T>, true>, 1),       \
      storing("s_buffer_atomic_" NAME "_x2", &isa::atomic<WIDE, &F<WIDE>, true>, 2)
      KERNCAP_SCALAR_ATOMIC("swap", u32, u64, atomic_swap),
      KERNCAP_SCALAR_ATOMIC("add", u32, u64, atomic_add),
      KERNCAP_SCALAR_ATOMIC("sub", u32, u64, atomic_sub),
      KERNCAP_SCALAR_ATOMIC("smin", i32, i64, atomic_min),
      KERNCAP_SCALAR_ATOMIC("umin", u32, u64, atomic_min),
      KERNCAP_SCALAR_ATOMIC("smax", i32, i64, atomic_max),
      KERNCAP_SCALAR_ATOMIC("umax", u32, u64, atomic_max),
      KERNCAP_SCALAR_ATOMIC("and", u32, u64, atomic_and),
      KERNCAP_SCALAR_ATOMIC("or", u32, u64, atomic_or),
      KERNCAP_SCALAR_ATOMIC("xor", u32, u64, atomic_xor),
      KERNCAP_SCALAR_ATOMIC("inc", u32, u64, atomic_inc),
      KERNCAP_SCALAR_ATOMIC("dec", u32, u64, atomic_dec),
#undef KERNCAP_SCALAR_ATOMIC
      storing("s_atomic_cmpswap", &isa::atomic<u32, &atomic_swap<u32>, false, 2>, 1),
      storing("s_atomic_cmpswap_x2", &isa::atomic<u64, &atomic_swap<u64>, false, 2>, 2),
      storing("s_buffer_atomic_cmpswap", &isa::atomic<u32, &atomic_swap<u32>, true, 2>, 1),
      storing("s_buffer_atomic_cmpswap_x2", &isa::atomic<u64, &atomic_swap<u64>, true, 2>, 2),
      row("s_dcache_discard", &nothing, 0, {wide, offset}),
      row("s_dcache_discard_x2", &nothing, 0, {wide, offset}),
      row("s_atc_probe", &nothing, 0, {Type::u32_, wide, offset}),
      row("s_atc_probe_buffer", &nothing, 0, {Type::u32_, wide, offset}),
      row("s_memtime", &clock, 2, {}),
      row("s_memrealtime", &clock, 2, {}),
      row("s_dcache_inv", &nothing, 0, {}),
      row("s_dcache_inv_vol", &nothing, 0, {}),
      row("s_dcache_wb", &nothing, 0, {}),
      row("s_dcache_wb_vol", &nothing, 0, {}),
      row("s_gl1_inv", &nothing, 0, {}),
  };
  return *table;
}

}  // namespace kerncap::softgpu::isa
