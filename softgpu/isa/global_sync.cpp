// Global wave sync: barriers and semaphores of the whole device (ds_gws_*; operations as in the GCN3 and CDNA manuals).
// HIP's cooperative launch sets a barrier up with a kernel of its own, so that the state outlives a dispatch.
//
// A wave that has to wait gives up its turn and executes the instruction again; other workgroups become resident
// meanwhile.
#include "softgpu/isa/dispatch.h"
#include "softgpu/isa/valu.h"

namespace kerncap::softgpu::isa {
namespace {

// m0's bits 16-21 and the offset number the resource.
GlobalSync& resource_of(Wave& w, const Operation* op) {
  return w.dispatch->device->sync[((w.s[reg_m0] >> 16) + op->immediate) % DeviceState::sync_resources];
}
// The value is that of the first active lane.
u32 first_value(Wave& w, const Operation* op) {
  const u64 exec = w.exec();
  return plain_source(w, op, 0)[exec == 0 ? 0 : std::countr_zero(exec)];
}
const Operation* wait(Wave& w, const Operation* op) {
  w.next = op;
  w.yielded = true;
  return nullptr;
}

const Operation* initialise(Wave& w, const Operation* op) {
  ++w.engine->counters.lds;
  const std::scoped_lock lock(w.dispatch->device->mutex);
  GlobalSync& resource = resource_of(w, op);
  resource.counter = static_cast<i32>(first_value(w, op));
  resource.flag = false;
  return following(op);
}

// The counter says how many more waves the barrier waits for. The last one turns the flag over, which the others watch.
const Operation* barrier(Wave& w, const Operation* op) {
  const std::scoped_lock lock(w.dispatch->device->mutex);
  GlobalSync& resource = resource_of(w, op);
  if (!w.in_global_sync) {
    ++w.engine->counters.lds;
    w.global_flag = resource.flag;
    if (resource.counter <= 0) {
      resource.flag = !resource.flag;
      resource.counter = static_cast<i32>(first_value(w, op));
      return following(op);
    }
    --resource.counter;
    w.in_global_sync = true;
  }
  if (resource.flag == w.global_flag) return wait(w, op);
  w.in_global_sync = false;
  return following(op);
}

template <bool by_value>
const Operation* signal(Wave& w, const Operation* op) {
  ++w.engine->counters.lds;
  const std::scoped_lock lock(w.dispatch->device->mutex);
  resource_of(w, op).counter += by_value ? static_cast<i32>(first_value(w, op)) : 1;
  return following(op);
}

const Operation* acquire(Wave& w, const Operation* op) {
  const std::scoped_lock lock(w.dispatch->device->mutex);
  GlobalSync& resource = resource_of(w, op);
  if (!w.in_global_sync) ++w.engine->counters.lds;
  if (resource.counter > 0) {
    --resource.counter;
    if (w.in_global_sync) --resource.waiting;
    w.in_global_sync = false;
    return following(op);
  }
  if (!w.in_global_sync) ++resource.waiting;
  w.in_global_sync = true;
  return wait(w, op);
}

const Operation* release_all(Wave& w, const Operation* op) {
  ++w.engine->counters.lds;
  const std::scoped_lock lock(w.dispatch->device->mutex);
  GlobalSync& resource = resource_of(w, op);
  resource.counter = static_cast<i32>(resource.waiting);
  return following(op);
}

Instruction row(const char* name, Execute execute, bool value) {
  Instruction made;
  made.name = name;
  made.family = Family::lds;
  made.execute = execute;
  made.flags = instruction_global_sync;
  if (value) made.sources[0] = Type::wide;
  return made;
}

}  // namespace

std::span<const Instruction> global_sync_instructions() {
  static const auto* table = new std::vector<Instruction>{
      row("ds_gws_init", &initialise, true),       row("ds_gws_barrier", &barrier, true),
      row("ds_gws_sema_v", &signal<false>, false), row("ds_gws_sema_br", &signal<true>, true),
      row("ds_gws_sema_p", &acquire, false),       row("ds_gws_sema_release_all", &release_all, false),
  };
  return *table;
}

}  // namespace kerncap::softgpu::isa
