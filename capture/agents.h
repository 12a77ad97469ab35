// The machine as the runtime describes it: agents and memory pools by handle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/runtime_table.h"
#include "core/snapshot/manifest.h"

namespace kerncap::capture {

struct AgentInfo {
  hsa_agent_t agent{};
  bool gpu = false;
  std::int32_t index = -1;  // in the manifest; -1 for the host's
  snapshot::Agent description;
};

struct PoolInfo {
  std::uint64_t handle = 0;  // hsa_amd_memory_pool_t and hsa_region_t: the same number in ROCr
  hsa_agent_t agent{};
  bool gpu = false;
  std::int32_t index = -1;  // of its agent
  std::uint32_t flags = 0;  // HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_*
  bool global = false, allocatable = false;
};

class Agents {
 public:
  Agents();  // asks the runtime; call after hsa_init has returned
  const AgentInfo* find(std::uint64_t agent) const;
  const PoolInfo* pool(std::uint64_t handle) const;
  std::vector<snapshot::Agent> gpus() const;
  std::vector<hsa_agent_t> gpu_handles() const;
  const PoolInfo* staging_pool() const;  // host memory that every agent can be given access to; null when there is none
  std::string runtime_version() const;
  std::uint64_t ticks_per_second() const { return ticks_per_second_; }
  bool pageable_access() const { return pageable_; }  // any host memory is the device's too (HMM with XNACK)

 private:
  std::vector<AgentInfo> agents_;
  std::vector<PoolInfo> pools_;
  std::uint64_t ticks_per_second_ = 1000000000;
  bool pageable_ = false;
};

}  // namespace kerncap::capture
