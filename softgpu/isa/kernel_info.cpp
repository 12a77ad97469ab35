#include "softgpu/isa/kernel_info.h"

#include <fmt/format.h>

namespace kerncap::softgpu::isa {
namespace {

template <class T>
bool read_field(const AddressSpace& memory, u64 address, T& value) {
  std::byte bytes[sizeof(T)];
  for (unsigned k = 0; k < sizeof(T); ++k) {
    const std::byte* from = memory.translate(address + k, permission_read);
    if (from == nullptr) return false;
    bytes[k] = *from;
  }
  std::memcpy(&value, bytes, sizeof(T));
  return true;
}

bool bit(u32 word, unsigned position) { return word >> position & 1; }

}  // namespace

bool find_target(const std::string& processor, Target& target) {
  struct Known {
    const char* name;
    unsigned major;
    bool gfx90a, gfx940;
  };
  static constexpr Known known[] = {
      {"gfx900", 9, false, false},   {"gfx902", 9, false, false},   {"gfx904", 9, false, false},
      {"gfx906", 9, false, false},   {"gfx908", 9, false, false},   {"gfx909", 9, false, false},
      {"gfx90a", 9, true, false},    {"gfx90c", 9, false, false},   {"gfx942", 9, true, true},
      {"gfx1010", 10, false, false}, {"gfx1011", 10, false, false}, {"gfx1012", 10, false, false},
      {"gfx1030", 10, false, false}, {"gfx1031", 10, false, false}, {"gfx1032", 10, false, false},
      {"gfx1034", 10, false, false}, {"gfx1035", 10, false, false}, {"gfx1036", 10, false, false},
      {"gfx1100", 11, false, false}, {"gfx1101", 11, false, false}, {"gfx1102", 11, false, false},
      {"gfx1103", 11, false, false}};
  for (const Known& one : known)
    if (processor == one.name) {
      target.processor = processor;
      target.major = one.major;
      target.gfx90a = one.gfx90a;
      target.gfx940 = one.gfx940;
      target.packed_work_item_ids = one.gfx90a || one.major >= 11;
      target.architected_flat_scratch = one.gfx940 || one.major >= 11;
      target.preserves_high_half = one.major >= 10;
      target.cmpx_writes_destination = one.major == 9;
      return true;
    }
  return false;
}

std::string read_kernel_info(const AddressSpace& memory, u64 kernel_object, const Target& target, KernelInfo& info) {
  i64 entry_offset = 0;
  u32 rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  u16 properties = 0, preload = 0;
  if (!read_field(memory, kernel_object, info.group_bytes) ||
      !read_field(memory, kernel_object + 4, info.private_bytes) ||
      !read_field(memory, kernel_object + 16, entry_offset) || !read_field(memory, kernel_object + 44, rsrc3) ||
      !read_field(memory, kernel_object + 48, rsrc1) || !read_field(memory, kernel_object + 52, rsrc2) ||
      !read_field(memory, kernel_object + 56, properties) || !read_field(memory, kernel_object + 58, preload))
    return fmt::format("the kernel object at {:#x} is not readable", kernel_object);
  // amd_kernel_code_t starts with its version, 1.x; a descriptor with 1 byte of LDS and a small private segment does
  // not exist, because LDS comes in larger units. Its other sizes lie elsewhere and the packet has them too.
  const bool legacy = info.group_bytes == 1 && info.private_bytes <= 2;
  if (legacy) {
    info.group_bytes = info.private_bytes = 0;
    rsrc3 = 0;
    preload = 0;
  }
  info.entry = kernel_object + static_cast<u64>(entry_offset);
  if (info.entry % 4 != 0)
    return fmt::format("the kernel object at {:#x} has the unaligned entry {:#x}", kernel_object, info.entry);
  info.private_segment_buffer = bit(properties, 0);
  info.dispatch_pointer = bit(properties, 1);
  info.queue_pointer = bit(properties, 2);
  info.kernarg_pointer = bit(properties, 3);
  info.dispatch_id = bit(properties, 4);
  info.flat_scratch = bit(properties, 5);
  info.private_segment_size = bit(properties, 6);
  info.wave32 = target.major >= 10 && bit(properties, 10);
  info.scratch_offset = bit(rsrc2, 0) && !target.architected_flat_scratch;
  info.user_scalars = rsrc2 >> 1 & 31;
  for (unsigned k = 0; k < 3; ++k) info.workgroup_id[k] = bit(rsrc2, 7 + k);
  info.workgroup_info = bit(rsrc2, 10);
  info.work_item_dimensions = (rsrc2 >> 11 & 3) + 1;
  if (target.gfx90a) {
    info.preload_dwords = preload & 127;
    info.preload_offset = preload >> 7;
  }
  const unsigned granule = target.gfx90a || (target.major >= 10 && info.wave32) ? 8 : 4;
  info.vector_registers = std::min(((rsrc1 & 63) + 1) * granule, max_lane_registers);
  info.accumulator_offset = target.gfx90a ? ((rsrc3 & 63) + 1) * 4 : info.vector_registers;
  // MODE: rounding and denormals from bits 12-19, DX10_CLAMP from 21 to 8, IEEE_MODE from 23 to 9, FP16_OVFL from 26
  // to 23.
  info.mode = (rsrc1 >> 12 & 255) | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9 | (rsrc1 >> 26 & 1) << 23;
  return {};
}

}  // namespace kerncap::softgpu::isa
