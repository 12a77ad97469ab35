#include "capture/agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace kerncap::capture {
namespace {

// HSA_AMD_AGENT_INFO_NUM_XCC of hsa_ext_amd.h since ROCr 6.0; 5.2's headers do not know it and 5.2 refuses it.
constexpr auto agent_info_num_xcc = static_cast<hsa_agent_info_t>(0xA111);
// HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT (hsa.h): kernels may touch any pageable host memory.
constexpr auto system_info_pageable = static_cast<hsa_system_info_t>(0x202);

template <typename T, typename Info>
T ask(hsa_agent_t agent, Info what) {
  T value{};
  if (runtime().core.hsa_agent_get_info_fn(agent, static_cast<hsa_agent_info_t>(what), &value) != HSA_STATUS_SUCCESS)
    return T{};
  return value;
}

template <typename Info>
std::string ask_text(hsa_agent_t agent, Info what) {
  char text[128] = {};
  runtime().core.hsa_agent_get_info_fn(agent, static_cast<hsa_agent_info_t>(what), text);
  return std::string(text, ::strnlen(text, sizeof text));
}

std::string isa_name(hsa_agent_t agent) {
  hsa_isa_t isa{};
  const auto first = [](hsa_isa_t each, void* data) {
    *static_cast<hsa_isa_t*>(data) = each;
    return HSA_STATUS_INFO_BREAK;
  };
  runtime().core.hsa_agent_iterate_isas_fn(agent, first, &isa);
  std::uint32_t length = 0;
  if (isa.handle == 0 ||
      runtime().core.hsa_isa_get_info_alt_fn(isa, HSA_ISA_INFO_NAME_LENGTH, &length) != HSA_STATUS_SUCCESS)
    return {};
  std::string name(std::size_t{length} + 1, '\0');
  runtime().core.hsa_isa_get_info_alt_fn(isa, HSA_ISA_INFO_NAME, name.data());
  name.resize(::strnlen(name.data(), name.size()));
  return name;
}

}  // namespace

Agents::Agents() {
  const CoreApiTable& core = runtime().core;
  core.hsa_system_get_info_fn(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &ticks_per_second_);
  if (ticks_per_second_ == 0) ticks_per_second_ = 1000000000;
  if (core.hsa_system_get_info_fn(system_info_pageable, &pageable_) != HSA_STATUS_SUCCESS) pageable_ = false;
  const auto each_agent = [](hsa_agent_t agent, void* data) {
    auto& agents = *static_cast<std::vector<AgentInfo>*>(data);
    AgentInfo& info = agents.emplace_back();
    info.agent = agent;
    info.gpu = ask<hsa_device_type_t>(agent, HSA_AGENT_INFO_DEVICE) == HSA_DEVICE_TYPE_GPU;
    return HSA_STATUS_SUCCESS;
  };
  core.hsa_iterate_agents_fn(each_agent, &agents_);
  std::int32_t next = 0;
  for (AgentInfo& a : agents_) {
    struct Context {
      Agents* self;
      const AgentInfo* agent;
      std::uint64_t largest = 0;
    };
    if (a.gpu) a.index = next++;
    Context context{this, &a};
    const auto each_pool = [](hsa_amd_memory_pool_t pool, void* data) {
      auto& c = *static_cast<Context*>(data);
      PoolInfo info;
      info.handle = pool.handle;
      info.agent = c.agent->agent;
      info.gpu = c.agent->gpu;
      info.index = c.agent->index;
      const auto pool_info = runtime().amd.hsa_amd_memory_pool_get_info_fn;
      hsa_amd_segment_t segment{};
      std::size_t size = 0;
      pool_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
      pool_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &info.flags);
      pool_info(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, &size);
      pool_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &info.allocatable);
      info.global = segment == HSA_AMD_SEGMENT_GLOBAL;
      if (info.global) c.largest = std::max<std::uint64_t>(c.largest, size);
      c.self->pools_.push_back(info);
      return HSA_STATUS_SUCCESS;
    };
    runtime().amd.hsa_amd_agent_iterate_memory_pools_fn(a.agent, each_pool, &context);
    if (!a.gpu) continue;
    snapshot::Agent& d = a.description;
    d.index = static_cast<std::uint32_t>(a.index);
    d.name = ask_text(a.agent, HSA_AGENT_INFO_NAME);
    d.isa = isa_name(a.agent);
    d.product = ask_text(a.agent, HSA_AMD_AGENT_INFO_PRODUCT_NAME);
    d.compute_units = ask<std::uint32_t>(a.agent, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT);
    d.wavefront_size = ask<std::uint32_t>(a.agent, HSA_AGENT_INFO_WAVEFRONT_SIZE);
    d.xccs = std::max(1u, ask<std::uint32_t>(a.agent, agent_info_num_xcc));
    d.memory_bytes = context.largest;
    d.node = ask<std::uint32_t>(a.agent, HSA_AMD_AGENT_INFO_DRIVER_NODE_ID);
  }
}

const AgentInfo* Agents::find(std::uint64_t agent) const {
  const auto found =
      std::find_if(agents_.begin(), agents_.end(), [&](const auto& a) { return a.agent.handle == agent; });
  return found == agents_.end() ? nullptr : &*found;
}

const PoolInfo* Agents::pool(std::uint64_t handle) const {
  const auto found = std::find_if(pools_.begin(), pools_.end(), [&](const auto& p) { return p.handle == handle; });
  return found == pools_.end() ? nullptr : &*found;
}

std::vector<snapshot::Agent> Agents::gpus() const {
  std::vector<snapshot::Agent> out;
  for (const AgentInfo& a : agents_)
    if (a.gpu) out.push_back(a.description);
  return out;
}

std::vector<hsa_agent_t> Agents::gpu_handles() const {
  std::vector<hsa_agent_t> out;
  for (const AgentInfo& a : agents_)
    if (a.gpu) out.push_back(a.agent);
  return out;
}

const PoolInfo* Agents::staging_pool() const {
  const PoolInfo* best = nullptr;
  for (const PoolInfo& p : pools_) {
    if (p.gpu || !p.global || !p.allocatable || (p.flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) != 0) continue;
    // Coarse-grained host memory is cached by the CPU, which reads it back here.
    if (best == nullptr || (p.flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) != 0) best = &p;
  }
  return best;
}

std::string Agents::runtime_version() const {
  std::uint16_t major = 0, minor = 0;
  runtime().core.hsa_system_get_info_fn(HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
  runtime().core.hsa_system_get_info_fn(HSA_SYSTEM_INFO_VERSION_MINOR, &minor);
  return fmt::format("{}.{}", major, minor);
}

}  // namespace kerncap::capture
