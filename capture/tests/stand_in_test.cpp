// The capture library over the stand-in runtime: kinds of memory that the machine at hand may lack, submissions of many
// packets, and an error from every single call of the runtime. Each scenario runs in a process of its own, because the
// library keeps its state for the life of a process.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "capture/companion.h"
#include "capture/config.h"
#include "capture/ranges.h"
#include "capture/status.h"
#include "capture/tests/stand_in_runtime.h"
#include "core/snapshot/reader.h"
#include "core/support/file.h"

extern "C" bool OnLoad(HsaApiTable* table, std::uint64_t, std::uint64_t, const char* const*);
extern "C" void OnUnload();
extern "C" int rocprofiler_set_api_table(const char* name, std::uint64_t, std::uint64_t, void** tables, std::uint64_t);

namespace kerncap::capture {

// In place of the library with LLVM: names are what they are, and every kernel takes 16 bytes.
const Companion& companion() {
  static const Companion stand_in = {
      [](std::string_view symbol) { return std::string(symbol); },
      [](const std::string& pattern, std::string_view symbol, std::string_view) { return symbol == pattern; },
      [](std::span<const std::byte>, std::string_view) {
        CodeDescription d;
        for (const char* name : {"change", "other"}) {
          codeobject::Kernel& k = d.kernels.emplace_back();
          k.name = name;
          k.symbol = std::string(name) + ".kd";
          k.kernarg_size = 16;
        }
        d.symbols = {{"change.kd", 64, 64}, {"other.kd", 128, 64}};
        return d;
      }};
  return stand_in;
}

namespace {

using snapshot::Dispatch;
using snapshot::Reader;
using snapshot::RegionKind;
using snapshot::State;
using testing::StandInRuntime;

constexpr std::uint32_t words = 20000;
std::uint32_t pattern(std::uint32_t i, std::uint32_t seed) { return i * 2654435761u + seed; }

struct Arguments {
  std::uint32_t** table;
  std::uint64_t count;
};

void change(const void* kernarg) {
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

int load_and_run(StandInRuntime& runtime, Application& application) {
  OnLoad(&runtime.table(), 3, 0, nullptr);
  application.start();
  if (!application.launch()) return 1;
  OnUnload();
  return application.result_is(application.queue_ != nullptr ? 1 : 0) ? 0 : 2;
}

TEST_F(StandIn, EveryKindOfMemoryIsCapturedWithItsKind) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              if (const int result = load_and_run(runtime, application)) return result;
              if (application.buffers.size() != 12) return 20;
              if (const int result = check_snapshot(config_.output, application)) return result;
              const Reader reader(config_.output);
              const Dispatch& d = reader.manifest().dispatches.at(0);
              for (const Buffer& buffer : application.buffers) {
                bool right = false;
                for (const auto& r : d.regions)
                  right |= reinterpret_cast<std::uint64_t>(buffer.data) - r.address < r.size && r.kind == buffer.kind;
                if (!right) {
                  std::fprintf(stderr, "%s has another kind\n", buffer.name.c_str());
                  return 21;
                }
              }
              // Its flags are those of the pool that the handle was made from.
              for (const auto& r : d.regions)
                if (r.kind == RegionKind::vmem && r.pool_flags != 2) return 25;
              // The unmapped half of a mapping is gone, the other half is there.
              const auto hole = reinterpret_cast<std::uint64_t>(application.reservation_ + (8 << 20));
              bool in_hole = false, behind = false;
              for (const auto& r : d.regions) {
                in_hole |= hole - r.address < r.size;
                behind |= hole + (1 << 20) - r.address < r.size;
              }
              if (in_hole || !behind) return 22;
              if (d.device_time != 2500u || d.kernel_index != 0 || d.index != 1) return 23;
              for (const auto& p : d.code_pointers)
                if (p.address == application.code_pointer && p.symbol == "other.kd") return 0;
              return 24;
            }),
            0);
  EXPECT_EQ(status().state, StatusState::captured) << status().reason;
}

TEST_F(StandIn, FreedDetachedAndUnlockedMemoryIsGone) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              std::vector<std::uint64_t> gone;
              std::vector<Buffer> kept;
              for (const Buffer& b : application.buffers) {
                gone.push_back(reinterpret_cast<std::uint64_t>(b.data));
                if (b.name == "device_coarse" || b.name == "host_fine")
                  runtime.amd().hsa_amd_memory_pool_free_fn(b.data);
                else if (b.name == "region")
                  runtime.core().hsa_memory_free_fn(b.data);
                else if (b.name.starts_with("locked"))
                  runtime.amd().hsa_amd_memory_unlock_fn(b.data);
                else if (b.name == "ipc")
                  runtime.amd().hsa_amd_ipc_memory_detach_fn(b.data);
                else if (b.name == "interop")
                  runtime.amd().hsa_amd_interop_unmap_buffer_fn(b.data);
                else if (b.name == "vmem")
                  runtime.tail()->vmem_unmap(b.data, 1 << 20);
                else if (b.name == "svm")
                  ::munmap(b.data, words * 4);
                else
                  gone.pop_back();
              }
              const hsa_signal_t done = testing::make_signal(1);
              auto packet = application.packet(0, done);
              Arguments nothing{nullptr, 0};
              void* p = nullptr;
              runtime.amd().hsa_amd_memory_pool_allocate_fn({testing::host_fine}, 4096, 0, &p);
              std::memcpy(p, &nothing, sizeof nothing);
              packet.kernarg_address = p;
              runtime.submit(application.queue_, {packet});
              if (!testing::reaches_zero(done, 20000)) return 1;
              OnUnload();
              const Reader reader(config_.output);
              for (const auto& r : reader.manifest().dispatches.at(0).regions)
                for (const std::uint64_t address : gone)
                  if (address - r.address < r.size) return 2;
              return gone.size() == 9 ? 0 : 3;
            }),
            0);
}

TEST_F(StandIn, WorkOfAnotherQueueThatWaitsForTheKernelHoldsNothingUp) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const hsa_signal_t done = testing::make_signal(1), after = testing::make_signal(1);
              runtime.submit(application.queue_, {application.packet(0, done)});
              hsa_barrier_and_packet_t wait{};
              wait.header = HSA_PACKET_TYPE_BARRIER_AND | (1 << HSA_PACKET_HEADER_BARRIER);
              wait.dep_signal[0] = done;
              wait.completion_signal = after;
              hsa_kernel_dispatch_packet_t raw;
              std::memcpy(&raw, &wait, sizeof raw);
              runtime.submit(application.second_, {raw});
              if (!testing::reaches_zero(done, 20000) || !testing::reaches_zero(after, 20000)) return 1;
              OnUnload();
              if (!application.result_is(1)) return 2;
              return check_snapshot(config_.output, application);
            }),
            0);
  EXPECT_THAT(status().notes, ::testing::IsEmpty());
}

// The host writes over a buffer right after the launch, in every way that goes through the runtime: the snapshot still
// has what the kernel saw, and the application gets what it asked for.
TEST_F(StandIn, HostCopiesWaitUntilTheKernelIsCaptured) {
  const std::vector<std::byte> junk(words * 4, std::byte{0x55});
  const std::pair<const char*, std::function<void(StandInRuntime&, void*)>> ways[] = {
      {"hsa_memory_copy", [&](auto& r, void* to) { r.core().hsa_memory_copy_fn(to, junk.data(), junk.size()); }},
      {"hsa_amd_memory_fill", [&](auto& r, void* to) { r.amd().hsa_amd_memory_fill_fn(to, 0x55555555, words); }},
      {"hsa_amd_memory_async_copy",
       [&](auto& r, void* to) {
         r.amd().hsa_amd_memory_async_copy_fn(to, testing::gpu, junk.data(), testing::cpu, junk.size(), 0, nullptr,
                                              testing::make_signal(1));
       }},
      {"hsa_amd_memory_async_copy_on_engine",
       [&](auto& r, void* to) {
         r.middle()->memory_async_copy_on_engine(to, testing::gpu, junk.data(), testing::cpu, junk.size(), 0, nullptr,
                                                 testing::make_signal(1), 1, false);
       }},
      {"hsa_amd_memory_async_copy_rect", [&](auto& r, void* to) {
         const hsa_pitched_ptr_t target{to, junk.size(), 0},
             source{const_cast<std::byte*>(junk.data()), junk.size(), 0};
         const hsa_dim3_t zero{}, range{static_cast<std::uint32_t>(junk.size()), 1, 1};
         r.amd().hsa_amd_memory_async_copy_rect_fn(&target, &zero, &source, &zero, &range, testing::gpu,
                                                   hsaHostToDevice, 0, nullptr, testing::make_signal(1));
       }}};
  for (const auto& [name, overwrite] : ways) {
    forget();
    EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
                Application application(runtime);
                OnLoad(&runtime.table(), 3, 0, nullptr);
                application.start();
                const hsa_signal_t done = testing::make_signal(1);
                runtime.submit(application.queue_, {application.packet(0, done)});
                overwrite(runtime, application.buffers[0].data);
                if (!testing::reaches_zero(done, 20000)) return 1;
                OnUnload();
                if (application.buffers[0].data[100] != 0x55555555) return 2;
                return check_snapshot(config_.output, application);
              }),
              0)
        << name;
  }
}

// Nobody can stop a host thread's stores. What never stands still is declared; the application gets what it would.
TEST_F(StandIn, HostMemoryThatIsWrittenWhileTheKernelIsHeldIsDeclared) {
  constexpr int stood_still = 50;
  // On a machine under load the writer may get no turn while the memory is read: then it stood still.
  int result = stood_still;
  for (int attempt = 0; attempt < 10 && result == stood_still; ++attempt) {
    forget();
    result = in_child([&](StandInRuntime& runtime) {
      Application application(runtime);
      OnLoad(&runtime.table(), 3, 0, nullptr);
      application.start();
      void* p = nullptr;
      runtime.amd().hsa_amd_memory_pool_allocate_fn({testing::host_coarse}, 128 << 20, 0, &p);
      auto* word = reinterpret_cast<std::atomic<std::uint32_t>*>(static_cast<char*>(p) + (300 << 10));
      std::atomic<bool> stop{false};
      std::thread writer([&] {
        while (!stop) ++*word;
      });
      const bool good = application.launch();
      stop = true;
      writer.join();
      OnUnload();
      if (!good || !application.result_is(1)) return 1;
      const Reader reader(config_.output);
      if (!reader.verify({}).empty()) return 10;
      const auto missing = reader.manifest().dispatches.at(0).not_captured;
      const auto address = reinterpret_cast<std::uint64_t>(p) + (300 << 10);
      if (missing.empty()) return stood_still;
      // Its own 64 KiB and nothing else.
      if (missing.size() != 1 || address - missing[0].address >= missing[0].size || missing[0].size != 65536) return 11;
      return missing[0].reason.find("host thread kept writing") != std::string::npos ? 0 : 12;
    });
  }
  EXPECT_EQ(result, 0);
}

TEST_F(StandIn, EveryDispatchInAListIsCapturedEvenWhenSubmittedAtOnce) {
  config_.dispatches = DispatchList::parse("0-2");
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const hsa_signal_t done = testing::make_signal(3);
              const auto p = application.packet(0, done);
              runtime.submit(application.queue_, {p, p});
              runtime.submit(application.second_, {p});
              if (!testing::reaches_zero(done, 20000)) return 1;
              OnUnload();
              if (!application.result_is(3)) return 2;
              return Reader(config_.output).manifest().dispatches.size() == 3 ? 0 : 3;
            }),
            0);
  EXPECT_EQ(status().captured, (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST_F(StandIn, ARuntimeWithSmallerTablesIsLeftAsItIs) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              runtime.core().version.minor_id = offsetof(CoreApiTable, hsa_executable_freeze_fn);
              const auto create = runtime.core().hsa_queue_create_fn;
              OnLoad(&runtime.table(), 3, 0, nullptr);
              return runtime.core().hsa_queue_create_fn == create ? 0 : 1;
            }),
            0);
}

// Several queues, on each of which several held kernels stand: a queue that waits for a later capture is idle.
TEST_F(StandIn, QueuesOfHeldKernelsDoNotWaitForEachOther) {
  config_.dispatches = DispatchList::parse("0-29");
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              hsa_queue_t* third = nullptr;
              runtime.core().hsa_queue_create_fn(testing::gpu, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0,
                                                 &third);
              const hsa_signal_t done = testing::make_signal(30);
              for (unsigned i = 0; i < 10; ++i)
                for (hsa_queue_t* queue : {application.queue_, application.second_, third})
                  runtime.submit(queue, {application.packet(0, done)});
              if (!testing::reaches_zero(done, 50000)) return 1;
              OnUnload();
              if (!application.result_is(30)) return 2;
              return Reader(config_.output).manifest().dispatches.size() == 30 ? 0 : 3;
            }),
            0);
  EXPECT_THAT(status().notes, ::testing::IsEmpty());  // each was idle
}

TEST_F(StandIn, ManyCapturesLeaveNoSignalBehind) {
  config_.dispatches = DispatchList::parse("0-19");
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const hsa_signal_t done = testing::make_signal(40);
              for (unsigned i = 0; i < 20; ++i) {
                runtime.submit(application.queue_, {application.packet(0, done)});
                runtime.submit(application.second_, {application.packet(1, done)});
              }
              if (!testing::reaches_zero(done, 50000)) return 1;
              OnUnload();
              if (Reader(config_.output).manifest().dispatches.size() != 20) return 3;
              const auto calls = runtime.calls();
              if (calls.at("signal_create") < 100) return 4;
              return calls.at("signal_create") == calls.at("signal_destroy") ? 0 : 5;
            }),
            0);
}

TEST_F(StandIn, MoreMemoryThanAllowedIsRefusedBeforeAnythingIsHeld) {
  config_.max_bytes = 100000;
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              if (const int result = load_and_run(runtime, application)) return result;
              return runtime.calls().contains("signal_create") ? 3 : 0;  // no gate was ever made
            }),
            0);
  EXPECT_EQ(status().state, StatusState::failed);
  EXPECT_THAT(status().reason, ::testing::HasSubstr("--max-bytes"));
}

TEST_F(StandIn, OnlyTheShapeThatWasAskedForIsCountedAndTaken) {
  config_.grid = ShapePattern::parse("128x*");
  config_.block = ShapePattern::parse("64");
  config_.dispatches = DispatchList::parse("1");
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const hsa_signal_t done = testing::make_signal(6);
              for (const std::uint32_t grid : {64u, 128u, 256u, 64u, 128u, 128u}) {
                auto packet = application.packet(0, done);
                packet.grid_size_x = grid;
                runtime.submit(application.queue_, {packet});
              }
              if (!testing::reaches_zero(done, 20000)) return 1;
              OnUnload();
              const Reader reader(config_.output);
              const Dispatch& d = reader.manifest().dispatches.at(0);
              return d.grid[0] == 128 && d.kernel_index == 4 && application.result_is(6) ? 0 : 2;
            }),
            0);
  EXPECT_EQ(status().captured, std::vector<std::uint64_t>{4});
  EXPECT_EQ(status().refused.by_shape, 3u);
  ASSERT_EQ(status().refused.shapes.size(), 2u);
  EXPECT_EQ(status().refused.shapes[0].grid[0], 64u);
  EXPECT_EQ(status().refused.shapes[0].dispatches, 2u);
}

TEST_F(StandIn, OnlyTheTimeThatWasAskedForCounts) {
  config_.after_ms = 300;
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const hsa_signal_t early = testing::make_signal(1), late = testing::make_signal(1);
              runtime.submit(application.queue_, {application.packet(0, early)});
              ::usleep(500000);
              runtime.submit(application.queue_, {application.packet(0, late)});
              if (!testing::reaches_zero(late, 20000)) return 1;
              OnUnload();
              return Reader(config_.output).manifest().dispatches.at(0).kernel_index == 1 ? 0 : 2;
            }),
            0);
  EXPECT_EQ(status().refused.by_time, 1u);
  forget();
  config_.after_ms = 0;
  config_.before_ms = 1;
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              ::usleep(20000);
              application.start();
              if (!application.launch()) return 1;
              OnUnload();
              return std::filesystem::exists(config_.output) ? 2 : 0;
            }),
            0);
  EXPECT_EQ(status().refused.by_time, 1u);
}

// A thread that marks ranges is judged by its own; one that never did, by anybody's; a started range counts everywhere.
TEST_F(StandIn, OnlyTheRangeThatWasAskedForCounts) {
  config_.range = "step *";
  config_.dispatches = DispatchList::parse("0-100");
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const auto launch = [&] {
                const hsa_signal_t done = testing::make_signal(1);
                runtime.submit(application.queue_, {application.packet(0, done)});
                return testing::reaches_zero(done, 20000);
              };
              const auto elsewhere = [&](bool marks) {
                std::thread([&] {
                  if (marks) {
                    ranges().push("other");
                    ranges().pop();
                  }
                  launch();
                }).join();
              };
              launch();  // 0: outside
              ranges().push("step 1");
              launch();  // 1: inside
              ranges().push("inner");
              launch();          // 2: inside, nested
              elsewhere(false);  // 3: inside, a helper's
              elsewhere(true);   // 4: outside, that thread's own ranges say so
              ranges().pop();
              ranges().pop();
              launch();  // 5: outside
              ranges().start(77, "step 2");
              elsewhere(true);  // 6: inside
              ranges().stop(77);
              launch();  // 7: outside
              std::thread([] { ranges().push("step 3"); }).join();
              elsewhere(false);  // 8: outside, whoever had it open has ended
              OnUnload();
              return application.result_is(9) ? 0 : 2;
            }),
            0);
  EXPECT_EQ(status().captured, (std::vector<std::uint64_t>{1, 2, 3, 6}));
  EXPECT_EQ(status().refused.by_range, 5u);
  EXPECT_THAT(status().refused.ranges, ::testing::ElementsAre("step 1", "inner", "other", "step 2", "step 3"));
}

TEST_F(StandIn, TheRegisteringWayTakesTheTablesAndEndsWithTheLastShutDown) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              void* table = &runtime.table();
              rocprofiler_set_api_table("hsa", 70000, 0, &table, 1);
              OnLoad(&runtime.table(), 3, 0, nullptr);  // on the second way, too: once is enough
              runtime.core().hsa_init_fn();
              application.start();
              if (!application.launch()) return 1;
              runtime.core().hsa_shut_down_fn();
              runtime.core().hsa_shut_down_fn();
              if (!application.result_is(1)) return 2;
              if (runtime.calls().at("shut_down") != 2 || runtime.calls().at("queue_intercept_create") != 2) return 4;
              return check_snapshot(config_.output, application);
            }),
            0);
  EXPECT_EQ(status().state, StatusState::captured) << status().reason;
}

// A kernel that waits for something that only comes later, which the held application cannot give: the capture ends,
// the application goes on.
TEST_F(StandIn, AKernelThatNeverEndsIsLetGo) {
  config_.kernel_timeout_ms = 500;
  EXPECT_EQ(
      in_child([&](StandInRuntime& runtime) {
        static std::atomic<bool> go{false};
        OnLoad(&runtime.table(), 3, 0, nullptr);
        const auto kernels = runtime.load(std::vector<std::byte>(300, std::byte{7}), {{"change.kd", [](const void*) {
                                                                                         while (!go) ::usleep(1000);
                                                                                       }}});
        hsa_queue_t *queue = nullptr, *second = nullptr;
        for (hsa_queue_t** q : {&queue, &second})
          runtime.core().hsa_queue_create_fn(testing::gpu, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0, q);
        hsa_kernel_dispatch_packet_t p{};
        p.header = HSA_PACKET_TYPE_KERNEL_DISPATCH;
        p.kernel_object = kernels[0];
        void* arguments = nullptr;
        runtime.amd().hsa_amd_memory_pool_allocate_fn({testing::host_fine}, 4096, 0, &arguments);
        p.kernarg_address = arguments;
        p.completion_signal = testing::make_signal(1);
        runtime.submit(queue, {p});
        // Host work that waits for the kernel is not held for ever.
        if (runtime.core().hsa_memory_copy_fn(arguments, arguments, 16) != HSA_STATUS_SUCCESS) return 1;
        ::usleep(999999);  // the worker's 500 ms began later than the copy's
        if (testing::reaches_zero(p.completion_signal, 10)) return 2;
        go = true;
        if (!testing::reaches_zero(p.completion_signal, 20000)) return 3;
        OnUnload();
        const Reader reader(config_.output);
        const Dispatch& d = reader.manifest().dispatches.at(0);
        return !d.has_after && d.incomplete_reason.find("still running after 500 ms") != std::string::npos ? 0 : 4;
      }),
      0);
}

TEST_F(StandIn, AnErrorOfTheQueueKeepsTheStateBefore) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              static std::atomic<int> errors{0};
              static std::atomic<bool> go{false};
              OnLoad(&runtime.table(), 3, 0, nullptr);
              const auto kernels =
                  runtime.load(std::vector<std::byte>(300, std::byte{7}), {{"change.kd", [](const void*) {
                                                                              while (!go) ::usleep(1000);
                                                                            }}});
              hsa_queue_t* queue = nullptr;
              runtime.core().hsa_queue_create_fn(
                  testing::gpu, 64, HSA_QUEUE_TYPE_MULTI, [](hsa_status_t, hsa_queue_t*, void*) { ++errors; }, nullptr,
                  0, 0, &queue);
              hsa_kernel_dispatch_packet_t p{};
              p.header = HSA_PACKET_TYPE_KERNEL_DISPATCH;
              p.kernel_object = kernels[0];
              void* arguments = nullptr;
              runtime.amd().hsa_amd_memory_pool_allocate_fn({testing::host_fine}, 4096, 0, &arguments);
              std::memset(arguments, 0x5a, 4096);
              p.kernarg_address = arguments;
              runtime.submit(queue, {p});
              ::usleep(300000);
              runtime.report_error(queue, HSA_STATUS_ERROR_EXCEPTION);  // returns when the snapshot is whole
              if (errors != 1) return 1;
              const Reader reader(config_.output);
              const Dispatch& d = reader.manifest().dispatches.at(0);
              if (d.has_after || d.incomplete_reason.find("the queue reported an error") == std::string::npos) return 2;
              go = true;
              OnUnload();
              return reader.verify({}).empty() ? 0 : 3;
            }),
            0);
}

TEST_F(StandIn, AQueueThatNeverDrainsIsNotedAndCapturedAsItIs) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              // It waits for something that comes after the captured kernel only.
              const hsa_signal_t later = testing::make_signal(1), after = testing::make_signal(1);
              hsa_barrier_and_packet_t wait{};
              wait.header = HSA_PACKET_TYPE_BARRIER_AND | (1 << HSA_PACKET_HEADER_BARRIER);
              wait.dep_signal[0] = later;
              wait.completion_signal = after;
              hsa_kernel_dispatch_packet_t raw;
              std::memcpy(&raw, &wait, sizeof raw);
              runtime.submit(application.second_, {raw});
              const hsa_signal_t done = testing::make_signal(1);
              runtime.submit(application.queue_, {application.packet(0, done)});
              if (!testing::reaches_zero(done, 20000)) return 1;
              runtime.core().hsa_signal_store_screlease_fn(later, 0);
              if (!testing::reaches_zero(after, 20000)) return 2;
              OnUnload();
              return application.result_is(1) ? check_snapshot(config_.output, application) : 3;
            }),
            0);
  EXPECT_THAT(status().notes, ::testing::Contains(::testing::HasSubstr("1 other queues were not idle")));
}

TEST_F(StandIn, CodeThatWasUnloadedIsGone) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              OnLoad(&runtime.table(), 3, 0, nullptr);
              const auto old = runtime.load(std::vector<std::byte>(300, std::byte{9}), {{"change.kd", change}});
              runtime.unload();
              Application application(runtime);
              application.start();
              if (!application.launch()) return 1;
              OnUnload();
              const Reader reader(config_.output);
              const Dispatch& d = reader.manifest().dispatches.at(0);
              for (const auto& r : d.regions)
                if (old[0] - r.address < r.size) return 3;
              return d.loads.size() == 1 ? check_snapshot(config_.output, application) : 4;
            }),
            0);
}

TEST_F(StandIn, CodeWhoseMemoryTheApplicationTookBackIsCapturedAsItWas) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              runtime.take_code_back();
              if (!application.launch()) return 1;
              OnUnload();
              const Reader reader(config_.output);
              const auto bytes = reader.code_object(reader.manifest().dispatches.at(0).code_object);
              return bytes == std::vector<std::byte>(300, std::byte{7}) ? 0 : 2;
            }),
            0);
}

TEST_F(StandIn, AQueueThatIsGoneIsNotAskedToDrain) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              hsa_queue_t* third = nullptr;
              runtime.core().hsa_queue_create_fn(testing::gpu, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0,
                                                 &third);
              const hsa_signal_t done = testing::make_signal(1);
              runtime.submit(third, {application.packet(1, done)});
              if (!testing::reaches_zero(done, 20000)) return 1;
              runtime.core().hsa_queue_destroy_fn(third);
              if (!application.launch()) return 2;
              OnUnload();
              if (runtime.calls().contains("use_after_destroy")) return 3;
              return check_snapshot(config_.output, application);
            }),
            0);
}

TEST_F(StandIn, TheTablesOfEveryReleaseAreRead) {
  // Those of ROCr 5.0 to 5.4, 5.5, 5.6 and 5.7; 6.0, 6.1, 6.2, 6.3 and 7.
  for (const ApiTableVersion version :
       {ApiTableVersion{1, amd_table_size(48), 0, 0}, ApiTableVersion{1, amd_table_size(51), 0, 0},
        ApiTableVersion{1, amd_table_size(55), 0, 0}, ApiTableVersion{2, amd_table_size(67), 0, 0},
        ApiTableVersion{2, amd_table_size(68), 1, 0}, ApiTableVersion{2, amd_table_size(70), 2, 0},
        ApiTableVersion{2, amd_table_size(71), 4, 0}, ApiTableVersion{2, amd_table_size(74), 7, 0}}) {
    forget();
    EXPECT_EQ(in_child(
                  [&](StandInRuntime& runtime) {
                    Application application(runtime);
                    if (const int result = load_and_run(runtime, application)) return result;
                    if (application.buffers.size() != (version.major_id < 2 ? 11u : 12u)) return 20;
                    return check_snapshot(config_.output, application);
                  },
                  version),
              0)
        << version.major_id << " of " << version.minor_id << " bytes: " << status().reason;
    EXPECT_EQ(status().state, StatusState::captured) << status().reason;
  }
}

TEST_F(StandIn, ATableOfAnUnknownLayoutIsLeftAsItIsAndTheStatusSaysSo) {
  for (const ApiTableVersion version :
       {ApiTableVersion{1, amd_table_size(50), 0, 0}, ApiTableVersion{3, amd_table_size(74), 0, 0},
        ApiTableVersion{2, amd_table_size(66), 0, 0}}) {
    forget();
    EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
                runtime.table().amd_ext_->version = version;
                const auto create = runtime.core().hsa_queue_create_fn;
                OnLoad(&runtime.table(), 3, 0, nullptr);
                rocprofiler_set_api_table("hsa", 70000, 0, std::array<void*, 1>{&runtime.table()}.data(), 1);
                return runtime.core().hsa_queue_create_fn == create ? 0 : 1;
              }),
              0);
    EXPECT_EQ(status().state, StatusState::failed);
    EXPECT_THAT(status().reason, ::testing::HasSubstr("layout"));
  }
}

TEST_F(StandIn, ABrokenConfigurationHarmsNobody) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              ::setenv(config_variable, "/nowhere/config.json", 1);
              const auto create = runtime.core().hsa_queue_create_fn;
              return OnLoad(&runtime.table(), 3, 0, nullptr) && runtime.core().hsa_queue_create_fn == create ? 0 : 1;
            }),
            0);
}

// RLIMIT_FSIZE sends SIGXFSZ, which ends a process by default: never because of our files. With the smaller limit not
// even the status can be written.
TEST_F(StandIn, ALimitOnTheSizeOfFilesHarmsNobody) {
  for (const rlim_t limit : {rlim_t{64} << 10, rlim_t{100}}) {
    forget();
    EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
                Application application(runtime);
                OnLoad(&runtime.table(), 3, 0, nullptr);
                application.start();
                const rlimit small{limit, limit};
                ::setrlimit(RLIMIT_FSIZE, &small);
                if (!application.launch()) return 1;
                OnUnload();
                return application.result_is(1) && !std::filesystem::exists(config_.output) ? 0 : 2;
              }),
              0)
        << limit;
    if (limit < 1000) continue;
    EXPECT_EQ(status().state, StatusState::failed);
    EXPECT_THAT(status().reason, ::testing::HasSubstr("File too large"));
  }
}

TEST_F(StandIn, AForkedChildOnlyPassesOn) {
  EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              OnLoad(&runtime.table(), 3, 0, nullptr);
              application.start();
              const pid_t child = ::fork();
              if (child == 0) {
                void* p = nullptr;
                runtime.amd().hsa_amd_memory_pool_allocate_fn({testing::device_coarse}, 4096, 0, &p);
                ::_exit(runtime.amd().hsa_amd_memory_pool_free_fn(p) == HSA_STATUS_SUCCESS ? 0 : 1);
              }
              int status = 0;
              ::waitpid(child, &status, 0);
              if (status != 0) return 3;
              if (!application.launch()) return 1;
              OnUnload();
              return application.result_is(1) ? check_snapshot(config_.output, application) : 2;
            }),
            0);
}

// One call after the other fails. The application's result must stay right, nothing may hang, and what is called a
// snapshot must be the truth.
TEST_F(StandIn, NoFailingCallOfTheRuntimeHarmsTheApplicationOrMakesAFalseSnapshot) {
  std::map<std::string, unsigned> calls;
  const auto calls_file = folder_.path() / "calls";
  ASSERT_EQ(in_child([&](StandInRuntime& runtime) {
              Application application(runtime);
              const int result = load_and_run(runtime, application);
              std::string text;
              for (const auto& [name, count] : runtime.calls()) text += fmt::format("{} {}\n", name, count);
              support::write_file_atomically(calls_file, text);
              return result;
            }),
            0);
  std::istringstream text(support::read_text_file(calls_file));
  for (std::string name; text >> name;) text >> calls[name];
  ASSERT_GT(calls.size(), 20u);
  unsigned tried = 0, captured = 0;
  for (const auto& [function, count] : calls) {
    for (unsigned n = 0; n < count; n += count < 12 ? 1 : count / 8) {
      forget();
      ++tried;
      EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
                  runtime.fail(function, n);
                  Application application(runtime);
                  if (const int result = load_and_run(runtime, application)) return result;
                  return std::filesystem::exists(config_.output) ? check_snapshot(config_.output, application) : 0;
                }),
                0)
          << function << " call " << n << ": " << status().reason;
      const Status s = status();
      captured += s.state == StatusState::captured;
      EXPECT_EQ(s.state == StatusState::captured, std::filesystem::exists(config_.output)) << function << " call " << n;
      // "armed": the kernel or its queue was never seen.
      if (s.state == StatusState::failed) {
        EXPECT_FALSE(s.reason.empty()) << function << " call " << n;
      }
    }
  }
  EXPECT_GT(tried, 60u);
  EXPECT_GT(captured, 10u);
  std::printf("%u failing calls tried, %u of them still gave a whole snapshot\n", tried, captured);
}

TEST_F(StandIn, NoFailingCallOfTheRuntimeHarmsAProfiledApplication) {
  config_.mode = Mode::profile;
  for (const char* function :
       {"queue_intercept_create", "queue_intercept_register", "signal_create", "profiling_enable", "profiling_time",
        "system_get_info", "iterate_agents", "iterate_agent_symbols", "symbol_get_info", "loader_iterate",
        "loader_info", "extension_table", "reader_create", "executable_freeze", "pool_allocate"}) {
    forget();
    EXPECT_EQ(in_child([&](StandInRuntime& runtime) {
                runtime.fail(function, 0);
                Application application(runtime);
                return load_and_run(runtime, application);
              }),
              0)
        << function;
    EXPECT_EQ(status().state, StatusState::profiled) << function;
  }
}

}  // namespace
}  // namespace kerncap::capture
