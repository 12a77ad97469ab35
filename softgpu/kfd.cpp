// /dev/kfd: the table of its ioctls, and those that only tell something.
#include <cerrno>
#include <cstring>
#include <ctime>

#include "softgpu/driver.h"
#include "softgpu/report.h"
#include "softgpu/topology.h"

namespace kerncap::softgpu {
namespace {

// 1.15 lets ROCr manage virtual memory with DMA-BUF and GEM_VA; 1.14 added the ages of events.
constexpr std::uint32_t major_version = 1, minor_version = 17;

}  // namespace

const Driver::Call Driver::calls[] = {
    {abi::get_version, "GET_VERSION", &Driver::get_version},
    {abi::create_queue, "CREATE_QUEUE", &Driver::create_queue},
    {abi::destroy_queue, "DESTROY_QUEUE", &Driver::destroy_queue},
    {abi::set_memory_policy, "SET_MEMORY_POLICY", nullptr},
    {abi::get_clock_counters, "GET_CLOCK_COUNTERS", &Driver::get_clock_counters},
    {abi::get_process_apertures, "GET_PROCESS_APERTURES", &Driver::get_process_apertures},
    {abi::update_queue, "UPDATE_QUEUE", &Driver::update_queue},
    {abi::create_event, "CREATE_EVENT", &Driver::create_event},
    {abi::destroy_event, "DESTROY_EVENT", &Driver::destroy_event},
    {abi::set_event, "SET_EVENT", &Driver::set_event},
    {abi::reset_event, "RESET_EVENT", &Driver::reset_event},
    {abi::wait_events, "WAIT_EVENTS", &Driver::wait_events},
    {abi::set_scratch_backing_va, "SET_SCRATCH_BACKING_VA", nullptr},
    {abi::get_tile_config, "GET_TILE_CONFIG", &Driver::get_tile_config},
    {abi::set_trap_handler, "SET_TRAP_HANDLER", nullptr},
    {abi::get_process_apertures_new, "GET_PROCESS_APERTURES_NEW", &Driver::get_process_apertures_new},
    {abi::acquire_vm, "ACQUIRE_VM", nullptr},
    {abi::alloc_memory, "ALLOC_MEMORY_OF_GPU", &Driver::alloc_memory},
    {abi::free_memory, "FREE_MEMORY_OF_GPU", &Driver::free_memory},
    {abi::map_memory, "MAP_MEMORY_TO_GPU", &Driver::map_memory},
    {abi::unmap_memory, "UNMAP_MEMORY_FROM_GPU", &Driver::unmap_memory},
    {abi::set_cu_mask, "SET_CU_MASK", nullptr},
    {abi::get_dmabuf_info, "GET_DMABUF_INFO", &Driver::get_dmabuf_info},
    {abi::import_dmabuf, "IMPORT_DMABUF", &Driver::import_dmabuf},
    {abi::alloc_queue_gws, "ALLOC_QUEUE_GWS", &Driver::alloc_queue_gws},
    {abi::smi_events, "SMI_EVENTS", &Driver::smi_events},
    {abi::svm, "SVM", &Driver::svm},
    {abi::set_xnack_mode, "SET_XNACK_MODE", &Driver::set_xnack_mode},
    {abi::available_memory, "AVAILABLE_MEMORY", &Driver::available_memory},
    {abi::export_dmabuf, "EXPORT_DMABUF", &Driver::export_dmabuf},
    {abi::runtime_enable, "RUNTIME_ENABLE", nullptr},
    {abi::ipc_import, "IPC_IMPORT_HANDLE", &Driver::ipc_import},
    {abi::ipc_export, "IPC_EXPORT_HANDLE", &Driver::ipc_export},
    {abi::old_debug_trap, "DBG_TRAP", &Driver::old_debug_trap},
};

int Driver::kfd(unsigned number, void* arguments) {
  for (const Call& call : calls) {
    if (call.number != number) continue;
    const int result = call.handler == nullptr ? 0 : (this->*call.handler)(arguments);
    trace("kfd %s = %d", call.name, result);
    return result;
  }
  trace("kfd ioctl 0x%x is not emulated", number);
  return -EINVAL;
}

int Driver::get_version(void* arguments) {
  auto& version = *static_cast<kfd_ioctl_get_version_args*>(arguments);
  version.major_version = major_version;
  version.minor_version = minor_version;
  return 0;
}

int Driver::get_clock_counters(void* arguments) {
  auto& counters = *static_cast<kfd_ioctl_get_clock_counters_args*>(arguments);
  timespec raw{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
  // The three must belong to one moment, because ROCr converts between them.
  const std::uint64_t now = system_nanoseconds();
  counters.gpu_clock_counter = now / (1'000'000'000 / gpu_clock_hertz);
  counters.cpu_clock_counter =
      static_cast<std::uint64_t>(raw.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(raw.tv_nsec);
  counters.system_clock_counter = now;
  counters.system_clock_freq = 1'000'000'000;
  return 0;
}

namespace {

kfd_process_device_apertures apertures_of(const Device& device) {
  kfd_process_device_apertures result{};
  result.lds_base = lds_aperture;
  result.lds_limit = lds_aperture + aperture_size - 1;
  result.scratch_base = scratch_aperture;
  result.scratch_limit = scratch_aperture + aperture_size - 1;
  result.gpuvm_base = 0x1000 * 4;  // past the kernel's own trap pages
  result.gpuvm_limit = 0x7fffffffffff;
  result.gpu_id = device.gpu_id;
  return result;
}

}  // namespace

int Driver::get_process_apertures(void* arguments) {
  auto& reply = *static_cast<kfd_ioctl_get_process_apertures_args*>(arguments);
  reply.num_of_nodes = 0;
  for (const auto& device : devices) {
    if (reply.num_of_nodes == NUM_OF_SUPPORTED_GPUS) break;
    reply.process_apertures[reply.num_of_nodes++] = apertures_of(*device);
  }
  return 0;
}

int Driver::get_process_apertures_new(void* arguments) {
  auto& reply = *static_cast<kfd_ioctl_get_process_apertures_new_args*>(arguments);
  auto* list = reinterpret_cast<kfd_process_device_apertures*>(reply.kfd_process_device_apertures_ptr);
  std::uint32_t count = 0;
  if (reply.num_of_nodes != 0 && list != nullptr) {
    for (; count < devices.size() && count < reply.num_of_nodes; ++count) list[count] = apertures_of(*devices[count]);
  } else {
    count = static_cast<std::uint32_t>(devices.size());
  }
  reply.num_of_nodes = count;
  return 0;
}

// Only images use the result, and the software GPU has none; ROCr's debug builds insist on success.
int Driver::get_tile_config(void* arguments) {
  auto& config = *static_cast<kfd_ioctl_get_tile_config_args*>(arguments);
  if (device_of(config.gpu_id) == nullptr) return -EINVAL;
  const auto clear = [](std::uint64_t list, std::uint32_t& count, std::uint32_t most) {
    if (count > most) count = most;
    if (list != 0) std::memset(reinterpret_cast<void*>(list), 0, count * 4);
  };
  clear(config.tile_config_ptr, config.num_tile_configs, 32);
  clear(config.macro_tile_config_ptr, config.num_macro_tile_configs, 16);
  config.gb_addr_config = 0x2a114042;
  config.num_banks = 4;
  config.num_ranks = 2;
  return 0;
}

// Without retry faults: the mode that discrete cards have unless asked otherwise.
int Driver::set_xnack_mode(void* arguments) {
  auto& mode = *static_cast<kfd_ioctl_set_xnack_mode_args*>(arguments);
  if (mode.xnack_enabled > 0) return -EPERM;
  mode.xnack_enabled = 0;
  return 0;
}

// The way in which ROCm 5 asks for queue exceptions, before it became RUNTIME_ENABLE.
int Driver::old_debug_trap(void* arguments) {
  auto& trap = *static_cast<abi::OldDebugTrap*>(arguments);
  if (trap.op == abi::old_debug_trap_get_version) {
    trap.data1 = 10;
    trap.data2 = 3;
    return 0;
  }
  return trap.op == abi::old_debug_trap_runtime_enable ? 0 : -EINVAL;
}

int Driver::smi_events(void*) { return -EOPNOTSUPP; }

}  // namespace kerncap::softgpu
