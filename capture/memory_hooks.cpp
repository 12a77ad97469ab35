#include "capture/memory_hooks.h"

#include <chrono>

#include "capture/session.h"

namespace kerncap::capture {
namespace {

using snapshot::RegionKind;

constexpr std::uint64_t page = 4096;

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
std::uint64_t whole_pages(std::uint64_t size) { return (size + page - 1) / page * page; }

// Frees and host-side copies wait while a kernel is held: what is being read must stay.
void wait_while_held(Session& s) { s.hold.wait(std::chrono::milliseconds(s.config.kernel_timeout_ms)); }

void add(Session& s, const Allocation& allocation) noexcept {
  try {
    const std::lock_guard lock(s.memory_mutex);
    s.memory.add(allocation);
  } catch (...) {
    // Out of memory: this range would be missing without a word, so no snapshot may be made any more.
    s.lose_track();
  }
}

// The runtime frees; the map forgets first, because another thread may get the same address at once. A free that the
// runtime refused leaves the range as it was.
template <typename Free>
hsa_status_t forget_around(std::uint64_t address, Free&& free) {
  Session* const s = session();
  if (s == nullptr) return free();
  wait_while_held(*s);
  std::optional<Allocation> old;
  {
    const std::lock_guard lock(s->memory_mutex);
    const Allocation* found = s->memory.find(address);
    if (found != nullptr && found->address == address) {
      old = *found;
      s->memory.remove(address);
    }
  }
  const hsa_status_t status = free();
  if (status != HSA_STATUS_SUCCESS && old) add(*s, *old);
  return status;
}

// ---- pools and regions --------------------------------------------------------------------------------------------

hsa_status_t pool_allocate(hsa_amd_memory_pool_t pool, std::size_t size, std::uint32_t flags, void** out) {
  const hsa_status_t status = runtime().amd.hsa_amd_memory_pool_allocate_fn(pool, size, flags, out);
  if (Session* const s = session(); s != nullptr && status == HSA_STATUS_SUCCESS) {
    Allocation a;
    a.address = address_of(*out);
    a.size = whole_pages(size);  // the runtime's granule: the rest of the last page belongs to it, too
    a.pool = pool.handle;
    a.allocation_flags = flags;
    add(*s, a);
  }
  return status;
}

hsa_status_t pool_free(void* pointer) {
  return forget_around(address_of(pointer), [&] { return runtime().amd.hsa_amd_memory_pool_free_fn(pointer); });
}

hsa_status_t memory_allocate(hsa_region_t region, std::size_t size, void** out) {
  const hsa_status_t status = runtime().core.hsa_memory_allocate_fn(region, size, out);
  if (Session* const s = session(); s != nullptr && status == HSA_STATUS_SUCCESS) {
    Allocation a;
    a.address = address_of(*out);
    a.size = whole_pages(size);
    a.pool = region.handle;
    add(*s, a);
  }
  return status;
}

hsa_status_t memory_free(void* pointer) {
  return forget_around(address_of(pointer), [&] { return runtime().core.hsa_memory_free_fn(pointer); });
}

// ---- the application's own pages ----------------------------------------------------------------------------------

void locked(void* host, std::size_t size, void** agent) {
  Session* const s = session();
  if (s == nullptr) return;
  Allocation a;
  a.address = address_of(agent != nullptr ? *agent : host);
  a.size = size;
  a.kind = RegionKind::registered;
  a.host = true;
  a.host_address = address_of(host);
  add(*s, a);
}

hsa_status_t memory_lock(void* host, std::size_t size, hsa_agent_t* agents, int count, void** agent) {
  const hsa_status_t status = runtime().amd.hsa_amd_memory_lock_fn(host, size, agents, count, agent);
  if (status == HSA_STATUS_SUCCESS) locked(host, size, agent);
  return status;
}

hsa_status_t memory_lock_to_pool(void* host, std::size_t size, hsa_agent_t* agents, int count,
                                 hsa_amd_memory_pool_t pool, std::uint32_t flags, void** agent) {
  const hsa_status_t status =
      runtime().amd.hsa_amd_memory_lock_to_pool_fn(host, size, agents, count, pool, flags, agent);
  if (status == HSA_STATUS_SUCCESS) locked(host, size, agent);
  return status;
}

hsa_status_t memory_unlock(void* host) {
  if (Session* const s = session()) {
    wait_while_held(*s);
    const std::lock_guard lock(s->memory_mutex);
    s->memory.unlock(address_of(host));
  }
  return runtime().amd.hsa_amd_memory_unlock_fn(host);
}

// Managed memory on systems with HMM is plain host memory with attributes: whatever is not known otherwise.
hsa_status_t svm_attributes_set(void* pointer, std::size_t size, hsa_amd_svm_attribute_pair_t* attributes,
                                std::size_t count) {
  const hsa_status_t status = runtime().amd.hsa_amd_svm_attributes_set_fn(pointer, size, attributes, count);
  if (Session* const s = session(); s != nullptr && status == HSA_STATUS_SUCCESS && size != 0) {
    Allocation a;
    a.address = a.host_address = address_of(pointer);
    a.size = size;
    a.kind = RegionKind::managed;
    a.host = true;
    try {
      const std::lock_guard lock(s->memory_mutex);
      std::vector<snapshot::Region> known;
      for (const Allocation& other : s->memory.list()) {
        if (other.kind == RegionKind::managed) continue;
        snapshot::Region& r = known.emplace_back();
        r.address = other.address;
        r.size = other.size;
      }
      for (const Allocation& piece : without({a}, known)) s->memory.add(piece);
    } catch (...) {
      s->lose_track();
    }
  }
  return status;
}

// ---- memory of others ---------------------------------------------------------------------------------------------

void attached(void* pointer, std::size_t size) {
  Session* const s = session();
  if (s == nullptr) return;
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  Allocation a;
  a.kind = RegionKind::ipc;
  a.address = address_of(pointer);
  a.size = whole_pages(size);
  if (runtime().amd.hsa_amd_pointer_info_fn(pointer, &info, nullptr, nullptr, nullptr) == HSA_STATUS_SUCCESS) {
    a.agent = info.agentOwner.handle;
    a.pool_flags = info.global_flags;
  }
  add(*s, a);
}

hsa_status_t ipc_attach(const hsa_amd_ipc_memory_t* handle, std::size_t size, std::uint32_t count,
                        const hsa_agent_t* agents, void** out) {
  const hsa_status_t status = runtime().amd.hsa_amd_ipc_memory_attach_fn(handle, size, count, agents, out);
  if (status == HSA_STATUS_SUCCESS) attached(*out, size);
  return status;
}

hsa_status_t ipc_detach(void* pointer) {
  return forget_around(address_of(pointer), [&] { return runtime().amd.hsa_amd_ipc_memory_detach_fn(pointer); });
}

hsa_status_t interop_map(std::uint32_t count, hsa_agent_t* agents, int interop, std::uint32_t flags, std::size_t* size,
                         void** out, std::size_t* metadata_size, const void** metadata) {
  const hsa_status_t status =
      runtime().amd.hsa_amd_interop_map_buffer_fn(count, agents, interop, flags, size, out, metadata_size, metadata);
  if (status == HSA_STATUS_SUCCESS) attached(*out, *size);
  return status;
}

hsa_status_t interop_unmap(void* pointer) {
  return forget_around(address_of(pointer), [&] { return runtime().amd.hsa_amd_interop_unmap_buffer_fn(pointer); });
}

// ---- virtual memory (ROCr 6) --------------------------------------------------------------------------------------

hsa_status_t vmem_handle_create(hsa_amd_memory_pool_t pool, std::size_t size, int type, std::uint64_t flags,
                                VmemHandle* handle) {
  const hsa_status_t status = runtime().tail.vmem_handle_create(pool, size, type, flags, handle);
  if (Session* const s = session(); s != nullptr && status == HSA_STATUS_SUCCESS) {
    try {
      const std::lock_guard lock(s->memory_mutex);
      s->vmem_pools[handle->handle] = pool.handle;
    } catch (...) {
      s->lose_track();
    }
  }
  return status;
}

hsa_status_t vmem_map(void* va, std::size_t size, std::size_t offset, VmemHandle handle, std::uint64_t flags) {
  const hsa_status_t status = runtime().tail.vmem_map(va, size, offset, handle, flags);
  if (Session* const s = session(); s != nullptr && status == HSA_STATUS_SUCCESS) {
    Allocation a;
    a.kind = RegionKind::vmem;
    a.address = address_of(va);
    a.size = size;
    {
      const std::lock_guard lock(s->memory_mutex);
      if (const auto pool = s->vmem_pools.find(handle.handle); pool != s->vmem_pools.end()) a.pool = pool->second;
    }
    if (a.pool == 0) {  // imported from another process
      hsa_amd_pointer_info_t info{};
      info.size = sizeof info;
      if (runtime().amd.hsa_amd_pointer_info_fn(va, &info, nullptr, nullptr, nullptr) == HSA_STATUS_SUCCESS)
        a.agent = info.agentOwner.handle;
    }
    add(*s, a);
  }
  return status;
}

hsa_status_t vmem_unmap(void* va, std::size_t size) {
  Session* const s = session();
  if (s != nullptr) wait_while_held(*s);
  const hsa_status_t status = runtime().tail.vmem_unmap(va, size);
  if (s != nullptr && status == HSA_STATUS_SUCCESS) {
    // No other thread can map here before: the reservation is still the application's.
    const std::lock_guard lock(s->memory_mutex);
    s->memory.remove_range(address_of(va), size);
  }
  return status;
}

// ---- what the host does to memory while a kernel is held -----------------------------------------------------------
// A copy that waits for the held kernel would also block the engine that our own copies need.

void wait_if_held() {
  if (Session* const s = session()) wait_while_held(*s);
}

hsa_status_t async_copy(void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent, std::size_t size,
                        std::uint32_t count, const hsa_signal_t* dependencies, hsa_signal_t completion) {
  wait_if_held();
  return runtime().amd.hsa_amd_memory_async_copy_fn(to, to_agent, from, from_agent, size, count, dependencies,
                                                    completion);
}

hsa_status_t async_copy_on_engine(void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent,
                                  std::size_t size, std::uint32_t count, const hsa_signal_t* dependencies,
                                  hsa_signal_t completion, int engine, bool force) {
  wait_if_held();
  return runtime().middle.memory_async_copy_on_engine(to, to_agent, from, from_agent, size, count, dependencies,
                                                      completion, engine, force);
}

hsa_status_t async_copy_rect(const hsa_pitched_ptr_t* to, const hsa_dim3_t* to_offset, const hsa_pitched_ptr_t* from,
                             const hsa_dim3_t* from_offset, const hsa_dim3_t* range, hsa_agent_t agent,
                             hsa_amd_copy_direction_t direction, std::uint32_t count, const hsa_signal_t* dependencies,
                             hsa_signal_t completion) {
  wait_if_held();
  return runtime().amd.hsa_amd_memory_async_copy_rect_fn(to, to_offset, from, from_offset, range, agent, direction,
                                                         count, dependencies, completion);
}

hsa_status_t memory_fill(void* pointer, std::uint32_t value, std::size_t count) {
  wait_if_held();
  return runtime().amd.hsa_amd_memory_fill_fn(pointer, value, count);
}

hsa_status_t memory_copy(void* to, const void* from, std::size_t size) {
  wait_if_held();
  return runtime().core.hsa_memory_copy_fn(to, from, size);
}

}  // namespace

void replace_memory_functions(HsaApiTable& table) {
  const auto replace = [](auto& part, auto member, auto ours) {
    if (auto* place = entry(part, member)) *place = ours;
  };
  CoreApiTable& core = *table.core_;
  replace(core, &CoreApiTable::hsa_memory_allocate_fn, memory_allocate);
  replace(core, &CoreApiTable::hsa_memory_free_fn, memory_free);
  replace(core, &CoreApiTable::hsa_memory_copy_fn, memory_copy);
  AmdExtTable& amd = *table.amd_ext_;
  replace(amd, &AmdExtTable::hsa_amd_memory_pool_allocate_fn, pool_allocate);
  replace(amd, &AmdExtTable::hsa_amd_memory_pool_free_fn, pool_free);
  replace(amd, &AmdExtTable::hsa_amd_memory_lock_fn, memory_lock);
  replace(amd, &AmdExtTable::hsa_amd_memory_lock_to_pool_fn, memory_lock_to_pool);
  replace(amd, &AmdExtTable::hsa_amd_memory_unlock_fn, memory_unlock);
  replace(amd, &AmdExtTable::hsa_amd_svm_attributes_set_fn, svm_attributes_set);
  replace(amd, &AmdExtTable::hsa_amd_ipc_memory_attach_fn, ipc_attach);
  replace(amd, &AmdExtTable::hsa_amd_ipc_memory_detach_fn, ipc_detach);
  replace(amd, &AmdExtTable::hsa_amd_interop_map_buffer_fn, interop_map);
  replace(amd, &AmdExtTable::hsa_amd_interop_unmap_buffer_fn, interop_unmap);
  replace(amd, &AmdExtTable::hsa_amd_memory_async_copy_fn, async_copy);
  replace(amd, &AmdExtTable::hsa_amd_memory_async_copy_rect_fn, async_copy_rect);
  replace(amd, &AmdExtTable::hsa_amd_memory_fill_fn, memory_fill);
  if (AmdMiddle* middle = live_middle(amd)) middle->memory_async_copy_on_engine = async_copy_on_engine;
  if (AmdTail* tail = live_tail(amd)) {
    tail->vmem_handle_create = vmem_handle_create;
    tail->vmem_map = vmem_map;
    tail->vmem_unmap = vmem_unmap;
  }
}

}  // namespace kerncap::capture
