// An application over the stand-in runtime, and the fixture of the tests that capture it: kinds of memory that the
// machine at hand may lack, submissions of many packets, and an error from every single call of the runtime. Each
// scenario runs in a process of its own, because the library keeps its state for the life of a process.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "capture/config.h"
#include "capture/status.h"
#include "capture/tests/stand_in_runtime.h"
#include "core/snapshot/reader.h"
#include "core/support/file.h"

extern "C" bool OnLoad(HsaApiTable* table, std::uint64_t, std::uint64_t, const char* const*);
extern "C" void OnUnload();
extern "C" int rocprofiler_set_api_table(const char* name, std::uint64_t, std::uint64_t, void** tables, std::uint64_t);

namespace kerncap::capture {

using snapshot::Dispatch;
using snapshot::Reader;
using snapshot::RegionKind;
using snapshot::State;
using testing::StandInRuntime;

constexpr std::uint32_t words = 20000;
inline std::uint32_t pattern(std::uint32_t i, std::uint32_t seed) { return i * 2654435761u + seed; }

struct Arguments {
  std::uint32_t** table;
  std::uint64_t count;
};

inline void change(const void* kernarg) {
  Arguments a;
  std::memcpy(&a, kernarg, sizeof a);
  for (std::uint64_t b = 0; b < a.count; ++b)
    for (std::uint32_t i = 0; i < words; ++i) a.table[b][i] = a.table[b][i] * 3 + 1;
}

struct Buffer {
  std::string name;
  std::uint32_t* data;
  RegionKind kind;
};

// An application that has one buffer of each kind, and a kernel that reaches them through a table of pointers.
class Application {
 public:
  explicit Application(StandInRuntime& r) : runtime_(r) {}

  void start() {
    kernels_ = runtime_.load(std::vector<std::byte>(300, std::byte{7}),
                             {{"change.kd", change}, {"other.kd", [](const void*) {}}});
    runtime_.core().hsa_queue_create_fn(testing::gpu, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0, &queue_);
    runtime_.core().hsa_queue_create_fn(testing::gpu, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0, &second_);
    allocate_all();
  }

  void allocate_all() {
    const AmdExtTable amd = runtime_.amd();
    const std::size_t size = words * 4;
    void* p = nullptr;
    const std::tuple<const char*, std::uint64_t, RegionKind> pools[] = {
        {"device_coarse", testing::device_coarse, RegionKind::device_coarse},
        {"device_fine", testing::device_fine, RegionKind::device_fine},
        {"device_extended", testing::device_extended, RegionKind::device_extended},
        {"host_fine", testing::host_fine, RegionKind::host_fine},
        {"host_coarse", testing::host_coarse, RegionKind::host_coarse}};
    for (const auto& [name, pool, kind] : pools)
      if (amd.hsa_amd_memory_pool_allocate_fn({pool}, size, 0, &p) == HSA_STATUS_SUCCESS) add(name, p, kind);
    if (runtime_.core().hsa_memory_allocate_fn({testing::device_coarse}, size, &p) == HSA_STATUS_SUCCESS)
      add("region", p, RegionKind::device_coarse);
    if (amd.hsa_amd_memory_lock_fn(host_pages(size), size, nullptr, 0, &p) == HSA_STATUS_SUCCESS)
      add("locked", p, RegionKind::registered);
    if (amd.hsa_amd_memory_lock_to_pool_fn(host_pages(size), size, nullptr, 0, {testing::host_fine}, 0, &p) ==
        HSA_STATUS_SUCCESS)
      add("locked_to_pool", p, RegionKind::registered);
    p = host_pages(size);
    if (amd.hsa_amd_svm_attributes_set_fn(p, size, nullptr, 0) == HSA_STATUS_SUCCESS)
      add("svm", p, RegionKind::managed);
    hsa_amd_ipc_memory_t handle{};
    if (amd.hsa_amd_ipc_memory_attach_fn(&handle, size, 0, nullptr, &p) == HSA_STATUS_SUCCESS)
      add("ipc", p, RegionKind::ipc);
    std::size_t interop_size = 0;
    if (amd.hsa_amd_interop_map_buffer_fn(0, nullptr, 3, 0, &interop_size, &p, nullptr, nullptr) == HSA_STATUS_SUCCESS)
      add("interop", p, RegionKind::ipc);
    VmemHandle vmem{};
    reservation_ = static_cast<char*>(host_pages(16 << 20));
    if (AmdTail* const tail = runtime_.tail()) map_virtual_memory(*tail, vmem);
    if (amd.hsa_amd_memory_pool_allocate_fn({testing::host_fine}, 4096, 0, &p) == HSA_STATUS_SUCCESS)
      arguments_ = static_cast<Arguments*>(p);
    else
      arguments_ = static_cast<Arguments*>(host_pages(4096));
    if (amd.hsa_amd_memory_pool_allocate_fn({testing::device_coarse}, 4096, 0, &p) != HSA_STATUS_SUCCESS)
      p = host_pages(4096);
    auto** table = static_cast<std::uint32_t**>(p);
    for (std::size_t b = 0; b < buffers.size(); ++b) table[b] = buffers[b].data;
    *arguments_ = {table, buffers.size()};
    code_pointer = reinterpret_cast<std::uint64_t>(table + 100);
    table[100] = reinterpret_cast<std::uint32_t*>(kernels_[1]);
  }

  hsa_kernel_dispatch_packet_t packet(std::size_t kernel, hsa_signal_t completion) const {
    hsa_kernel_dispatch_packet_t p{};
    p.header = HSA_PACKET_TYPE_KERNEL_DISPATCH;
    p.setup = 1;
    p.grid_size_x = p.workgroup_size_x = 64;
    p.grid_size_y = p.grid_size_z = p.workgroup_size_y = p.workgroup_size_z = 1;
    p.kernel_object = kernels_[kernel];
    p.kernarg_address = arguments_;
    p.completion_signal = completion;
    return p;
  }

  // Several packets in one submission, the wanted kernel in their middle; false when it never ends.
  bool launch() {
    if (queue_ == nullptr) return true;
    const hsa_signal_t first = testing::make_signal(1), done = testing::make_signal(1), last = testing::make_signal(1);
    runtime_.submit(queue_, {packet(1, first), packet(0, done), packet(1, last)});
    const hsa_signal_t elsewhere = testing::make_signal(1);
    if (second_ != nullptr) runtime_.submit(second_, {packet(1, elsewhere)});
    return testing::reaches_zero(first, 20000) && testing::reaches_zero(done, 20000) &&
           testing::reaches_zero(last, 20000) && (second_ == nullptr || testing::reaches_zero(elsewhere, 20000));
  }

  bool result_is(unsigned times) const {
    for (std::size_t b = 0; b < buffers.size(); ++b)
      for (std::uint32_t i = 0; i < words; ++i) {
        std::uint32_t expected = pattern(i, static_cast<std::uint32_t>(b));
        for (unsigned t = 0; t < times; ++t) expected = expected * 3 + 1;
        if (buffers[b].data[i] != expected) return false;
      }
    return true;
  }

  std::vector<Buffer> buffers;
  std::uint64_t code_pointer = 0;
  char* reservation_ = nullptr;
  bool unmapped_ = false;
  hsa_queue_t *queue_ = nullptr, *second_ = nullptr;

 private:
  void map_virtual_memory(AmdTail& tail, VmemHandle& vmem) {
    if (tail.vmem_handle_create({testing::device_fine}, 1 << 20, 0, 0, &vmem) == HSA_STATUS_SUCCESS &&
        tail.vmem_map(reservation_ + (4 << 20), 1 << 20, 0, vmem, 0) == HSA_STATUS_SUCCESS)
      add("vmem", reservation_ + (4 << 20), RegionKind::vmem);
    // Mapped and unmapped again: a hole that must not be read.
    if (tail.vmem_map(reservation_ + (8 << 20), 2 << 20, 0, vmem, 0) == HSA_STATUS_SUCCESS)
      unmapped_ = tail.vmem_unmap(reservation_ + (8 << 20), 1 << 20) == HSA_STATUS_SUCCESS;
  }
  static void* host_pages(std::size_t size) {
    return ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  void add(const char* name, void* data, RegionKind kind) {
    Buffer buffer{name, static_cast<std::uint32_t*>(data), kind};
    for (std::uint32_t i = 0; i < words; ++i) buffer.data[i] = pattern(i, static_cast<std::uint32_t>(buffers.size()));
    buffers.push_back(buffer);
  }

  StandInRuntime& runtime_;
  std::vector<std::uint64_t> kernels_;
  Arguments* arguments_ = nullptr;
};

class StandIn : public ::testing::Test {
 protected:
  StandIn() {
    config_.status_folder = folder_.path() / "status";
    config_.output = folder_.path() / "out.kcap";
    config_.pattern = "change";
    config_.threads = 2;
    config_.drain_timeout_ms = 300;
    config_.kernel_timeout_ms = 10000;
    std::filesystem::create_directory(config_.status_folder);
  }

  // Runs `body` in a child; what it returns is the child's exit status. 124: it hung.
  template <typename Body>
  int in_child(Body&& body, ApiTableVersion amd_version = {2, amd_table_size(70), 0, 0}) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      int result = 99;
      try {
        const auto file = folder_.path() / "config.json";
        support::write_file_atomically(file, support::dump_json(to_json(config_)));
        ::setenv(config_variable, file.c_str(), 1);
        StandInRuntime runtime(amd_version);
        result = body(runtime);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(result);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) == SIGALRM ? 124 : 128 + WTERMSIG(status);
  }

  void forget() {
    std::filesystem::remove_all(config_.output);
    std::filesystem::remove_all(config_.status_folder);
    std::filesystem::create_directory(config_.status_folder);
  }

  Status status() const {
    const auto all = read_statuses(config_.status_folder);
    return all.size() == 1 ? all.front() : Status{};
  }

  // 0 when every buffer is in the snapshot as it was, or is declared as missing.
  static int check_snapshot(const std::filesystem::path& path, const Application& application, std::size_t number = 0) {
    const Reader reader(path);
    if (!reader.verify({}).empty()) return 10;
    const Dispatch& d = reader.manifest().dispatches.at(number);
    for (std::size_t b = 0; b < application.buffers.size(); ++b) {
      const auto address = reinterpret_cast<std::uint64_t>(application.buffers[b].data);
      bool declared = false, found = false;
      for (const auto& missing : d.not_captured) declared |= address - missing.address < missing.size;
      for (std::size_t r = 0; r < d.regions.size() && !declared; ++r) {
        if (address - d.regions[r].address >= d.regions[r].size) continue;
        found = true;
        std::vector<std::uint32_t> before(words), after(words);
        reader.read(number, r, State::before, address - d.regions[r].address,
                    std::as_writable_bytes(std::span(before)));
        if (d.has_after)
          reader.read(number, r, State::after, address - d.regions[r].address,
                      std::as_writable_bytes(std::span(after)));
        for (std::uint32_t i = 0; i < words; ++i) {
          if (before[i] != pattern(i, static_cast<std::uint32_t>(b))) return 11;
          if (d.has_after && after[i] != before[i] * 3 + 1) return 12;
        }
      }
      if (!declared && !found) {
        std::fprintf(stderr, "%s is not in the snapshot\n", application.buffers[b].name.c_str());
        return 13;
      }
    }
    return 0;
  }

  support::TemporaryFolder folder_;
  Config config_;
};

inline int load_and_run(StandInRuntime& runtime, Application& application) {
  OnLoad(&runtime.table(), 3, 0, nullptr);
  application.start();
  if (!application.launch()) return 1;
  OnUnload();
  return application.result_is(application.queue_ != nullptr ? 1 : 0) ? 0 : 2;
}

}  // namespace kerncap::capture
