// Buffers whose elements have a format: of the descriptor (buffer_load_format_*) or of the instruction (tbuffer_*).
#include <deque>

#include "softgpu/isa/number_format.h"
#include "softgpu/isa/vmem.h"

namespace kerncap::softgpu::isa {
namespace {

// The descriptor's last dword: where a component comes from (three bits each), then the format.
ElementFormat format_of(const Wave& w, const Operation* op, u32 last) {
  const unsigned major = w.target->major;
  if (const u32 named = op->destination2.unused; named != 0)
    return major >= 10 ? unified_format(named - 1, major) : gfx9_format(named - 1);
  if (major >= 11) return unified_format(last >> 12 & 63, major);
  if (major == 10) return unified_format(last >> 12 & 127, major);
  return gfx9_format((last >> 15 & 15) | (last >> 12 & 7) << 4);
}

u32 one_of(const ElementFormat& format) { return is_integer(format.numeric) ? 1u : 0x3f800000u; }

// Components as 16 bits: halves, or the low bits of integers.
u32 narrowed(u32 value, const ElementFormat& format) {
  return is_integer(format.numeric) ? value & 0xffffu : u32{float_to_half(std::bit_cast<float>(value)).bits};
}
u32 widened(u32 value, const ElementFormat& format) {
  if (format.numeric == Numeric::sint) return static_cast<u32>(static_cast<i32>(static_cast<i16>(value)));
  if (format.numeric == Numeric::uint) return value & 0xffffu;
  return std::bit_cast<u32>(half_to_float({static_cast<u16>(value)}));
}

struct Typed {
  const MemoryAccess& what;
  ElementFormat format;
  bool identity;
  u32 selects;

  u32 component(const std::byte* element, unsigned k) const {
    unsigned from = k;
    if (!identity) {
      const u32 select = selects >> 3 * k & 7;
      if (select < 4) return select == 1 ? one_of(format) : 0;
      from = select - 4;
    }
    if (format.bits[from] != 0) return decode_component(element, format, from);
    return from == 3 ? one_of(format) : 0;
  }
};

void load_lane(const Typed& typed, const std::byte* element, u32* rows, unsigned lane) {
  for (unsigned k = 0; k < typed.what.components; ++k) {
    const u32 value = element == nullptr ? 0 : typed.component(element, k);
    if (!typed.what.half_components) {
      rows[k * row_lanes + lane] = value;
      continue;
    }
    u32& to = rows[k / 2 * row_lanes + lane];
    const u32 part = element == nullptr ? 0 : narrowed(value, typed.format);
    const bool high = typed.what.upper_half || k % 2 == 1;
    to = high ? (to & 0xffffu) | part << 16 : (to & 0xffff0000u) | part;
  }
}
void store_lane(const Typed& typed, std::byte* element, const u32* rows, unsigned lane) {
  for (unsigned k = 0; k < 4; ++k) {
    if (typed.format.bits[k] == 0) continue;
    u32 value = 0;  // components that the instruction does not have are written as zero
    if (k < typed.what.components) {
      if (!typed.what.half_components)
        value = rows[k * row_lanes + lane];
      else
        value = widened(rows[k / 2 * row_lanes + lane] >> (typed.what.upper_half || k % 2 == 1 ? 16 : 0), typed.format);
    }
    encode_component(element, typed.format, k, value);
  }
}

}  // namespace

const Operation* run_typed_buffer(Wave& w, const Operation* op) {
  Engine& e = *w.engine;
  ++e.counters.vmem;
  const u64 requested = w.exec();
  if (requested == 0) return following(op);
  const MemoryAccess& what = *static_cast<const MemoryAccess*>(op->instruction->detail);
  const u32 last = w.s[op->source[2].index + 3];
  const Typed typed{what, format_of(w, op, last), op->destination2.unused != 0, last & 0xfffu};
  if (typed.format.bytes() == 0)
    return w.fail(op, DispatchStatus::illegal_instruction, "the buffer has no format that the software GPU knows");
  Access access{w, op, what.kind, typed.format.bytes(), requested, {}};
  // Of a buffer whose bounds discard a lane, the registers are written by load_lane.
  find_lanes(access);
  if (access.failed) return access.failure;
  if (what.kind == MemoryKind::load) {
    u32* rows = w.row(op->destination.index);
    for_lanes(requested, [&](unsigned lane) {
      load_lane(typed, access.active >> lane & 1 ? e.pointer[lane] : nullptr, rows, lane);
    });
  } else {
    const u32* rows = w.row(op->source[1].index);
    for_lanes(access.active, [&](unsigned lane) { store_lane(typed, e.pointer[lane], rows, lane); });
  }
  finish_access(access);
  return following(op);
}

std::span<const Instruction> typed_buffer_instructions() {
  static const auto* table = [] {
    static auto* accesses = new std::deque<MemoryAccess>;
    static auto* names = new std::deque<std::string>;
    auto* made = new std::vector<Instruction>;
    const auto add = [&](std::string name, MemoryKind kind, unsigned components, bool halves, bool upper) {
      accesses->push_back({kind, 0, nullptr, static_cast<u8>(components), halves, upper});
      Instruction row;
      row.name = names->emplace_back(std::move(name)).c_str();
      row.family = Family::vmem;
      row.execute = &run_typed_buffer;
      row.detail = &accesses->back();
      made->push_back(row);
    };
    for (const MemoryKind kind : {MemoryKind::load, MemoryKind::store}) {
      const std::string verb = kind == MemoryKind::load ? "load" : "store";
      const std::string letters = "xyzw";
      for (unsigned count = 1; count <= 4; ++count) {
        add(verb + "_format_" + letters.substr(0, count), kind, count, false, false);
        add(verb + "_format_d16_" + letters.substr(0, count), kind, count, true, false);
      }
      add(verb + "_format_d16_hi_x", kind, 1, true, true);
    }
    return made;
  }();
  return *table;
}

}  // namespace kerncap::softgpu::isa
