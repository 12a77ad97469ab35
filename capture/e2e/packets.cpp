// An application without HIP: it writes its packets itself, several for one ring of the doorbell. The kernel comes from
// a file. Prints a checksum. usage: packets CODE_OBJECT multi|single|shut_down
#include <fcntl.h>
#include <unistd.h>

#include <hsa.h>
#include <hsa_ext_amd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(call)                                                                    \
  do {                                                                                 \
    const hsa_status_t check_status = (call);                                          \
    if (check_status != HSA_STATUS_SUCCESS && check_status != HSA_STATUS_INFO_BREAK) { \
      std::fprintf(stderr, "%s: %#x\n", #call, static_cast<unsigned>(check_status));   \
      std::exit(1);                                                                    \
    }                                                                                  \
  } while (0)

namespace {

constexpr std::uint32_t n = 4096;

struct Machine {
  hsa_agent_t cpu{}, gpu{};
  hsa_amd_memory_pool_t host{}, device{};
};

hsa_status_t each_pool(hsa_amd_memory_pool_t pool, void* data) {
  hsa_amd_segment_t segment{};
  std::uint32_t flags = 0;
  hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
  hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
  auto& found = *static_cast<hsa_amd_memory_pool_t*>(data);
  if (segment == HSA_AMD_SEGMENT_GLOBAL && found.handle == 0) found = pool;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t each_agent(hsa_agent_t agent, void* data) {
  auto& machine = *static_cast<Machine*>(data);
  hsa_device_type_t type{};
  hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
  if (type == HSA_DEVICE_TYPE_CPU && machine.cpu.handle == 0) {
    machine.cpu = agent;
    hsa_amd_agent_iterate_memory_pools(agent, each_pool, &machine.host);
  }
  if (type == HSA_DEVICE_TYPE_GPU && machine.gpu.handle == 0) {
    machine.gpu = agent;
    hsa_amd_agent_iterate_memory_pools(agent, each_pool, &machine.device);
  }
  return HSA_STATUS_SUCCESS;
}

struct Arguments {
  std::uint32_t* p;
  std::uint32_t number;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string kind = argv[2];
  CHECK(hsa_init());
  Machine machine;
  CHECK(hsa_iterate_agents(each_agent, &machine));
  const int file = ::open(argv[1], O_RDONLY);
  hsa_code_object_reader_t reader{};
  CHECK(hsa_code_object_reader_create_from_file(file, &reader));
  hsa_executable_t executable{};
  CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr, &executable));
  CHECK(hsa_executable_load_agent_code_object(executable, machine.gpu, reader, nullptr, nullptr));
  CHECK(hsa_executable_freeze(executable, nullptr));
  ::close(file);
  hsa_executable_symbol_t symbol{};
  CHECK(hsa_executable_get_symbol_by_name(executable, "step.kd", &machine.gpu, &symbol));
  std::uint64_t kernel = 0;
  CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel));

  void *data = nullptr, *memory = nullptr;
  CHECK(hsa_amd_memory_pool_allocate(machine.device, n * 4, 0, &data));
  CHECK(hsa_amd_memory_pool_allocate(machine.host, 65536, 0, &memory));
  CHECK(hsa_amd_agents_allow_access(1, &machine.gpu, nullptr, memory));
  CHECK(hsa_amd_agents_allow_access(1, &machine.cpu, nullptr, data));
  CHECK(hsa_amd_memory_fill(data, 1, n));

  hsa_queue_t* queue = nullptr;
  CHECK(hsa_queue_create(machine.gpu, 256, kind == "single" ? HSA_QUEUE_TYPE_SINGLE : HSA_QUEUE_TYPE_MULTI, nullptr,
                         nullptr, UINT32_MAX, UINT32_MAX, &queue));
  hsa_signal_t last{}, middle{};
  CHECK(hsa_signal_create(1, 0, nullptr, &last));
  CHECK(hsa_signal_create(1, 0, nullptr, &middle));
  // Seven kernels, of which one completes a signal that a barrier behind it waits for, and an "or" barrier: nine
  // packets, one doorbell. Most have no completion signal.
  constexpr std::uint32_t packets = 9;
  const std::uint64_t first = hsa_queue_add_write_index_relaxed(queue, packets);
  auto* ring = static_cast<char*>(queue->base_address);
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < packets; ++i) {
    char* slot = ring + (first + i) % queue->size * 64;
    const auto header = [&](unsigned type) {
      return static_cast<std::uint16_t>((type << HSA_PACKET_HEADER_TYPE) | (1u << HSA_PACKET_HEADER_BARRIER) |
                                        (HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE) |
                                        (HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE));
    };
    if (i == 3 || i == 5) {
      hsa_barrier_and_packet_t barrier{};  // "or" has the same layout
      barrier.dep_signal[0] = middle;
      std::memcpy(slot + 2, reinterpret_cast<char*>(&barrier) + 2, 62);
      __atomic_store_n(reinterpret_cast<std::uint16_t*>(slot),
                       header(i == 3 ? HSA_PACKET_TYPE_BARRIER_AND : HSA_PACKET_TYPE_BARRIER_OR), __ATOMIC_RELEASE);
      continue;
    }
    auto* arguments = reinterpret_cast<Arguments*>(static_cast<char*>(memory) + 256 * i);
    *arguments = {static_cast<std::uint32_t*>(data), ++number};
    hsa_kernel_dispatch_packet_t dispatch{};
    dispatch.setup = 1;
    dispatch.grid_size_x = n;
    dispatch.workgroup_size_x = 256;
    dispatch.grid_size_y = dispatch.grid_size_z = dispatch.workgroup_size_y = dispatch.workgroup_size_z = 1;
    dispatch.kernel_object = kernel;
    dispatch.kernarg_address = arguments;
    if (i == 2) dispatch.completion_signal = middle;
    if (i == packets - 1) dispatch.completion_signal = last;
    std::memcpy(slot + 2, reinterpret_cast<char*>(&dispatch) + 2, 62);
    __atomic_store_n(reinterpret_cast<std::uint16_t*>(slot), header(HSA_PACKET_TYPE_KERNEL_DISPATCH), __ATOMIC_RELEASE);
  }
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(first + packets - 1));
  while (hsa_signal_wait_scacquire(last, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) >= 1) {
  }
  std::vector<std::uint32_t> values(n);
  CHECK(hsa_memory_copy(values.data(), data, n * 4));
  std::uint64_t sum = 14695981039346656037u;
  for (const std::uint32_t v : values) sum = (sum ^ v) * 1099511628211u;
  std::printf("address %llu\nsum %llu\n", static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(data)),
              static_cast<unsigned long long>(sum));
  CHECK(hsa_queue_destroy(queue));
  CHECK(hsa_executable_destroy(executable));
  CHECK(hsa_code_object_reader_destroy(reader));
  if (kind == "shut_down") CHECK(hsa_shut_down());
  return 4;
}
