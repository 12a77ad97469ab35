// /dev/kfd: memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "softgpu/driver.h"
#include "softgpu/report.h"
#include "softgpu/system_calls.h"

namespace kerncap::softgpu {
namespace {

constexpr std::uint64_t page_mask = AddressSpace::page_size - 1;
constexpr std::uint64_t highest_address = std::uint64_t{1} << 47;

bool whole_pages(std::uint64_t address, std::uint64_t size) {
  return ((address | size) & page_mask) == 0 && size != 0 && address < highest_address &&
         size <= highest_address - address;
}

}  // namespace

int Driver::alloc_memory(void* arguments) {
  auto& args = *static_cast<kfd_ioctl_alloc_memory_of_gpu_args*>(arguments);
  Device* device = device_of(args.gpu_id);
  if (device == nullptr || !whole_pages(args.va_addr, args.size)) return -EINVAL;

  Allocation allocation;
  allocation.address = args.va_addr;
  allocation.size = args.size;
  allocation.flags = args.flags;
  allocation.twice = (args.flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0;
  if (allocation.twice && (args.size / 2 & page_mask) != 0) return -EINVAL;
  const std::uint64_t bytes = allocation.twice ? args.size / 2 : args.size;
  if (bytes > Allocations::largest_buffer) return -ENOMEM;

  if (args.flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) {
    if (!whole_pages(args.mmap_offset, bytes)) return -EINVAL;
    allocation.user_memory = reinterpret_cast<std::byte*>(args.mmap_offset);
  } else if (args.flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) {
    allocation.buffer = device->doorbell_page();
    if (allocation.buffer == nullptr) return -ENOMEM;
    if (bytes != allocation.buffer->size()) return -EINVAL;
  } else {
    allocation.buffer = Buffer::create(device, bytes, args.flags);
    if (allocation.buffer == nullptr) return -ENOMEM;
    if (args.flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP) {
      args.mmap_offset = abi::mmap_type_mmio << abi::mmap_type_shift | std::uint64_t{device->gpu_id}
                                                                           << abi::mmap_gpu_id_shift;
    } else {
      args.mmap_offset = allocations.cookie_of(allocation.buffer);
    }
  }
  args.handle = allocations.add(args.gpu_id, std::move(allocation));
  trace("kfd allocates 0x%llx bytes at 0x%llx, flags 0x%x", static_cast<unsigned long long>(args.size),
        static_cast<unsigned long long>(args.va_addr), args.flags);
  return 0;
}

int Driver::free_memory(void* arguments) {
  const auto& args = *static_cast<kfd_ioctl_free_memory_of_gpu_args*>(arguments);
  return allocations.free(args.handle) ? 0 : -EINVAL;
}

int Driver::map_memory(void* arguments) {
  auto& args = *static_cast<kfd_ioctl_map_memory_to_gpu_args*>(arguments);
  const auto* ids = reinterpret_cast<const std::uint32_t*>(args.device_ids_array_ptr);
  if (args.n_devices == 0 || args.n_success > args.n_devices || ids == nullptr) return -EINVAL;
  for (; args.n_success < args.n_devices; ++args.n_success) {
    Device* device = device_of(ids[args.n_success]);
    if (device == nullptr || !allocations.map(args.handle, *device)) return -EINVAL;
  }
  return 0;
}

int Driver::unmap_memory(void* arguments) {
  auto& args = *static_cast<kfd_ioctl_unmap_memory_from_gpu_args*>(arguments);
  const auto* ids = reinterpret_cast<const std::uint32_t*>(args.device_ids_array_ptr);
  if (args.n_devices == 0 || args.n_success > args.n_devices || ids == nullptr) return -EINVAL;
  for (; args.n_success < args.n_devices; ++args.n_success) {
    Device* device = device_of(ids[args.n_success]);
    if (device == nullptr || !allocations.unmap(args.handle, *device)) return -EINVAL;
  }
  return 0;
}

int Driver::available_memory(void* arguments) {
  auto& args = *static_cast<abi::AvailableMemory*>(arguments);
  Device* device = device_of(args.gpu_id);
  if (device == nullptr) return -EINVAL;
  args.available = device->available();
  return 0;
}

int Driver::get_dmabuf_info(void* arguments) {
  auto& args = *static_cast<kfd_ioctl_get_dmabuf_info_args*>(arguments);
  const auto buffer = Buffer::import(devices.front().get(), static_cast<int>(args.dmabuf_fd));
  if (buffer == nullptr) return -EINVAL;
  args.size = buffer->size();
  args.metadata_size = 0;
  args.gpu_id = devices[std::min<std::size_t>(buffer->device_index(), devices.size() - 1)]->gpu_id;
  args.flags = buffer->flags();
  return 0;
}

int Driver::import_dmabuf(void* arguments) {
  auto& args = *static_cast<kfd_ioctl_import_dmabuf_args*>(arguments);
  Device* device = device_of(args.gpu_id);
  if (device == nullptr) return -EINVAL;
  Allocation allocation;
  allocation.buffer = Buffer::import(device, static_cast<int>(args.dmabuf_fd));
  if (allocation.buffer == nullptr) return -EINVAL;
  allocation.address = args.va_addr;
  allocation.size = allocation.buffer->size();
  allocation.flags = allocation.buffer->flags() | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
  args.handle = allocations.add(args.gpu_id, std::move(allocation));
  return 0;
}

int Driver::export_dmabuf(void* arguments) {
  auto& args = *static_cast<abi::ExportDmabuf*>(arguments);
  const auto buffer = allocations.buffer_of(args.handle);
  if (buffer == nullptr) return -EINVAL;
  const int fd = raw::dup_above(buffer->descriptor(), 0);
  if (fd < 0) return -errno;
  args.dmabuf_fd = static_cast<std::uint32_t>(fd);
  return 0;
}

// A legacy IPC handle names the exporter's descriptor: {process, descriptor, inode}. The importer opens it through
// /proc, which the kernel allows to the same user only; the exporter must still live, as its memory would otherwise be
// gone.
int Driver::ipc_export(void* arguments) {
  auto& args = *static_cast<abi::IpcExport*>(arguments);
  const auto buffer = allocations.buffer_of(args.handle);
  if (buffer == nullptr) return -EINVAL;
  args.share_handle[0] = static_cast<std::uint32_t>(raw::process_id());
  args.share_handle[1] = static_cast<std::uint32_t>(buffer->descriptor());
  args.share_handle[2] = static_cast<std::uint32_t>(buffer->inode());
  args.share_handle[3] = static_cast<std::uint32_t>(buffer->inode() >> 32);
  return 0;
}

int Driver::ipc_import(void* arguments) {
  auto& args = *static_cast<abi::IpcImport*>(arguments);
  Device* device = device_of(args.gpu_id);
  if (device == nullptr) return -EINVAL;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/fd/%u", args.share_handle[0], args.share_handle[1]);
  const int fd = raw::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return -EINVAL;
  const std::uint64_t inode = args.share_handle[2] | std::uint64_t{args.share_handle[3]} << 32;
  Allocation allocation;
  if (raw::inode_of(fd) == inode) allocation.buffer = Buffer::import(device, fd);
  raw::close(fd);
  if (allocation.buffer == nullptr || !whole_pages(args.va_addr, allocation.buffer->size())) return -EINVAL;
  allocation.address = args.va_addr;
  allocation.size = allocation.buffer->size();
  allocation.flags = allocation.buffer->flags();
  const bool visible = (allocation.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) == 0 ||
                       (allocation.flags & KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC) != 0;
  args.mmap_offset = visible ? allocations.cookie_of(allocation.buffer) : 0;
  args.flags = 0;
  args.handle = allocations.add(args.gpu_id, std::move(allocation));
  return 0;
}

// Shared virtual memory: a range of the application's memory that GPUs see at its own address.
int Driver::svm(void* arguments) {
  auto& args = *static_cast<kfd_ioctl_svm_args*>(arguments);
  if (!whole_pages(args.start_addr, args.size)) return -EINVAL;
  if (args.op == KFD_IOCTL_SVM_OP_GET_ATTR) {
    for (std::uint32_t index = 0; index < args.nattr; ++index) {
      kfd_ioctl_svm_attribute& attribute = args.attrs[index];
      switch (attribute.type) {
        case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
        case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
          attribute.value = KFD_IOCTL_SVM_LOCATION_UNDEFINED;
          break;
        case KFD_IOCTL_SVM_ATTR_ACCESS: {
          const Device* device = device_of(attribute.value);
          if (device == nullptr) return -EINVAL;
          attribute.type = device->memory.translate(args.start_addr, permission_read) != nullptr
                               ? static_cast<std::uint32_t>(KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE)
                               : static_cast<std::uint32_t>(KFD_IOCTL_SVM_ATTR_NO_ACCESS);
          break;
        }
        case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
          attribute.value = KFD_IOCTL_SVM_FLAG_HOST_ACCESS;
          break;
        case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
          attribute.value = ~std::uint32_t{KFD_IOCTL_SVM_FLAG_HOST_ACCESS};
          break;
        case KFD_IOCTL_SVM_ATTR_GRANULARITY:
          attribute.value = 9;
          break;
        default:
          return -EINVAL;
      }
    }
    return 0;
  }
  if (args.op != KFD_IOCTL_SVM_OP_SET_ATTR) return -EINVAL;
  unsigned permissions = permission_read | permission_write | permission_execute;
  for (std::uint32_t index = 0; index < args.nattr; ++index) {
    const kfd_ioctl_svm_attribute& attribute = args.attrs[index];
    if (attribute.type == KFD_IOCTL_SVM_ATTR_SET_FLAGS && (attribute.value & KFD_IOCTL_SVM_FLAG_GPU_RO) != 0) {
      permissions &= ~unsigned{permission_write};
    }
  }
  for (std::uint32_t index = 0; index < args.nattr; ++index) {
    const kfd_ioctl_svm_attribute& attribute = args.attrs[index];
    const bool grant =
        attribute.type == KFD_IOCTL_SVM_ATTR_ACCESS || attribute.type == KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE;
    if (!grant && attribute.type != KFD_IOCTL_SVM_ATTR_NO_ACCESS) continue;
    Device* device = device_of(attribute.value);
    if (device == nullptr) return -EINVAL;
    if (grant) {
      allocations.map_shared(*device, args.start_addr, args.size, permissions);
    } else {
      allocations.unmap_shared(*device, args.start_addr, args.size);
    }
  }
  return 0;
}

}  // namespace kerncap::softgpu
