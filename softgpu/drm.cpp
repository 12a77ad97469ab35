#include "softgpu/drm.h"

#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "softgpu/report.h"
#include "softgpu/system_calls.h"

namespace kerncap::softgpu {
namespace {

constexpr std::uint64_t page_mask = AddressSpace::page_size - 1;

constexpr unsigned number_of(unsigned long request) { return request & 0xff; }

void copy_text(char* to, std::size_t& room, const char* text) {
  const std::size_t length = std::strlen(text);
  if (to != nullptr) std::memcpy(to, text, std::min(room, length));
  room = length;
}

}  // namespace

const DrmFile::Call DrmFile::calls[] = {
    {number_of(DRM_IOCTL_VERSION), "VERSION", &DrmFile::version},
    {number_of(DRM_IOCTL_GET_CAP), "GET_CAP", &DrmFile::get_cap},
    {number_of(DRM_IOCTL_GEM_CLOSE), "GEM_CLOSE", &DrmFile::gem_close},
    {number_of(DRM_IOCTL_PRIME_FD_TO_HANDLE), "PRIME_FD_TO_HANDLE", &DrmFile::prime_to_handle},
    {number_of(DRM_IOCTL_PRIME_HANDLE_TO_FD), "PRIME_HANDLE_TO_FD", &DrmFile::prime_from_handle},
    {DRM_COMMAND_BASE + DRM_AMDGPU_INFO, "AMDGPU_INFO", &DrmFile::amdgpu_info},
    {DRM_COMMAND_BASE + DRM_AMDGPU_GEM_CREATE, "AMDGPU_GEM_CREATE", &DrmFile::amdgpu_gem_create},
    {DRM_COMMAND_BASE + DRM_AMDGPU_GEM_MMAP, "AMDGPU_GEM_MMAP", &DrmFile::amdgpu_gem_mmap},
    {DRM_COMMAND_BASE + DRM_AMDGPU_GEM_VA, "AMDGPU_GEM_VA", &DrmFile::amdgpu_gem_va},
    {DRM_COMMAND_BASE + DRM_AMDGPU_GEM_METADATA, "AMDGPU_GEM_METADATA", &DrmFile::amdgpu_gem_metadata},
};

DrmFile::~DrmFile() {
  for (const auto& [address, mapping] : mappings_) device_.memory.unmap(address, mapping.size);
  if (!mappings_.empty()) driver_.engine.quiesce();
}

int DrmFile::call(unsigned long request, void* arguments) {
  const unsigned number = number_of(request);
  for (const Call& call : calls) {
    if (call.number != number) continue;
    const int result = (this->*call.handler)(arguments);
    trace("drm %u %s = %d", minor_, call.name, result);
    return result;
  }
  trace("drm %u ioctl 0x%x is not emulated", minor_, number);
  return -EINVAL;
}

std::shared_ptr<Buffer> DrmFile::buffer_of(std::uint32_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  return found == handles_.end() ? nullptr : found->second;
}

// The same object gets the same handle in one file, as PRIME demands.
std::uint32_t DrmFile::add(std::shared_ptr<Buffer> buffer) {
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, known] : handles_) {
    if (known->inode() == buffer->inode()) return handle;
  }
  handles_[next_handle_] = std::move(buffer);
  return next_handle_++;
}

int DrmFile::version(void* arguments) {
  auto& version = *static_cast<drm_version*>(arguments);
  version.version_major = 3;
  version.version_minor = 57;
  version.version_patchlevel = 0;
  std::size_t name = version.name_len, date = version.date_len, text = version.desc_len;
  copy_text(version.name, name, "amdgpu");
  copy_text(version.date, date, "20150101");
  copy_text(version.desc, text, "AMD GPU");
  version.name_len = name;
  version.date_len = date;
  version.desc_len = text;
  return 0;
}

int DrmFile::get_cap(void* arguments) {
  auto& cap = *static_cast<drm_get_cap*>(arguments);
  switch (cap.capability) {
    case DRM_CAP_PRIME:
      cap.value = DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT;
      return 0;
    case DRM_CAP_TIMESTAMP_MONOTONIC:
      cap.value = 1;
      return 0;
    default:
      cap.value = 0;
      return 0;
  }
}

int DrmFile::gem_close(void* arguments) {
  const std::lock_guard lock(mutex_);
  return handles_.erase(static_cast<drm_gem_close*>(arguments)->handle) != 0 ? 0 : -EINVAL;
}

int DrmFile::prime_to_handle(void* arguments) {
  auto& prime = *static_cast<drm_prime_handle*>(arguments);
  auto buffer = Buffer::import(&device_, prime.fd);
  if (buffer == nullptr) return -EINVAL;
  prime.handle = add(std::move(buffer));
  return 0;
}

int DrmFile::prime_from_handle(void* arguments) {
  auto& prime = *static_cast<drm_prime_handle*>(arguments);
  const auto buffer = buffer_of(prime.handle);
  if (buffer == nullptr) return -ENOENT;
  prime.fd = raw::dup_above(buffer->descriptor(), 0);
  return prime.fd < 0 ? -errno : 0;
}

int DrmFile::amdgpu_info(void* arguments) {
  const auto& info = *static_cast<const drm_amdgpu_info*>(arguments);
  auto* reply = reinterpret_cast<std::byte*>(info.return_pointer);
  if (reply == nullptr) return -EINVAL;
  std::memset(reply, 0, info.return_size);  // what is not known below reads as zero: registers, sensors, firmware
  const auto answer = [&](const auto& value) {
    std::memcpy(reply, &value, std::min<std::size_t>(info.return_size, sizeof value));
  };
  const Architecture& gpu = *device_.architecture;
  switch (info.query) {
    case AMDGPU_INFO_ACCEL_WORKING:
      answer(std::uint32_t{1});
      break;
    case AMDGPU_INFO_HW_IP_COUNT:
      answer(std::uint32_t{1});
      break;
    case AMDGPU_INFO_TIMESTAMP:
      answer(gpu_ticks());
      break;
    case AMDGPU_INFO_VRAM_USAGE:
      answer(device_.used());
      break;
    case AMDGPU_INFO_VRAM_GTT: {
      drm_amdgpu_info_vram_gtt sizes{};
      sizes.vram_size = sizes.gtt_size = device_.vram;
      sizes.vram_cpu_accessible_size = driver_.configuration.large_bar ? device_.vram : 0;
      answer(sizes);
      break;
    }
    case AMDGPU_INFO_MEMORY: {
      drm_amdgpu_memory_info memory{};
      memory.vram.total_heap_size = memory.vram.usable_heap_size = memory.vram.max_allocation = device_.vram;
      memory.vram.heap_usage = device_.used();
      memory.gtt.total_heap_size = memory.gtt.usable_heap_size = memory.gtt.max_allocation = device_.vram;
      answer(memory);
      break;
    }
    case AMDGPU_INFO_DEV_INFO: {
      drm_amdgpu_info_device device{};
      device.device_id = gpu.device_id;
      device.chip_rev = device.external_rev = gpu.asic_revision;
      device.pci_rev = gpu.revision;
      device.family = gpu.family;
      device.num_shader_engines = gpu.shader_engines;
      device.num_shader_arrays_per_engine = gpu.arrays_per_engine;
      device.gpu_counter_freq = gpu_clock_hertz / 1000;
      device.max_engine_clock = std::uint64_t{gpu.engine_clock} * 1000;
      device.max_memory_clock = std::uint64_t{gpu.memory_clock} * 1000;
      device.cu_active_number = gpu.compute_units;
      device.virtual_address_offset = 1 << 21;
      device.virtual_address_max = std::uint64_t{1} << 47;
      device.virtual_address_alignment = 4096;
      device.pte_fragment_size = 1 << 21;
      device.gart_page_size = 4096;
      device.vram_bit_width = gpu.memory_bus_width;
      device.wave_front_size = gpu.wave_size;
      device.num_cu_per_sh = gpu.compute_units / (gpu.shader_engines * gpu.arrays_per_engine);
      device.high_va_offset = 0xffff800000000000;
      device.high_va_max = 0xffffffffffe00000;
      answer(device);
      break;
    }
    default:
      break;
  }
  return 0;
}

int DrmFile::amdgpu_gem_create(void* arguments) {
  auto& create = *static_cast<drm_amdgpu_gem_create*>(arguments);
  const std::uint64_t size = (create.in.bo_size + page_mask) & ~page_mask;
  if (size == 0 || size < create.in.bo_size) return -EINVAL;
  std::uint32_t flags = KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE;
  flags |=
      (create.in.domains & AMDGPU_GEM_DOMAIN_VRAM) != 0 ? KFD_IOC_ALLOC_MEM_FLAGS_VRAM : KFD_IOC_ALLOC_MEM_FLAGS_GTT;
  if ((create.in.domain_flags & AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED) != 0) flags |= KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
  auto buffer = Buffer::create(&device_, size, flags);
  if (buffer == nullptr) return -ENOMEM;
  create.out.handle = add(std::move(buffer));
  return 0;
}

int DrmFile::amdgpu_gem_mmap(void* arguments) {
  auto& args = *static_cast<drm_amdgpu_gem_mmap*>(arguments);
  const auto buffer = buffer_of(args.in.handle);
  if (buffer == nullptr) return -ENOENT;
  args.out.addr_ptr = driver_.allocations.cookie_of(buffer);
  return 0;
}

int DrmFile::amdgpu_gem_va(void* arguments) {
  const auto& args = *static_cast<const drm_amdgpu_gem_va*>(arguments);
  if (((args.va_address | args.map_size | args.offset_in_bo) & page_mask) != 0 || args.map_size == 0) return -EINVAL;
  if (args.operation == AMDGPU_VA_OP_UNMAP || args.operation == AMDGPU_VA_OP_CLEAR) {
    {
      const std::lock_guard lock(mutex_);
      device_.memory.unmap(args.va_address, args.map_size);
      mappings_.erase(args.va_address);
    }
    driver_.engine.quiesce();
    return 0;
  }
  if (args.operation != AMDGPU_VA_OP_MAP && args.operation != AMDGPU_VA_OP_REPLACE) return -EINVAL;
  const auto buffer = buffer_of(args.handle);
  if (buffer == nullptr) return -ENOENT;
  if (args.offset_in_bo > buffer->size() || args.map_size > buffer->size() - args.offset_in_bo) return -EINVAL;
  unsigned permissions = 0;
  if (args.flags & AMDGPU_VM_PAGE_READABLE) permissions |= permission_read;
  if (args.flags & AMDGPU_VM_PAGE_WRITEABLE) permissions |= permission_write;
  if (args.flags & AMDGPU_VM_PAGE_EXECUTABLE) permissions |= permission_execute;
  const std::lock_guard lock(mutex_);
  device_.memory.map(args.va_address, args.map_size, buffer->alias() + args.offset_in_bo, permissions);
  mappings_[args.va_address] = {args.map_size, buffer};
  return 0;
}

int DrmFile::amdgpu_gem_metadata(void* arguments) {
  auto& args = *static_cast<drm_amdgpu_gem_metadata*>(arguments);
  if (buffer_of(args.handle) == nullptr) return -ENOENT;
  if (args.op == AMDGPU_GEM_METADATA_OP_GET_METADATA) std::memset(&args.data, 0, sizeof args.data);
  return 0;
}

}  // namespace kerncap::softgpu
