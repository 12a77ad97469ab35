// The state of the emulated driver in one process. It is created when the first file of ours is opened, and never
// destroyed: threads of the application sleep in it when static destructors run.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "softgpu/allocations.h"
#include "softgpu/configuration.h"
#include "softgpu/device.h"
#include "softgpu/engine.h"
#include "softgpu/events.h"
#include "softgpu/shared_usage.h"
#include "softgpu/virtual_tree.h"

namespace kerncap::softgpu {

class Driver {
 public:
  explicit Driver(Configuration configuration);

  // The process's own; null when no device is configured. Thread-safe, takes no lock.
  static Driver* get();
  // The same, but never creates one.
  static Driver* existing() noexcept;
  // In the child of a fork: the parent's GPU is not the child's. The next get() makes a new one. Async-signal-safe.
  static void forget_after_fork() noexcept;

  Device* device_of(std::uint32_t gpu_id) const;
  Device* device_of_minor(unsigned minor) const;  // render node or card

  // An ioctl on /dev/kfd, on a DRM node. 0 or a negative errno.
  int kfd(unsigned number, void* arguments);

  // mmap() on /dev/kfd, on a DRM node: MAP_FAILED with errno, or the mapping.
  void* map_kfd(void* address, std::size_t size, int protection, int flags, std::uint64_t offset);
  void* map_drm(void* address, std::size_t size, int protection, int flags, std::uint64_t offset);

  Configuration configuration;
  VirtualTree tree;
  SharedUsage usage;
  std::vector<std::unique_ptr<Device>> devices;
  Events events;
  Engine engine;
  Allocations allocations;

 private:
  using Handler = int (Driver::*)(void* arguments);
  struct Call {
    unsigned number;
    const char* name;
    Handler handler;  // null: success without doing anything
  };
  static const Call calls[];

  // One for each row of `calls`; kfd.cpp, kfd_memory.cpp, kfd_queues.cpp.
  int get_version(void* arguments);
  int get_clock_counters(void* arguments);
  int get_process_apertures(void* arguments);
  int get_process_apertures_new(void* arguments);
  int get_tile_config(void* arguments);
  int set_xnack_mode(void* arguments);
  int old_debug_trap(void* arguments);
  int smi_events(void* arguments);

  int alloc_memory(void* arguments);
  int free_memory(void* arguments);
  int map_memory(void* arguments);
  int unmap_memory(void* arguments);
  int available_memory(void* arguments);
  int get_dmabuf_info(void* arguments);
  int import_dmabuf(void* arguments);
  int export_dmabuf(void* arguments);
  int ipc_export(void* arguments);
  int ipc_import(void* arguments);
  int svm(void* arguments);

  int create_queue(void* arguments);
  int destroy_queue(void* arguments);
  int update_queue(void* arguments);
  int alloc_queue_gws(void* arguments);
  int create_event(void* arguments);
  int destroy_event(void* arguments);
  int set_event(void* arguments);
  int reset_event(void* arguments);
  int wait_events(void* arguments);

  std::mutex mutex_;
  std::uint32_t next_queue_ = 0;
};

}  // namespace kerncap::softgpu
