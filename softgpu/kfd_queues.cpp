// /dev/kfd: queues and events.
#include <cerrno>
#include <span>

#include "softgpu/aql_queue.h"
#include "softgpu/driver.h"
#include "softgpu/report.h"
#include "softgpu/sdma_queue.h"

namespace kerncap::softgpu {

int Driver::create_queue(void* arguments) {
  auto& args = *static_cast<kfd_ioctl_create_queue_args*>(arguments);
  Device* device = device_of(args.gpu_id);
  if (device == nullptr || args.ring_size == 0 || (args.ring_size & (args.ring_size - 1)) != 0) return -EINVAL;
  if (device->memory.translate(args.ring_base_address, permission_read) == nullptr) return -EFAULT;

  QueueDescription description;
  description.ring_address = args.ring_base_address;
  description.ring_size = args.ring_size;
  description.read_pointer = args.read_pointer_address;
  description.write_pointer = args.write_pointer_address;
  description.save_area = args.ctx_save_restore_address;
  description.doorbell_slot = device->take_doorbell();
  if (description.doorbell_slot < 0) return -ENOSPC;
  {
    const std::lock_guard lock(mutex_);
    description.id = next_queue_++;
  }
  std::shared_ptr<Queue> queue;
  switch (args.queue_type) {
    case KFD_IOC_QUEUE_TYPE_COMPUTE_AQL:
      // The interpreter is loaded here and not by an engine thread, because the caller may hold the loader's lock (a
      // constructor that uses the GPU) and wait for that thread. A failure shows when a kernel is dispatched.
      if (std::string problem; device->instructions(&problem) == nullptr) trace("%s", problem.c_str());
      queue = std::make_shared<AqlQueue>(*device, events, description,
                                         AqlOptions{configuration.counters, configuration.patience,
                                                    [this] { allocations.forget_vanished_memory(devices); }});
      break;
    case KFD_IOC_QUEUE_TYPE_SDMA:
    case KFD_IOC_QUEUE_TYPE_SDMA_XGMI:
      queue = std::make_shared<SdmaQueue>(*device, events, description);
      break;
    default:  // PM4 rings: ROCr and HIP have none
      device->give_doorbell(description.doorbell_slot);
      return -EINVAL;
  }
  if (!engine.add(queue)) {
    device->give_doorbell(description.doorbell_slot);
    return -ENOMEM;
  }
  args.queue_id = description.id;
  args.doorbell_offset = abi::mmap_type_doorbell << abi::mmap_type_shift |
                         std::uint64_t{device->gpu_id} << abi::mmap_gpu_id_shift |
                         static_cast<std::uint64_t>(description.doorbell_slot) * 8;
  trace("kfd queue %u: type %u, ring 0x%llx of 0x%x bytes", description.id, args.queue_type,
        static_cast<unsigned long long>(args.ring_base_address), args.ring_size);
  return 0;
}

int Driver::destroy_queue(void* arguments) {
  const auto& args = *static_cast<kfd_ioctl_destroy_queue_args*>(arguments);
  const auto queue = engine.find(args.queue_id);
  if (queue == nullptr || !engine.remove(args.queue_id)) return -EINVAL;
  queue->device().give_doorbell(queue->doorbell_slot());
  return 0;
}

int Driver::update_queue(void* arguments) {
  const auto& args = *static_cast<kfd_ioctl_update_queue_args*>(arguments);
  const auto queue = engine.find(args.queue_id);
  if (queue == nullptr) return -EINVAL;
  const bool suspend = args.queue_percentage == 0 || args.ring_base_address == 0;
  queue->set_suspended(suspend);
  if (suspend) {
    engine.quiesce();
  } else {
    queue->move_ring(args.ring_base_address, args.ring_size);
  }
  return 0;
}

int Driver::alloc_queue_gws(void* arguments) {
  auto& args = *static_cast<kfd_ioctl_alloc_queue_gws_args*>(arguments);
  if (engine.find(args.queue_id) == nullptr) return -EINVAL;
  args.first_gws = 0;
  return 0;
}

int Driver::create_event(void* arguments) {
  auto& args = *static_cast<kfd_ioctl_create_event_args*>(arguments);
  // The first event of a process with discrete GPUs brings the page of slots: a handle from ALLOC_MEMORY_OF_GPU.
  if (args.event_page_offset != 0) {
    const auto page = allocations.buffer_of(args.event_page_offset);
    if (page == nullptr) return -EINVAL;
    events.set_page(page);
  }
  if (!events.create(args.event_type, args.auto_reset != 0, &args.event_id, &args.event_slot_index)) return -ENOSPC;
  args.event_trigger_data = args.event_id;
  // libhsakmt gives an event its mailbox only when this is not zero.
  args.event_page_offset = abi::mmap_type_events << abi::mmap_type_shift;
  return 0;
}

int Driver::destroy_event(void* arguments) {
  return events.destroy(static_cast<kfd_ioctl_destroy_event_args*>(arguments)->event_id) ? 0 : -EINVAL;
}

int Driver::set_event(void* arguments) {
  return events.set(static_cast<kfd_ioctl_set_event_args*>(arguments)->event_id) ? 0 : -EINVAL;
}

int Driver::reset_event(void* arguments) {
  return events.reset(static_cast<kfd_ioctl_reset_event_args*>(arguments)->event_id) ? 0 : -EINVAL;
}

int Driver::wait_events(void* arguments) {
  auto& args = *static_cast<kfd_ioctl_wait_events_args*>(arguments);
  if (args.num_events != 0 && args.events_ptr == 0) return -EINVAL;
  engine.wake();
  const std::span wanted(reinterpret_cast<abi::EventData*>(args.events_ptr), args.num_events);
  const int result = events.wait(wanted, args.wait_for_all != 0, args.timeout);
  args.wait_result = result < 0 ? KFD_IOC_WAIT_RESULT_FAIL : static_cast<std::uint32_t>(result);
  return result < 0 ? -EINVAL : 0;
}

}  // namespace kerncap::softgpu
