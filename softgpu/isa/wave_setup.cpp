#include "softgpu/isa/dispatch.h"
#include "softgpu/isa/vmem.h"

namespace kerncap::softgpu::isa {
namespace {

// Words that a kernel finds where nobody has written: splitmix64 of the poison and a running number.
struct Poison {
  u64 state;
  void fill(void* to, u64 bytes) {
    auto* target = static_cast<std::byte*>(to);
    for (u64 at = 0; at < bytes; at += 8) {
      u64 x = state += 0x9e3779b97f4a7c15;
      x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
      x = (x ^ x >> 27) * 0x94d049bb133111eb;
      x ^= x >> 31;
      std::memcpy(target + at, &x, std::min<u64>(8, bytes - at));
    }
  }
};

constexpr unsigned ordinary_scalars = 102;  // of every generation; behind them are VCC and its like

struct ScalarWriter {
  Wave& w;
  unsigned next = 0;
  void put(u32 value) {
    if (next < reg_vcc) w.s[next++] = value;
  }
  void put64(u64 value) {
    put(static_cast<u32>(value));
    put(static_cast<u32>(value >> 32));
  }
};

void set_scalars(Wave& w, const DispatchState& state, const Workgroup& group, bool first_wave, Poison* poison) {
  const KernelInfo& kernel = state.kernel;
  const DispatchRequest& request = state.request;
  const u64 kernarg = reinterpret_cast<u64>(request.packet.kernarg_address);
  std::memset(w.s, 0, sizeof w.s);
  if (poison != nullptr) poison->fill(w.s, ordinary_scalars * sizeof(u32));
  ScalarWriter scalars{w};
  if (kernel.private_segment_buffer) {
    scalars.put(0);
    scalars.put(scratch_descriptor_high << 16);
    scalars.put(~0u);
    scalars.put(0);
  }
  if (kernel.dispatch_pointer) scalars.put64(request.packet_address);
  if (kernel.queue_pointer) scalars.put64(request.queue_address);
  if (kernel.kernarg_pointer) scalars.put64(kernarg);
  if (kernel.dispatch_id) scalars.put64(request.dispatch_id);
  if (kernel.flat_scratch) scalars.put64(0);
  if (kernel.private_segment_size) scalars.put(static_cast<u32>(state.private_bytes));
  for (unsigned k = 0; k < kernel.preload_dwords; ++k) {
    u32 value = 0;
    if (const std::byte* from = request.memory->translate(kernarg + 4 * (kernel.preload_offset + k), permission_read))
      std::memcpy(&value, from, 4);
    scalars.put(value);
  }
  scalars.next = kernel.user_scalars;
  for (unsigned k = 0; k < 3; ++k)
    if (kernel.workgroup_id[k]) scalars.put(group.id[k]);
  if (kernel.workgroup_info) scalars.put((first_wave ? 1u << 31 : 0u) | state.waves_per_group);
  if (kernel.scratch_offset) scalars.put(0);
}

void set_work_item_ids(Wave& w, const DispatchState& state, const std::array<u32, 3>& size, u32 first) {
  u32 *x = w.row(0), *y = w.row(1), *z = w.row(2);
  for (u32 i = 0; i < row_lanes; ++i) {
    const u32 flat = first + i;
    const u32 ids[3] = {flat % size[0], flat / size[0] % size[1], flat / size[0] / size[1]};
    if (state.target->packed_work_item_ids) {
      x[i] = ids[0] | ids[1] << 10 | ids[2] << 20;
    } else {
      x[i] = ids[0];
      if (state.kernel.work_item_dimensions > 1) y[i] = ids[1];
      if (state.kernel.work_item_dimensions > 2) z[i] = ids[2];
    }
  }
}

}  // namespace

std::unique_ptr<Workgroup> make_workgroup(DispatchState& state, u64 number) {
  const auto& packet = state.request.packet;
  auto group = std::make_unique<Workgroup>();
  group->id = {static_cast<u32>(number % state.groups[0]), static_cast<u32>(number / state.groups[0] % state.groups[1]),
               static_cast<u32>(number / state.groups[0] / state.groups[1])};
  // A workgroup at the end of the grid is smaller when the sizes don't divide.
  const u32 full[3] = {packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z};
  const u32 grid[3] = {packet.grid_size_x, packet.grid_size_y, packet.grid_size_z};
  std::array<u32, 3> size{};
  for (unsigned k = 0; k < 3; ++k) size[k] = std::min(full[k], grid[k] - group->id[k] * full[k]);
  const u32 items = size[0] * size[1] * size[2], lanes = state.kernel.wave32 ? 32 : 64;
  group->lds.resize(state.lds_bytes);
  Poison words{state.request.poison * 0xd1342543de82ef95 ^ number};
  Poison* const poison = state.request.poison == 0 ? nullptr : &words;
  if (poison != nullptr) poison->fill(group->lds.data(), group->lds.size());
  const KernelInfo& kernel = state.kernel;
  for (u32 first = 0; first < items; first += lanes) {
    auto wave = state.pool->take_wave();
    Wave& w = *wave;
    const u64 needed = state.private_bytes * lanes;
    w.reserve_scratch(needed);
    w.scratch_bytes = state.private_bytes;
    const unsigned ordinary = std::min({kernel.vector_registers, kernel.accumulator_offset, 256u});
    std::memset(w.v, 0, std::max(ordinary, 3u) * row_lanes * sizeof(u32));
    if (kernel.vector_registers > ordinary)
      std::memset(w.row(accumulator_base), 0,
                  std::min(kernel.vector_registers - ordinary, 256u) * row_lanes * sizeof(u32));
    else if (state.target->processor == "gfx908")
      std::memset(w.row(accumulator_base), 0, ordinary * row_lanes * sizeof(u32));
    if (poison != nullptr) {
      poison->fill(w.v, std::max(ordinary, 3u) * row_lanes * sizeof(u32));
      if (kernel.vector_registers > ordinary)
        poison->fill(w.row(accumulator_base),
                     std::min(kernel.vector_registers - ordinary, 256u) * row_lanes * sizeof(u32));
      if (needed != 0) poison->fill(w.scratch, needed);
    }
    set_scalars(w, state, *group, first == 0, poison);
    set_work_item_ids(w, state, size, first);
    const u32 live = std::min(lanes, items - first);
    w.lanes = static_cast<u8>(lanes);
    w.all_lanes = lanes == 64 ? ~u64{0} : 0xffffffffu;
    w.pair[reg_exec / 2] = live == 64 ? ~u64{0} : (u64{1} << live) - 1;
    w.fill_mask(w.exec());
    w.scc = false;
    w.state = WaveState::ready;
    w.yielded = w.in_global_sync = false;
    w.index_mode = 0;
    w.mode = kernel.mode;
    w.mode_changed();
    w.trap_status = 0;
    w.index = first / lanes;
    w.workgroup = group.get();
    w.dispatch = &state;
    w.code = state.code;
    w.target = state.target;
    w.next = state.code->at(kernel.entry);
    group->waves.push_back(std::move(wave));
  }
  group->live = static_cast<unsigned>(group->waves.size());
  return group;
}

}  // namespace kerncap::softgpu::isa
