// The KFD interface. <linux/kfd_ioctl.h> describes it, but distributions ship it in different versions, so what was
// added after version 1.11 (Linux 6.1) is defined here under names of our own. Sources: Linux
// include/uapi/linux/kfd_ioctl.h up to 1.17, and ROCm/ROCT-Thunk-Interface include/linux/kfd_ioctl.h (rocm-5.2.x and
// rocm-6.x) for the numbers from 0x80 on, which only AMD's own kernel has.
#pragma once

#include <linux/kfd_ioctl.h>

#include <cstdint>

namespace kerncap::softgpu::abi {

inline constexpr unsigned ioctl_type = 'K';

// Ioctl numbers; the size part of the command is not compared, because structures grew.
enum Number : unsigned {
  get_version = 0x01,
  create_queue = 0x02,
  destroy_queue = 0x03,
  set_memory_policy = 0x04,
  get_clock_counters = 0x05,
  get_process_apertures = 0x06,
  update_queue = 0x07,
  create_event = 0x08,
  destroy_event = 0x09,
  set_event = 0x0a,
  reset_event = 0x0b,
  wait_events = 0x0c,
  set_scratch_backing_va = 0x11,
  get_tile_config = 0x12,
  set_trap_handler = 0x13,
  get_process_apertures_new = 0x14,
  acquire_vm = 0x15,
  alloc_memory = 0x16,
  free_memory = 0x17,
  map_memory = 0x18,
  unmap_memory = 0x19,
  set_cu_mask = 0x1a,
  get_queue_wave_state = 0x1b,
  get_dmabuf_info = 0x1c,
  import_dmabuf = 0x1d,
  alloc_queue_gws = 0x1e,
  smi_events = 0x1f,
  svm = 0x20,
  set_xnack_mode = 0x21,
  available_memory = 0x23,
  export_dmabuf = 0x24,
  runtime_enable = 0x25,
  ipc_import = 0x80,
  ipc_export = 0x81,
  old_debug_trap = 0x82,
};

struct AvailableMemory {  // since 1.9
  std::uint64_t available;
  std::uint32_t gpu_id, pad;
};

struct ExportDmabuf {  // since 1.12
  std::uint64_t handle;
  std::uint32_t flags, dmabuf_fd;
};

struct RuntimeEnable {  // since 1.13
  std::uint64_t r_debug;
  std::uint32_t mode_mask, capabilities_mask;
};

struct IpcExport {
  std::uint64_t handle;
  std::uint32_t share_handle[4];
  std::uint32_t gpu_id, flags;
};

struct IpcImport {
  std::uint64_t handle, va_addr, mmap_offset;
  std::uint32_t share_handle[4];
  std::uint32_t gpu_id, flags;
};

struct OldDebugTrap {  // rocm-5.x
  std::uint64_t exception_mask, ptr;
  std::uint32_t pid, op, data1, data2, data3, data4;
};
inline constexpr std::uint32_t old_debug_trap_get_version = 7, old_debug_trap_runtime_enable = 13;

// kfd_event_data since 1.14: the union also holds the age of a signal event.
struct EventData {
  union {
    kfd_hsa_memory_exception_data memory;
    kfd_hsa_hw_exception_data hardware;
    std::uint64_t last_event_age;
  };
  std::uint64_t extension;
  std::uint32_t event_id, pad;
};
static_assert(sizeof(EventData) == sizeof(kfd_event_data));

// The start of a queue's context save area, since 1.13; HsaUserContextSaveAreaHeader in <hsakmt/hsakmttypes.h>.
struct SaveAreaHeader {
  std::uint32_t control_stack_offset, control_stack_size, wave_state_offset, wave_state_size;
  std::uint32_t debug_offset, debug_size;
  std::uint64_t error_payload;  // host address of a 64-bit word that receives a mask of exceptions
  std::uint32_t error_event, reserved;
};

// enum kfd_dbg_trap_exception_code, since 1.13.
enum class QueueException : unsigned {
  none = 0,
  wave_abort = 1,
  wave_trap = 2,
  wave_illegal_instruction = 4,
  wave_memory_violation = 5,
  packet_dimension_invalid = 16,
  packet_group_segment_invalid = 17,
  packet_code_invalid = 18,
  packet_unsupported = 20,
  packet_workgroup_size_invalid = 21,
  packet_vendor_unsupported = 23,
};

// Offsets for mmap() on /dev/kfd: type in bits 63:62, gpu_id in 61:46; Linux drivers/gpu/drm/amd/amdkfd/kfd_priv.h.
inline constexpr unsigned mmap_type_shift = 62, mmap_gpu_id_shift = 46;
inline constexpr std::uint64_t mmap_type_mmio = 0, mmap_type_doorbell = 3, mmap_type_events = 2;

}  // namespace kerncap::softgpu::abi
