#include "capture/tests/stand_in_runtime.h"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace kerncap::capture::testing {
namespace {

using Packet = hsa_kernel_dispatch_packet_t;

StandInRuntime* the_runtime = nullptr;
std::mutex calls_mutex;
std::map<std::string, unsigned> call_counts;
std::string failing_function;
unsigned failing_call = 0;

// True when this call is the one that was chosen to fail.
bool counted(const char* function) {
  const std::lock_guard lock(calls_mutex);
  const unsigned n = call_counts[function]++;
  return function == failing_function && n == failing_call;
}
#define KERNCAP_COUNT()                             \
  do {                                              \
    if (counted(__func__)) return HSA_STATUS_ERROR; \
  } while (0)

// ---- signals ------------------------------------------------------------------------------------------------------

struct HardwareQueue;
struct Signal {
  std::atomic<hsa_signal_value_t> value{0};
  HardwareQueue* doorbell_of = nullptr;
};
Signal& of(hsa_signal_t signal) { return *reinterpret_cast<Signal*>(signal.handle); }

hsa_status_t signal_create(hsa_signal_value_t value, std::uint32_t, const hsa_agent_t*, hsa_signal_t* out) {
  KERNCAP_COUNT();
  *out = make_signal(value);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t signal_destroy(hsa_signal_t signal) {
  KERNCAP_COUNT();
  delete &of(signal);
  return HSA_STATUS_SUCCESS;
}
hsa_signal_value_t signal_load(hsa_signal_t signal) { return of(signal).value.load(); }
hsa_signal_value_t signal_wait(hsa_signal_t signal, hsa_signal_condition_t, hsa_signal_value_t value,
                               std::uint64_t ticks, hsa_wait_state_t) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min<std::uint64_t>(ticks, 1000000000));
  while (of(signal).value.load() >= value && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return of(signal).value.load();
}

// ---- queues -------------------------------------------------------------------------------------------------------

std::mutex kernels_mutex;
std::map<std::uint64_t, std::function<void(const void*)>> kernels;

struct HardwareQueue {
  hsa_queue_t queue{};
  std::vector<Packet> ring = std::vector<Packet>(64);
  std::atomic<std::uint64_t> write{0}, read{0};
  hsa_amd_queue_intercept_handler handler = nullptr;
  void* data = nullptr;
  std::recursive_mutex ring_mutex;  // the runtime's queue lock
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Packet> submitted;

  HardwareQueue() {
    for (Packet& p : ring) p.header = HSA_PACKET_TYPE_INVALID;
    queue.base_address = ring.data();
    queue.size = static_cast<std::uint32_t>(ring.size());
    auto* doorbell = new Signal;
    doorbell->doorbell_of = this;
    queue.doorbell_signal.handle = reinterpret_cast<std::uint64_t>(doorbell);
    std::thread([this] { run(); }).detach();
  }

  void hardware(const void* packets, std::uint64_t count) {
    const std::lock_guard lock(mutex);
    const auto* p = static_cast<const Packet*>(packets);
    submitted.insert(submitted.end(), p, p + count);
    changed.notify_one();
  }

  void intercept(const Packet* packets, std::uint64_t count);

  void ring_doorbell() {
    const std::lock_guard lock(ring_mutex);
    while (read < write) {
      Packet& slot = ring[read % ring.size()];
      const std::uint16_t header = __atomic_load_n(&slot.header, __ATOMIC_ACQUIRE);
      if ((header & 0xff) == HSA_PACKET_TYPE_INVALID) break;
      const Packet copy = slot;
      slot.header = HSA_PACKET_TYPE_INVALID;
      ++read;
      intercept(&copy, 1);
    }
  }

  // In order, one packet after the other: the strictest queue that the specification allows.
  void run() {
    while (true) {
      Packet packet;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !submitted.empty(); });
        packet = submitted.front();
        submitted.pop_front();
      }
      if ((packet.header & 0xff) == HSA_PACKET_TYPE_BARRIER_AND) {
        hsa_barrier_and_packet_t barrier;
        std::memcpy(&barrier, &packet, sizeof barrier);
        for (const hsa_signal_t dependency : barrier.dep_signal)
          while (dependency.handle != 0 && of(dependency).value.load() > 0)
            std::this_thread::sleep_for(std::chrono::microseconds(20));
      } else {
        std::function<void(const void*)> kernel;
        {
          const std::lock_guard lock(kernels_mutex);
          kernel = kernels.at(packet.kernel_object);
        }
        kernel(packet.kernarg_address);
      }
      if (packet.completion_signal.handle != 0) of(packet.completion_signal).value.fetch_sub(1);
    }
  }
};

thread_local HardwareQueue* writing_queue = nullptr;
void write_packets(const void* packets, std::uint64_t count) { writing_queue->hardware(packets, count); }

void HardwareQueue::intercept(const Packet* packets, std::uint64_t count) {
  const std::lock_guard lock(ring_mutex);
  writing_queue = this;
  if (handler != nullptr)
    handler(packets, count, 0, data, write_packets);
  else
    hardware(packets, count);
  writing_queue = nullptr;
}

HardwareQueue& of(const hsa_queue_t* queue) {
  return *const_cast<HardwareQueue*>(reinterpret_cast<const HardwareQueue*>(queue));  // its first member
}

hsa_status_t queue_create(hsa_agent_t, std::uint32_t, hsa_queue_type32_t type,
                          void (*)(hsa_status_t, hsa_queue_t*, void*), void*, std::uint32_t, std::uint32_t,
                          hsa_queue_t** out) {
  KERNCAP_COUNT();
  auto* queue = new HardwareQueue;
  queue->queue.type = type;
  *out = &queue->queue;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t queue_intercept_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                                    void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data, std::uint32_t p,
                                    std::uint32_t g, hsa_queue_t** out) {
  KERNCAP_COUNT();
  return queue_create(agent, size, type, callback, data, p, g, out);
}
hsa_status_t queue_intercept_register(hsa_queue_t* queue, hsa_amd_queue_intercept_handler handler, void* data) {
  KERNCAP_COUNT();
  of(queue).handler = handler;
  of(queue).data = data;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t queue_destroy(hsa_queue_t*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
std::uint64_t queue_load_write(const hsa_queue_t* queue) { return of(queue).write.load(); }
std::uint64_t queue_load_read(const hsa_queue_t* queue) { return of(queue).read.load(); }
std::uint64_t queue_add_write(const hsa_queue_t* queue, std::uint64_t n) { return of(queue).write.fetch_add(n); }

void signal_store(hsa_signal_t signal, hsa_signal_value_t value) {
  if (of(signal).doorbell_of != nullptr) return of(signal).doorbell_of->ring_doorbell();
  of(signal).value.store(value);
}

// ---- the machine --------------------------------------------------------------------------------------------------

template <typename T>
hsa_status_t put(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t system_get_info(hsa_system_info_t what, void* out) {
  KERNCAP_COUNT();
  if (what == HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY) return put(out, std::uint64_t{1000000000});
  if (what == HSA_SYSTEM_INFO_VERSION_MAJOR || what == HSA_SYSTEM_INFO_VERSION_MINOR) return put(out, std::uint16_t{1});
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
hsa_status_t iterate_agents(hsa_status_t (*callback)(hsa_agent_t, void*), void* data) {
  KERNCAP_COUNT();
  callback(cpu, data);
  callback(gpu, data);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t agent_get_info(hsa_agent_t agent, hsa_agent_info_t what, void* out) {
  KERNCAP_COUNT();
  if (what == HSA_AGENT_INFO_DEVICE)
    return put(out, agent.handle == gpu.handle ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU);
  if (what == HSA_AGENT_INFO_NAME) {
    std::strcpy(static_cast<char*>(out), "gfx90a");
    return HSA_STATUS_SUCCESS;
  }
  return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
hsa_status_t agent_iterate_isas(hsa_agent_t, hsa_status_t (*)(hsa_isa_t, void*), void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t isa_get_info_alt(hsa_isa_t, hsa_isa_info_t, void*) { return HSA_STATUS_ERROR; }
hsa_status_t iterate_pools(hsa_agent_t agent, hsa_status_t (*callback)(hsa_amd_memory_pool_t, void*), void* data) {
  KERNCAP_COUNT();
  if (agent.handle == cpu.handle)
    for (const std::uint64_t pool : {host_fine, host_coarse}) callback({pool}, data);
  else
    for (const std::uint64_t pool : {device_coarse, device_fine, device_extended}) callback({pool}, data);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t pool_get_info(hsa_amd_memory_pool_t pool, hsa_amd_memory_pool_info_t what, void* out) {
  KERNCAP_COUNT();
  switch (what) {
    case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
      return put(out, HSA_AMD_SEGMENT_GLOBAL);
    case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
      return put(out, std::uint32_t{pool.handle == host_coarse || pool.handle == device_coarse ? 4u
                                    : pool.handle == device_extended                           ? 8u
                                                                                               : 2u});
    case HSA_AMD_MEMORY_POOL_INFO_SIZE:
      return put(out, std::size_t{1} << 30);
    case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
      return put(out, true);
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

// ---- memory -------------------------------------------------------------------------------------------------------

void* pages(std::size_t size) {
  void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

hsa_status_t pool_allocate(hsa_amd_memory_pool_t, std::size_t size, std::uint32_t, void** out) {
  KERNCAP_COUNT();
  *out = pages(size);
  return *out != nullptr ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}
hsa_status_t pool_free(void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;  // the pages stay, so that a stale read shows as wrong content and not as a crash
}
hsa_status_t memory_allocate(hsa_region_t, std::size_t size, void** out) {
  KERNCAP_COUNT();
  *out = pages(size);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_free(void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_copy(void* to, const void* from, std::size_t size) {
  KERNCAP_COUNT();
  std::memcpy(to, from, size);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t allow_access(std::uint32_t, const hsa_agent_t*, const std::uint32_t*, const void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_lock(void* host, std::size_t, hsa_agent_t*, int, void** out) {
  KERNCAP_COUNT();
  *out = host;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_lock_to_pool(void* host, std::size_t, hsa_agent_t*, int, hsa_amd_memory_pool_t, std::uint32_t,
                                 void** out) {
  KERNCAP_COUNT();
  *out = host;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_unlock(void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t svm_attributes_set(void*, std::size_t, hsa_amd_svm_attribute_pair_t*, std::size_t) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t pointer_info(const void*, hsa_amd_pointer_info_t* info, void* (*)(std::size_t), std::uint32_t*,
                          hsa_agent_t**) {
  KERNCAP_COUNT();
  info->agentOwner = gpu;
  info->global_flags = 4;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t ipc_attach(const hsa_amd_ipc_memory_t*, std::size_t size, std::uint32_t, const hsa_agent_t*, void** out) {
  KERNCAP_COUNT();
  *out = pages(size);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t ipc_detach(void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t interop_map(std::uint32_t, hsa_agent_t*, int, std::uint32_t, std::size_t* size, void** out, std::size_t*,
                         const void**) {
  KERNCAP_COUNT();
  *size = 128 << 10;
  *out = pages(*size);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t interop_unmap(void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t vmem_handle_create(hsa_amd_memory_pool_t, std::size_t, int, std::uint64_t, VmemHandle* out) {
  KERNCAP_COUNT();
  static std::uint64_t next = 1;
  out->handle = next++;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t vmem_map(void*, std::size_t, std::size_t, VmemHandle, std::uint64_t) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t vmem_unmap(void*, std::size_t) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t async_copy(void* to, hsa_agent_t, const void* from, hsa_agent_t, std::size_t size, std::uint32_t,
                        const hsa_signal_t*, hsa_signal_t completion) {
  KERNCAP_COUNT();
  std::memcpy(to, from, size);
  of(completion).value.fetch_sub(1);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t memory_fill(void* to, std::uint32_t value, std::size_t count) {
  KERNCAP_COUNT();
  std::fill_n(static_cast<std::uint32_t*>(to), count, value);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t async_copy_on_engine(void* to, hsa_agent_t, const void* from, hsa_agent_t, std::size_t size, std::uint32_t,
                                  const hsa_signal_t*, hsa_signal_t completion, int, bool) {
  KERNCAP_COUNT();
  std::memcpy(to, from, size);
  of(completion).value.fetch_sub(1);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t async_copy_rect(const hsa_pitched_ptr_t* to, const hsa_dim3_t*, const hsa_pitched_ptr_t* from,
                             const hsa_dim3_t*, const hsa_dim3_t* range, hsa_agent_t, hsa_amd_copy_direction_t,
                             std::uint32_t, const hsa_signal_t*, hsa_signal_t completion) {
  KERNCAP_COUNT();
  std::memcpy(to->base, from->base, range->x);
  of(completion).value.fetch_sub(1);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t profiling_enable(hsa_queue_t*, int) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t profiling_time(hsa_agent_t, hsa_signal_t, hsa_amd_profiling_dispatch_time_t* out) {
  KERNCAP_COUNT();
  *out = {1000, 3500};
  return HSA_STATUS_SUCCESS;
}
hsa_status_t event_handler(hsa_amd_system_event_callback_t, void*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}

// ---- code ---------------------------------------------------------------------------------------------------------

struct Executable {
  std::vector<std::byte> bytes;
  std::byte* base = nullptr;
  std::vector<StandInKernel> kernels;
};
std::optional<Executable> executable;
constexpr std::uint64_t loaded_size = 8192;

hsa_status_t executable_freeze(hsa_executable_t, const char*) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t executable_destroy(hsa_executable_t) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t reader_create(const void*, std::size_t, hsa_code_object_reader_t* out) {
  KERNCAP_COUNT();
  out->handle = 71;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t reader_destroy(hsa_code_object_reader_t) {
  KERNCAP_COUNT();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t iterate_agent_symbols(hsa_executable_t e, hsa_agent_t a,
                                   hsa_status_t (*callback)(hsa_executable_t, hsa_agent_t, hsa_executable_symbol_t,
                                                            void*),
                                   void* data) {
  KERNCAP_COUNT();
  for (std::size_t i = 0; i < executable->kernels.size(); ++i) callback(e, a, {i}, data);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t symbol_get_info(hsa_executable_symbol_t symbol, hsa_executable_symbol_info_t what, void* out) {
  KERNCAP_COUNT();
  const StandInKernel& kernel = executable->kernels.at(symbol.handle);
  switch (what) {
    case HSA_EXECUTABLE_SYMBOL_INFO_TYPE:
      return put(out, HSA_SYMBOL_KIND_KERNEL);
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH:
      return put(out, static_cast<std::uint32_t>(kernel.symbol.size()));
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME:
      std::memcpy(out, kernel.symbol.data(), kernel.symbol.size());
      return HSA_STATUS_SUCCESS;
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
      return put(out, reinterpret_cast<std::uint64_t>(executable->base) + 64 * (symbol.handle + 1));
    default:
      return put(out, std::uint32_t{16});
  }
}
hsa_status_t loader_iterate(hsa_executable_t e,
                            hsa_status_t (*callback)(hsa_executable_t, hsa_loaded_code_object_t, void*), void* data) {
  KERNCAP_COUNT();
  callback(e, {1}, data);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t loader_info(hsa_loaded_code_object_t, hsa_ven_amd_loader_loaded_code_object_info_t what, void* out) {
  KERNCAP_COUNT();
  switch (what) {
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT:
      return put(out, gpu);
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE:
      return put(out, executable->base);
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE:
      return put(out, loaded_size);
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA:
      return put(out, executable->base);
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE:
      return put(out, std::uint32_t{HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY});
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE:
      return put(out, executable->bytes.data());
    case HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE:
      return put(out, std::uint64_t{executable->bytes.size()});
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}
hsa_status_t extension_table(std::uint16_t, std::uint16_t, std::size_t, void* out) {
  KERNCAP_COUNT();
  hsa_ven_amd_loader_1_01_pfn_t loader{};
  loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects = loader_iterate;
  loader.hsa_ven_amd_loader_loaded_code_object_get_info = loader_info;
  return put(out, loader);
}

struct WholeAmdTable {  // as ROCr 6 lays it out
  alignas(AmdExtTable) char bytes[amd_common_end + sizeof(AmdMiddle) + sizeof(AmdTail)];
};

}  // namespace

StandInRuntime::StandInRuntime() {
  the_runtime = this;
  static CoreApiTable core_table;
  static WholeAmdTable amd_table;
  std::memset(static_cast<void*>(&core_table), 0, sizeof core_table);
  std::memset(&amd_table, 0, sizeof amd_table);
  root_.core_ = &core_table;
  root_.amd_ext_ = reinterpret_cast<AmdExtTable*>(&amd_table);
  core().version = {2, sizeof(CoreApiTable), 0, 0};
  root_.amd_ext_->version = {2, sizeof(WholeAmdTable), 0, 0};

  CoreApiTable& c = core();
  c.hsa_signal_create_fn = signal_create;
  c.hsa_signal_destroy_fn = signal_destroy;
  c.hsa_signal_load_scacquire_fn = signal_load;
  c.hsa_signal_wait_scacquire_fn = signal_wait;
  c.hsa_signal_store_relaxed_fn = signal_store;
  c.hsa_signal_store_screlease_fn = signal_store;
  c.hsa_queue_create_fn = queue_create;
  c.hsa_queue_destroy_fn = queue_destroy;
  c.hsa_queue_load_write_index_scacquire_fn = queue_load_write;
  c.hsa_queue_load_read_index_scacquire_fn = queue_load_read;
  c.hsa_queue_add_write_index_scacq_screl_fn = queue_add_write;
  c.hsa_system_get_info_fn = system_get_info;
  c.hsa_system_get_major_extension_table_fn = extension_table;
  c.hsa_iterate_agents_fn = iterate_agents;
  c.hsa_agent_get_info_fn = agent_get_info;
  c.hsa_agent_iterate_isas_fn = agent_iterate_isas;
  c.hsa_isa_get_info_alt_fn = isa_get_info_alt;
  c.hsa_memory_allocate_fn = memory_allocate;
  c.hsa_memory_free_fn = memory_free;
  c.hsa_memory_copy_fn = memory_copy;
  c.hsa_status_string_fn = [](hsa_status_t, const char**) { return HSA_STATUS_ERROR; };
  c.hsa_executable_freeze_fn = executable_freeze;
  c.hsa_executable_destroy_fn = executable_destroy;
  c.hsa_executable_iterate_agent_symbols_fn = iterate_agent_symbols;
  c.hsa_executable_symbol_get_info_fn = symbol_get_info;
  c.hsa_code_object_reader_create_from_memory_fn = reader_create;
  c.hsa_code_object_reader_destroy_fn = reader_destroy;

  AmdExtTable a{};
  a.version = root_.amd_ext_->version;
  a.hsa_amd_queue_intercept_create_fn = queue_intercept_create;
  a.hsa_amd_queue_intercept_register_fn = queue_intercept_register;
  a.hsa_amd_agent_iterate_memory_pools_fn = iterate_pools;
  a.hsa_amd_memory_pool_get_info_fn = pool_get_info;
  a.hsa_amd_memory_pool_allocate_fn = pool_allocate;
  a.hsa_amd_memory_pool_free_fn = pool_free;
  a.hsa_amd_agents_allow_access_fn = allow_access;
  a.hsa_amd_memory_lock_fn = memory_lock;
  a.hsa_amd_memory_lock_to_pool_fn = memory_lock_to_pool;
  a.hsa_amd_memory_unlock_fn = memory_unlock;
  a.hsa_amd_svm_attributes_set_fn = svm_attributes_set;
  a.hsa_amd_svm_prefetch_async_fn = nullptr;
  a.hsa_amd_pointer_info_fn = pointer_info;
  a.hsa_amd_ipc_memory_attach_fn = ipc_attach;
  a.hsa_amd_ipc_memory_detach_fn = ipc_detach;
  a.hsa_amd_interop_map_buffer_fn = interop_map;
  a.hsa_amd_interop_unmap_buffer_fn = interop_unmap;
  a.hsa_amd_memory_async_copy_fn = async_copy;
  a.hsa_amd_memory_async_copy_rect_fn = async_copy_rect;
  a.hsa_amd_memory_fill_fn = memory_fill;
  a.hsa_amd_profiling_set_profiler_enabled_fn = profiling_enable;
  a.hsa_amd_profiling_get_dispatch_time_fn = profiling_time;
  a.hsa_amd_register_system_event_handler_fn = event_handler;
  auto* live = reinterpret_cast<char*>(root_.amd_ext_);
  const auto* ours = reinterpret_cast<const char*>(&a);
  std::memcpy(live, ours, amd_middle_offset);
  std::memcpy(live + amd_middle_offset + amd_shift(a), ours + amd_middle_offset, amd_common_end - amd_middle_offset);
  middle().memory_async_copy_on_engine = async_copy_on_engine;
  tail().vmem_handle_create = vmem_handle_create;
  tail().vmem_map = vmem_map;
  tail().vmem_unmap = vmem_unmap;
}

StandInRuntime& StandInRuntime::current() { return *the_runtime; }

AmdExtTable StandInRuntime::amd() {
  AmdExtTable copy{};
  copy_amd_table(copy, *root_.amd_ext_);
  return copy;
}

AmdMiddle& StandInRuntime::middle() { return *live_middle(*root_.amd_ext_); }
AmdTail& StandInRuntime::tail() { return *live_tail(*root_.amd_ext_); }

void StandInRuntime::fail(const std::string& function, unsigned nth) {
  const std::lock_guard lock(calls_mutex);
  failing_function = function;
  failing_call = nth;
  call_counts.clear();
}

std::map<std::string, unsigned> StandInRuntime::calls() const {
  const std::lock_guard lock(calls_mutex);
  return call_counts;
}

std::vector<std::uint64_t> StandInRuntime::load(const std::vector<std::byte>& bytes,
                                                const std::vector<StandInKernel>& all) {
  executable = Executable{bytes, static_cast<std::byte*>(pages(loaded_size)), all};
  std::vector<std::uint64_t> objects;
  for (std::size_t i = 0; i < all.size(); ++i) {
    objects.push_back(reinterpret_cast<std::uint64_t>(executable->base) + 64 * (i + 1));
    const std::lock_guard lock(kernels_mutex);
    kernels[objects.back()] = all[i].run;
  }
  hsa_code_object_reader_t reader{};
  core().hsa_code_object_reader_create_from_memory_fn(executable->bytes.data(), executable->bytes.size(), &reader);
  core().hsa_executable_freeze_fn({81}, nullptr);
  return objects;
}

void StandInRuntime::unload() {
  core().hsa_executable_destroy_fn({81});
  core().hsa_code_object_reader_destroy_fn({71});
}

void StandInRuntime::submit(hsa_queue_t* queue, const std::vector<Packet>& packets) {
  of(queue).intercept(packets.data(), packets.size());
}

hsa_signal_t make_signal(hsa_signal_value_t value) {
  auto* signal = new Signal;
  signal->value = value;
  return {reinterpret_cast<std::uint64_t>(signal)};
}

bool reaches_zero(hsa_signal_t signal, unsigned milliseconds) {
  for (unsigned i = 0; i < milliseconds * 10; ++i) {
    if (of(signal).value.load() <= 0) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return of(signal).value.load() <= 0;
}

}  // namespace kerncap::capture::testing
