// Scalar memory: loads, clocks, cache maintenance.
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
  return following(op);
}

// offset: the immediate is 21 bits, signed; an SGPR offset is 32 bits, unsigned.
u64 offset_of(const Wave& w, const Operation* op) {
  const Operand& o = op->source[1];
  const u64 first = o.kind == OperandKind::constant ? static_cast<u64>(static_cast<i64>(static_cast<i32>(o.value)))
                                                    : u64{read32(w, o)};
  return first + static_cast<u64>(static_cast<i64>(static_cast<i32>(op->immediate)));
}

const Operation* load(Wave& w, const Operation* op) {
  return load_from(w, op, (read64(w, op->source[0]) + offset_of(w, op)) & ~u64{3}, ~u64{0});
}

const Operation* buffer_load(Wave& w, const Operation* op) {
  const u32* descriptor = &w.s[op->source[0].index];
  const u64 base = descriptor[0] | u64{descriptor[1] & 0xffffu} << 32, offset = offset_of(w, op) & ~u64{3};
  const u32 stride = descriptor[1] >> 16 & 0x3fffu;
  const u64 size = stride == 0 ? descriptor[2] : u64{stride} * descriptor[2];
  return load_from(w, op, (base + offset) & ~u64{3}, offset < size ? size - offset : 0);
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
