// The GPUs of this machine as a replay sees them: which agent stands for which captured one, pools, one queue,
// launches.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/snapshot/manifest.h"
#include "replay/hsa_api.h"
#include "replay/plan.h"

namespace kerncap::replay {

struct Pool {
  hsa_amd_memory_pool_t handle{};
  std::uint32_t flags = 0;  // HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_*
  std::uint64_t size = 0;
};

struct DeviceAgent {
  hsa_agent_t handle{};
  std::string name, isa;
  std::vector<Pool> pools;      // global segment, allocatable
  std::uint64_t lds_bytes = 0;  // of a workgroup at most; 0: unknown
  std::uint64_t local_bytes() const;
};

struct Fault {
  std::atomic<bool> happened{false};
  std::uint64_t address = 0;
  std::uint32_t reason = 0;  // hsa_amd_memory_fault_reason_t bits
};

enum class LaunchEnd { done, fault, queue_error, timed_out, tampered };

struct Launch {
  std::uint16_t header = 0, setup = 0;
  std::array<std::uint32_t, 3> grid{}, workgroup{};
  std::uint32_t private_segment_size = 0, group_segment_size = 0;
  std::uint64_t kernel_object = 0, kernarg_address = 0;
};

struct LaunchResult {
  LaunchEnd end = LaunchEnd::done;
  std::string reason;  // the runtime's words for a queue error
  std::uint64_t fault_address = 0;
  double device_ns = 0, host_ns = 0;
  std::optional<double> clock_hz;  // the shader clock just after the kernel, where the driver tells it
};

class Device {
 public:
  // Starts the runtime and finds an agent for every captured one that owns memory, code or the dispatch. Throws
  // Error{environment} when the ISA differs or local memory is too small for the plan (with the sum).
  Device(const snapshot::Manifest& manifest, const snapshot::Dispatch& dispatch);

  const DeviceAgent& agent(std::int32_t captured_index) const;  // -1: the host
  const DeviceAgent& dispatch_agent() const { return agent(dispatch_agent_); }
  const std::vector<hsa_agent_t>& gpu_handles() const { return gpu_handles_; }
  // The pool of the captured kind. Throws Error{environment} when there is none.
  const Pool& pool(const Placement& placement) const;
  const Pool& kernarg_pool() const;
  void require_memory(const Plan& plan) const;

  // Creates the queue of the captured type, profiled. Once.
  void create_queue(const std::string& type);
  hsa_queue_t* queue() const { return queue_; }

  // One dispatch between two system-scope fences, waited for. After anything but `done` the process is of no more use.
  LaunchResult launch(const Launch& launch, std::chrono::milliseconds timeout);

  // Writes over a buffer larger than the last-level cache, so that nothing of the kernel's data stays cached.
  void flush_caches();

 private:
  std::vector<DeviceAgent> gpus_;
  DeviceAgent host_;
  std::vector<std::int32_t> map_;  // captured index -> gpus_ index, -1: not needed
  std::vector<hsa_agent_t> gpu_handles_;
  std::int32_t dispatch_agent_ = 0;
  hsa_queue_t* queue_ = nullptr;
  hsa_signal_t kernel_signal_{}, fence_signal_{};
  std::uint64_t ticks_per_second_ = 1;
  void* flush_buffer_ = nullptr;
  std::uint64_t flush_bytes_ = 0;
  std::uint32_t flush_value_ = 0;
  std::optional<std::filesystem::path> clock_file_;
};

}  // namespace kerncap::replay
