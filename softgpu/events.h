// KFD events: what threads of the application sleep on until the GPU (or another thread) signals them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "softgpu/buffer.h"
#include "softgpu/kfd_abi.h"

namespace kerncap::softgpu {

class Events {
 public:
  // The slots that the GPU could write event ids to; all of them become "unsignalled".
  void set_page(std::shared_ptr<Buffer> page);

  // False when all ids are taken. `slot` is the event's index in the page.
  bool create(std::uint32_t type, bool auto_reset, std::uint32_t* id, std::uint32_t* slot);
  bool destroy(std::uint32_t id);
  bool set(std::uint32_t id);  // all return false for an id that does not exist
  bool reset(std::uint32_t id);

  // Sleeps until any (or all) of `wanted` are signalled. Returns KFD_IOC_WAIT_RESULT_*; -1 for an unknown id.
  // milliseconds 0xffffffff: for ever. Fills in the data of memory and hardware exceptions and the ages.
  int wait(std::span<abi::EventData> wanted, bool all, std::uint32_t milliseconds);

  // A memory fault: every memory event of the process is signalled with these data.
  void memory_fault(const kfd_hsa_memory_exception_data& data);

 private:
  struct Event {
    std::uint32_t type = 0;
    bool auto_reset = false, signalled = false;
    unsigned waiters = 0;
    std::uint64_t age = 1;
    kfd_hsa_memory_exception_data memory{};
  };

  void signal(std::uint32_t id, Event& event);
  bool take(abi::EventData& wanted, Event& event);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, Event> events_;
  std::shared_ptr<Buffer> page_;
  std::uint32_t next_signal_ = 1;
};

}  // namespace kerncap::softgpu
