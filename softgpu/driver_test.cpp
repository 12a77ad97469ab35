// The driver's calls, made directly: what the page tables say afterwards is what a kernel would see.
#include "softgpu/driver.h"

#include <gtest/gtest.h>
#include <libdrm/amdgpu_drm.h>
#include <libdrm/drm.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "softgpu/drm.h"
#include "softgpu/system_calls.h"

namespace kerncap::softgpu {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20, page = 4096;
constexpr std::uint64_t somewhere = 0x600000000000;
constexpr std::uint32_t vram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
constexpr std::uint32_t gtt = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
constexpr std::uint32_t user = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;

Configuration two_devices() {
  Configuration configuration;
  configuration.devices = {find_architecture("gfx90a"), find_architecture("gfx1030")};
  configuration.vram = 256 * mebibyte;
  configuration.threads = 1;
  return configuration;
}

class DriverTest : public ::testing::Test {
 protected:
  // Engines never end, so a driver that had queues is left alive.
  DriverTest() : driver(*new Driver(two_devices())), first(*driver.devices[0]), second(*driver.devices[1]) {}

  int allocate(std::uint64_t address, std::uint64_t size, std::uint32_t flags, std::uint64_t offset = 0) {
    allocation = {};
    allocation.va_addr = address;
    allocation.size = size;
    allocation.flags = flags;
    allocation.gpu_id = first.gpu_id;
    allocation.mmap_offset = offset;
    return driver.kfd(abi::alloc_memory, &allocation);
  }
  int map(std::uint64_t handle, std::vector<std::uint32_t> ids) {
    kfd_ioctl_map_memory_to_gpu_args args{};
    args.handle = handle;
    args.device_ids_array_ptr = reinterpret_cast<std::uint64_t>(ids.data());
    args.n_devices = static_cast<std::uint32_t>(ids.size());
    const int result = driver.kfd(abi::map_memory, &args);
    EXPECT_TRUE(result != 0 || args.n_success == args.n_devices);
    return result;
  }
  int unmap(std::uint64_t handle, std::uint32_t id) {
    kfd_ioctl_unmap_memory_from_gpu_args args{};
    args.handle = handle;
    args.device_ids_array_ptr = reinterpret_cast<std::uint64_t>(&id);
    args.n_devices = 1;
    return driver.kfd(abi::unmap_memory, &args);
  }
  int free(std::uint64_t handle) {
    kfd_ioctl_free_memory_of_gpu_args args{handle};
    return driver.kfd(abi::free_memory, &args);
  }
  static std::byte* seen(Device& device, std::uint64_t address, unsigned permissions = permission_read) {
    return device.memory.translate(address, permissions);
  }

  Driver& driver;
  Device &first, &second;
  kfd_ioctl_alloc_memory_of_gpu_args allocation{};
};

TEST_F(DriverTest, MemoryIsSeenByTheDevicesItIsMappedTo) {
  ASSERT_EQ(allocate(somewhere, mebibyte, vram), 0);
  EXPECT_EQ(seen(first, somewhere), nullptr) << "allocated, not yet mapped";
  ASSERT_EQ(map(allocation.handle, {first.gpu_id}), 0);
  EXPECT_NE(seen(first, somewhere + mebibyte - 1, permission_write), nullptr);
  EXPECT_EQ(seen(first, somewhere, permission_execute), nullptr);
  EXPECT_EQ(seen(second, somewhere), nullptr);
  ASSERT_EQ(map(allocation.handle, {first.gpu_id, second.gpu_id}), 0);
  EXPECT_EQ(seen(second, somewhere), seen(first, somewhere));
  ASSERT_EQ(unmap(allocation.handle, first.gpu_id), 0);
  EXPECT_EQ(seen(first, somewhere), nullptr);
  EXPECT_NE(seen(second, somewhere), nullptr);
  ASSERT_EQ(free(allocation.handle), 0);
  EXPECT_EQ(seen(second, somewhere), nullptr);
  EXPECT_EQ(free(allocation.handle), -EINVAL);
}

TEST_F(DriverTest, DeviceMemoryHasASize) {
  ASSERT_EQ(allocate(somewhere, 200 * mebibyte, vram), 0);
  const std::uint64_t handle = allocation.handle;
  abi::AvailableMemory available{.available = 0, .gpu_id = first.gpu_id, .pad = 0};
  ASSERT_EQ(driver.kfd(abi::available_memory, &available), 0);
  EXPECT_EQ(available.available, 56 * mebibyte);
  EXPECT_EQ(allocate(somewhere * 2 / 3, 100 * mebibyte, vram), -ENOMEM);
  EXPECT_EQ(allocate(somewhere * 2 / 3 & ~(page - 1), 100 * mebibyte, gtt), 0) << "host memory does not count";
  ASSERT_EQ(free(handle), 0);
  EXPECT_EQ(allocate(somewhere, 256 * mebibyte, vram), 0);
}

TEST(DriverOfAMachine, DeviceMemoryIsSharedWithTheMachinesOtherProcesses) {
  Configuration configuration = two_devices();
  configuration.machine = "driver-test-" + std::to_string(getpid());
  Driver here(configuration), there(configuration);  // two that do not know each other, as in two processes
  const auto allocate = [](Driver& driver, std::uint64_t bytes, std::uint64_t* handle) {
    kfd_ioctl_alloc_memory_of_gpu_args args{};
    args.va_addr = somewhere;
    args.size = bytes;
    args.flags = vram;
    args.gpu_id = driver.devices[0]->gpu_id;
    const int result = driver.kfd(abi::alloc_memory, &args);
    *handle = args.handle;
    return result;
  };
  std::uint64_t first = 0, second = 0;
  ASSERT_EQ(allocate(here, 200 * mebibyte, &first), 0);
  EXPECT_EQ(allocate(there, 100 * mebibyte, &second), -ENOMEM);
  EXPECT_EQ(there.devices[0]->available(), 56 * mebibyte);
  EXPECT_EQ(there.devices[1]->available(), 256 * mebibyte);
  EXPECT_TRUE(here.allocations.free(first));
  EXPECT_EQ(allocate(there, 100 * mebibyte, &second), 0);
}

TEST_F(DriverTest, WrongArgumentsAreRefused) {
  EXPECT_EQ(allocate(somewhere + 1, mebibyte, vram), -EINVAL);
  EXPECT_EQ(allocate(somewhere, 0, vram), -EINVAL);
  EXPECT_EQ(allocate(somewhere, 100, vram), -EINVAL);
  EXPECT_EQ(allocate(std::uint64_t{1} << 47, mebibyte, vram), -EINVAL);
  EXPECT_EQ(allocate(somewhere, ~(page - 1), vram), -EINVAL);
  EXPECT_EQ(map(12345, {first.gpu_id}), -EINVAL);
  ASSERT_EQ(allocate(somewhere, mebibyte, vram), 0);
  EXPECT_EQ(map(allocation.handle, {1}), -EINVAL);
  EXPECT_EQ(map(allocation.handle, {}), -EINVAL);
  EXPECT_EQ(driver.kfd(0x7f, &allocation), -EINVAL);
}

TEST_F(DriverTest, ARingCanBeMappedTwice) {
  ASSERT_EQ(allocate(somewhere, 4 * page, gtt | KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM), 0);
  ASSERT_EQ(map(allocation.handle, {first.gpu_id}), 0);
  EXPECT_EQ(seen(first, somewhere + 2 * page), seen(first, somewhere));
  EXPECT_EQ(seen(first, somewhere + 3 * page), seen(first, somewhere + page));
  EXPECT_EQ(seen(first, somewhere + 4 * page), nullptr);
}

TEST_F(DriverTest, UserMemoryDisappearsWhenItIsUnmapped) {
  auto* memory =
      static_cast<std::byte*>(raw::map(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(allocate(somewhere, 8 * page, user, reinterpret_cast<std::uint64_t>(memory)), 0);
  ASSERT_EQ(map(allocation.handle, {first.gpu_id}), 0);
  EXPECT_EQ(seen(first, somewhere + page), memory + page);
  driver.allocations.host_unmapped(reinterpret_cast<std::uint64_t>(memory) + 2 * page, 3 * page, driver.devices);
  EXPECT_NE(seen(first, somewhere + page), nullptr);
  EXPECT_EQ(seen(first, somewhere + 2 * page), nullptr);
  EXPECT_EQ(seen(first, somewhere + 4 * page), nullptr);
  EXPECT_NE(seen(first, somewhere + 5 * page), nullptr);
  raw::unmap(memory, 8 * page);
}

TEST_F(DriverTest, UserMemoryThatVanishesUnseenIsForgottenBeforeTheNextKernel) {
  auto* memory =
      static_cast<std::byte*>(raw::map(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(allocate(somewhere, 8 * page, user, reinterpret_cast<std::uint64_t>(memory)), 0);
  ASSERT_EQ(map(allocation.handle, {first.gpu_id}), 0);
  raw::unmap(memory + 2 * page, 3 * page);  // as free() does inside libc
  EXPECT_NE(seen(first, somewhere + 2 * page), nullptr);
  driver.allocations.forget_vanished_memory(driver.devices);
  EXPECT_NE(seen(first, somewhere + page), nullptr);
  for (unsigned number = 2; number < 5; ++number) EXPECT_EQ(seen(first, somewhere + number * page), nullptr);
  EXPECT_NE(seen(first, somewhere + 5 * page), nullptr);
  EXPECT_EQ(free(allocation.handle), 0);
  raw::unmap(memory, 2 * page);
  raw::unmap(memory + 5 * page, 3 * page);
}

TEST_F(DriverTest, SharedVirtualMemoryKeepsItsAddress) {
  auto* memory =
      static_cast<std::byte*>(raw::map(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  alignas(8) std::byte storage[sizeof(kfd_ioctl_svm_args) + sizeof(kfd_ioctl_svm_attribute)] = {};
  auto& call = *reinterpret_cast<kfd_ioctl_svm_args*>(storage);
  kfd_ioctl_svm_attribute& attribute = call.attrs[0];
  call.start_addr = address;
  call.size = 4 * page;
  call.op = KFD_IOCTL_SVM_OP_SET_ATTR;
  call.nattr = 1;
  attribute = {KFD_IOCTL_SVM_ATTR_ACCESS, first.gpu_id};
  ASSERT_EQ(driver.kfd(abi::svm, &call), 0);
  EXPECT_EQ(seen(first, address + page, permission_write), memory + page);
  EXPECT_EQ(seen(second, address), nullptr);
  call.op = KFD_IOCTL_SVM_OP_GET_ATTR;
  attribute = {KFD_IOCTL_SVM_ATTR_ACCESS, second.gpu_id};
  ASSERT_EQ(driver.kfd(abi::svm, &call), 0);
  EXPECT_EQ(attribute.type, static_cast<std::uint32_t>(KFD_IOCTL_SVM_ATTR_NO_ACCESS));
  driver.allocations.host_unmapped(address, 4 * page, driver.devices);
  EXPECT_EQ(seen(first, address), nullptr);
  raw::unmap(memory, 4 * page);
}

TEST_F(DriverTest, TheProcessorReachesOnlyMemoryThatWasMadeForIt) {
  ASSERT_EQ(allocate(somewhere, mebibyte, gtt), 0);
  ASSERT_EQ(map(allocation.handle, {first.gpu_id}), 0);
  void* mapped = driver.map_drm(nullptr, mebibyte, PROT_READ | PROT_WRITE, MAP_SHARED, allocation.mmap_offset);
  ASSERT_NE(mapped, MAP_FAILED);
  std::memset(mapped, 0x33, mebibyte);
  EXPECT_EQ(*seen(first, somewhere + 500'000), std::byte{0x33}) << "one memory behind both";
  EXPECT_EQ(driver.map_drm(nullptr, mebibyte + page, PROT_READ, MAP_SHARED, allocation.mmap_offset), MAP_FAILED)
      << "too large";
  EXPECT_EQ(driver.map_drm(nullptr, page, PROT_READ, MAP_SHARED, std::uint64_t{77} << 36), MAP_FAILED)
      << "no such buffer";
  raw::unmap(mapped, mebibyte);

  ASSERT_EQ(allocate(somewhere + mebibyte, mebibyte, vram), 0);
  errno = 0;
  EXPECT_EQ(driver.map_drm(nullptr, mebibyte, PROT_READ | PROT_WRITE, MAP_SHARED, allocation.mmap_offset), MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  void* reserved = driver.map_drm(nullptr, mebibyte, PROT_NONE, MAP_PRIVATE, allocation.mmap_offset);
  EXPECT_NE(reserved, MAP_FAILED) << "libhsakmt keeps the address so";
  raw::unmap(reserved, mebibyte);
  ASSERT_EQ(allocate(somewhere + 2 * mebibyte, mebibyte, vram | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC), 0);
  mapped = driver.map_drm(nullptr, mebibyte, PROT_READ | PROT_WRITE, MAP_SHARED, allocation.mmap_offset);
  EXPECT_NE(mapped, MAP_FAILED);
  raw::unmap(mapped, mebibyte);
}

TEST_F(DriverTest, BuffersTravelAsDescriptorsAndAsIpcHandles) {
  ASSERT_EQ(allocate(somewhere, mebibyte, vram), 0);
  ASSERT_EQ(map(allocation.handle, {first.gpu_id}), 0);
  abi::ExportDmabuf exported{.handle = allocation.handle, .flags = 0, .dmabuf_fd = 0};
  ASSERT_EQ(driver.kfd(abi::export_dmabuf, &exported), 0);
  kfd_ioctl_get_dmabuf_info_args info{};
  info.dmabuf_fd = exported.dmabuf_fd;
  ASSERT_EQ(driver.kfd(abi::get_dmabuf_info, &info), 0);
  EXPECT_EQ(info.size, mebibyte);
  EXPECT_EQ(info.gpu_id, first.gpu_id);
  EXPECT_EQ(info.flags, vram);
  kfd_ioctl_import_dmabuf_args import{};
  import.va_addr = somewhere + 64 * mebibyte;
  import.gpu_id = second.gpu_id;
  import.dmabuf_fd = exported.dmabuf_fd;
  ASSERT_EQ(driver.kfd(abi::import_dmabuf, &import), 0);
  ASSERT_EQ(map(import.handle, {second.gpu_id}), 0);
  *seen(first, somewhere + 5) = std::byte{42};
  EXPECT_EQ(*seen(second, somewhere + 64 * mebibyte + 5), std::byte{42});

  abi::IpcExport share{};
  share.handle = allocation.handle;
  ASSERT_EQ(driver.kfd(abi::ipc_export, &share), 0);
  abi::IpcImport imported{};
  imported.gpu_id = first.gpu_id;
  imported.va_addr = somewhere + 128 * mebibyte;
  std::memcpy(imported.share_handle, share.share_handle, sizeof share.share_handle);
  ASSERT_EQ(driver.kfd(abi::ipc_import, &imported), 0);
  ASSERT_EQ(map(imported.handle, {first.gpu_id}), 0);
  EXPECT_EQ(*seen(first, somewhere + 128 * mebibyte + 5), std::byte{42});
  imported.share_handle[2] ^= 1;
  EXPECT_EQ(driver.kfd(abi::ipc_import, &imported), -EINVAL) << "the descriptor means another file by now";

  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  import.dmabuf_fd = static_cast<std::uint32_t>(pipes[0]);
  EXPECT_EQ(driver.kfd(abi::import_dmabuf, &import), -EINVAL) << "not a buffer";
  for (const int fd : {pipes[0], pipes[1], static_cast<int>(exported.dmabuf_fd)}) ::close(fd);
}

TEST_F(DriverTest, DrmFilesImportBuffersAndMapThemWhereTheyAreTold) {
  ASSERT_EQ(allocate(somewhere, mebibyte, gtt), 0);
  abi::ExportDmabuf exported{.handle = allocation.handle, .flags = 0, .dmabuf_fd = 0};
  ASSERT_EQ(driver.kfd(abi::export_dmabuf, &exported), 0);
  DrmFile file(driver, first, 128);
  drm_prime_handle prime{};
  prime.fd = static_cast<int>(exported.dmabuf_fd);
  ASSERT_EQ(file.call(DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime), 0);
  const std::uint32_t handle = prime.handle;
  ASSERT_EQ(file.call(DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime), 0);
  EXPECT_EQ(prime.handle, handle) << "one handle for one object";

  drm_amdgpu_gem_va va{};
  va.handle = handle;
  va.operation = AMDGPU_VA_OP_MAP;
  va.flags = AMDGPU_VM_PAGE_READABLE;
  va.va_address = 0x7e0000000000;
  va.offset_in_bo = page;
  va.map_size = 2 * page;
  ASSERT_EQ(file.call(DRM_IOCTL_AMDGPU_GEM_VA, &va), 0);
  EXPECT_NE(seen(first, va.va_address), nullptr);
  EXPECT_EQ(seen(first, va.va_address, permission_write), nullptr);
  EXPECT_EQ(seen(second, va.va_address), nullptr);
  va.map_size = 2 * mebibyte;
  EXPECT_EQ(file.call(DRM_IOCTL_AMDGPU_GEM_VA, &va), -EINVAL) << "beyond the buffer";
  va.map_size = 2 * page;
  va.operation = AMDGPU_VA_OP_UNMAP;
  ASSERT_EQ(file.call(DRM_IOCTL_AMDGPU_GEM_VA, &va), 0);
  EXPECT_EQ(seen(first, va.va_address), nullptr);

  drm_gem_close close{};
  close.handle = handle;
  EXPECT_EQ(file.call(DRM_IOCTL_GEM_CLOSE, &close), 0);
  EXPECT_EQ(file.call(DRM_IOCTL_GEM_CLOSE, &close), -EINVAL);
  va.operation = AMDGPU_VA_OP_MAP;
  EXPECT_EQ(file.call(DRM_IOCTL_AMDGPU_GEM_VA, &va), -ENOENT);
  ::close(static_cast<int>(exported.dmabuf_fd));
}

TEST_F(DriverTest, QueuesComeAndGo) {
  ASSERT_EQ(allocate(somewhere, mebibyte, gtt), 0);
  ASSERT_EQ(map(allocation.handle, {first.gpu_id}), 0);
  kfd_ioctl_create_queue_args queue{};
  queue.gpu_id = first.gpu_id;
  queue.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
  queue.ring_base_address = somewhere;
  queue.ring_size = 4096;
  queue.read_pointer_address = somewhere + 0x10000;
  queue.write_pointer_address = somewhere + 0x10008;
  ASSERT_EQ(driver.kfd(abi::create_queue, &queue), 0);
  EXPECT_EQ(queue.doorbell_offset >> abi::mmap_type_shift, abi::mmap_type_doorbell);
  void* doorbells = driver.map_kfd(nullptr, doorbell_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                                   queue.doorbell_offset & ~(doorbell_bytes - 1));
  ASSERT_NE(doorbells, MAP_FAILED);
  raw::unmap(doorbells, doorbell_bytes);
  kfd_ioctl_destroy_queue_args destroy{queue.queue_id, 0};
  EXPECT_EQ(driver.kfd(abi::destroy_queue, &destroy), 0);
  EXPECT_EQ(driver.kfd(abi::destroy_queue, &destroy), -EINVAL);
  queue.ring_size = 5000;
  EXPECT_EQ(driver.kfd(abi::create_queue, &queue), -EINVAL);
  queue.ring_size = 4096;
  queue.ring_base_address = somewhere + 64 * mebibyte;
  EXPECT_EQ(driver.kfd(abi::create_queue, &queue), -EFAULT) << "not in GPU memory";
  queue.ring_base_address = somewhere;
  queue.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE;
  EXPECT_EQ(driver.kfd(abi::create_queue, &queue), -EINVAL) << "PM4 rings are not emulated";
}

}  // namespace
}  // namespace kerncap::softgpu
