// One kind of memory at a time, filled with a pattern that the test knows, changed in place by one kernel. What the test
// must look for is printed: "key value" lines.
#include <hip/hip_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                                             \
  do {                                                                                          \
    const hipError_t check_error = (call);                                                      \
    if (check_error != hipSuccess) {                                                            \
      std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(check_error));                  \
      std::exit(check_error == hipErrorNotSupported || check_error == hipErrorOutOfMemory ? 77 : 1); \
    }                                                                                           \
  } while (0)

__device__ uint32_t device_global[4096];
__constant__ uint32_t constant_table[1024];

__device__ uint32_t triple(uint32_t v) { return v * 3 + 1; }
__device__ uint32_t twice(uint32_t v) { return v * 2; }
using Function = uint32_t (*)(uint32_t);
__device__ Function function_table[2] = {triple, twice};

__global__ void transform(uint32_t* p, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = p[i] * 3 + 1;
}
__global__ void transform_global(uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) device_global[i] = device_global[i] * 3 + 1;
}
__global__ void transform_constant(uint32_t* p, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = constant_table[i % 1024] * 3 + 1;
}
__global__ void transform_table(uint32_t** table, uint32_t rows, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  for (uint32_t r = 0; r < rows; ++r)
    if (i < n) table[r][i] = table[r][i] * 3 + 1;
}
__global__ void transform_atomic(uint32_t* p, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&p[i % 16], 1u);
}
__global__ void transform_by_function(uint32_t* p, uint32_t n, uint32_t which) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = function_table[which](p[i]);
}
__global__ void transform_and_fault(uint32_t* p, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = 7;
  if (i == 0) *reinterpret_cast<volatile uint32_t*>(uintptr_t{0x10}) = 1;
}

__global__ void transform_and_trap(uint32_t* p, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = 7;
  if (i == 0) __builtin_trap();
}
__global__ void transform_and_print(uint32_t* p, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = p[i] * 3 + 1;
  if (i == 7) printf("thread %u\n", i);
}
__device__ uint32_t* device_allocated;
__global__ void allocate(uint32_t n, uint32_t seed) {
  device_allocated = static_cast<uint32_t*>(malloc(n * 4));
  for (uint32_t i = 0; i < n && device_allocated != nullptr; ++i) device_allocated[i] = i * 2654435761u + seed;
}
__global__ void transform_allocated(uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) device_allocated[i] = device_allocated[i] * 3 + 1;
}

constexpr uint32_t words = 40000;  // no whole number of pages, nor of chunks

std::vector<uint32_t> pattern(uint32_t n, uint32_t seed = 5) {
  std::vector<uint32_t> values(n);
  for (uint32_t i = 0; i < n; ++i) values[i] = i * 2654435761u + seed;
  return values;
}

void say(const char* key, const void* address) { std::printf("%s %" PRIu64 "\n", key, uint64_t(uintptr_t(address))); }

void run_and_check(uint32_t* device, const uint32_t* host_view, uint32_t n) {
  say("address", device);
  std::printf("words %u\n", n);
  std::fflush(stdout);
  transform<<<(n + 255) / 256, 256>>>(device, n);
  CHECK(hipDeviceSynchronize());
  std::vector<uint32_t> result(n);
  if (host_view != nullptr)
    std::memcpy(result.data(), host_view, n * 4);
  else
    CHECK(hipMemcpy(result.data(), device, n * 4, hipMemcpyDeviceToHost));
  const auto before = pattern(n);
  for (uint32_t i = 0; i < n; ++i)
    if (result[i] != before[i] * 3 + 1) {
      std::fprintf(stderr, "word %u is wrong\n", i);
      std::exit(1);
    }
}

void fill(uint32_t* device, uint32_t n, uint32_t seed = 5) {
  CHECK(hipMemcpy(device, pattern(n, seed).data(), n * 4, hipMemcpyHostToDevice));
}

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "device";
  uint32_t* p = nullptr;
  if (kind == "device") {
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    run_and_check(p, nullptr, words);
  } else if (kind == "device_fine") {
    CHECK(hipExtMallocWithFlags(reinterpret_cast<void**>(&p), words * 4, hipDeviceMallocFinegrained));
    fill(p, words);
    run_and_check(p, nullptr, words);
  } else if (kind == "host" || kind == "host_coarse") {
    CHECK(hipHostMalloc(&p, words * 4, kind == "host" ? hipHostMallocDefault : hipHostMallocNonCoherent));
    std::memcpy(p, pattern(words).data(), words * 4);
    run_and_check(p, p, words);
  } else if (kind == "managed") {
    CHECK(hipMallocManaged(&p, words * 4));
    std::memcpy(p, pattern(words).data(), words * 4);
    run_and_check(p, p, words);
  } else if (kind == "registered") {
    const size_t page = sysconf(_SC_PAGESIZE), size = (words * 4 + page - 1) / page * page;
    auto* host = static_cast<uint32_t*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(host, pattern(words).data(), words * 4);
    CHECK(hipHostRegister(host, words * 4, hipHostRegisterDefault));
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void**>(&p), host, 0));
    say("host_address", host);
    run_and_check(p, host, words);
  } else if (kind == "async") {
    hipStream_t stream;  // HIP 5.2 crashes with the null stream
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMallocAsync(reinterpret_cast<void**>(&p), words * 4, stream));
    CHECK(hipStreamSynchronize(stream));
    fill(p, words);
    run_and_check(p, nullptr, words);
  } else if (kind == "reused") {
    // What was freed must not come back as a region, nor may its bytes be taken for those of what took its place.
    uint32_t* old = nullptr;
    CHECK(hipMalloc(&old, 16 << 20));
    CHECK(hipMemset(old, 0xee, 16 << 20));
    CHECK(hipFree(old));
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    say("freed", old);
    run_and_check(p, nullptr, words);
  } else if (kind == "suballocated") {
    // As a caching allocator: one large block, the kernel works on a part of it.
    CHECK(hipMalloc(&p, 20 << 20));
    CHECK(hipMemset(p, 0, 20 << 20));
    fill(p + (5 << 20) / 4, words);
    run_and_check(p + (5 << 20) / 4, nullptr, words);
  } else if (kind == "global") {
    CHECK(hipGetSymbolAddress(reinterpret_cast<void**>(&p), HIP_SYMBOL(device_global)));
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(device_global), pattern(4096).data(), 4096 * 4));
    say("address", p);
    std::printf("words %u\n", 4096);
    transform_global<<<16, 256>>>(4096);
    CHECK(hipDeviceSynchronize());
  } else if (kind == "constant") {
    CHECK(hipMemcpyToSymbol(HIP_SYMBOL(constant_table), pattern(1024).data(), 1024 * 4));
    uint32_t* table = nullptr;
    CHECK(hipGetSymbolAddress(reinterpret_cast<void**>(&table), HIP_SYMBOL(constant_table)));
    CHECK(hipMalloc(&p, 1024 * 4));
    fill(p, 1024, 99);
    say("constant_address", table);
    say("address", p);
    std::printf("words 1024\n");
    transform_constant<<<4, 256>>>(p, 1024);
    CHECK(hipDeviceSynchronize());
  } else if (kind == "table") {
    constexpr uint32_t rows = 7, n = 3000;
    std::vector<uint32_t*> table(rows);
    for (uint32_t r = 0; r < rows; ++r) {
      CHECK(hipMalloc(&table[r], n * 4));
      fill(table[r], n);
      say("address", table[r]);
    }
    std::printf("words %u\n", n);
    uint32_t** device_table = nullptr;
    CHECK(hipMalloc(&device_table, rows * sizeof(uint32_t*)));
    CHECK(hipMemcpy(device_table, table.data(), rows * sizeof(uint32_t*), hipMemcpyHostToDevice));
    transform_table<<<(n + 255) / 256, 256>>>(device_table, rows, n);
    CHECK(hipDeviceSynchronize());
  } else if (kind == "atomic") {
    CHECK(hipMalloc(&p, 64));
    CHECK(hipMemset(p, 0, 64));
    say("address", p);
    for (int i = 0; i < 3; ++i) transform_atomic<<<4, 256>>>(p, 1024);  // +64 each time
    uint32_t result[16];
    CHECK(hipMemcpy(result, p, 64, hipMemcpyDeviceToHost));
    std::printf("result %u\n", result[3]);
  } else if (kind == "functions") {
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    uint64_t* table = nullptr;
    CHECK(hipGetSymbolAddress(reinterpret_cast<void**>(&table), HIP_SYMBOL(function_table)));
    say("table", table);
    say("address", p);
    std::printf("words %u\n", words);
    transform_by_function<<<(words + 255) / 256, 256>>>(p, words, 0);
    CHECK(hipDeviceSynchronize());
  } else if (kind == "streams") {
    // Three streams: a producer, the kernel after an event, a consumer after another; and one with work of its own.
    hipStream_t a, b, c;
    hipEvent_t produced, done;
    CHECK(hipStreamCreate(&a));
    CHECK(hipStreamCreate(&b));
    CHECK(hipStreamCreate(&c));
    CHECK(hipEventCreate(&produced));
    CHECK(hipEventCreate(&done));
    uint32_t *q = nullptr, *other = nullptr;
    CHECK(hipMalloc(&p, words * 4));
    CHECK(hipMalloc(&q, words * 4));
    CHECK(hipMalloc(&other, words * 4));
    CHECK(hipMemset(other, 0, words * 4));
    CHECK(hipMemset(p, 0, words * 4));
    uint32_t* pinned = nullptr;
    CHECK(hipHostMalloc(&pinned, words * 4));
    std::memcpy(pinned, pattern(words).data(), words * 4);
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemcpyAsync(p, pinned, words * 4, hipMemcpyHostToDevice, a));
    CHECK(hipEventRecord(produced, a));
    CHECK(hipStreamWaitEvent(b, produced, 0));
    for (int i = 0; i < 20; ++i) transform_atomic<<<4, 256, 0, c>>>(other, 1024);
    say("address", p);
    std::printf("words %u\n", words);
    transform<<<(words + 255) / 256, 256, 0, b>>>(p, words);
    CHECK(hipEventRecord(done, b));
    CHECK(hipStreamWaitEvent(a, done, 0));
    CHECK(hipMemcpyAsync(q, p, words * 4, hipMemcpyDeviceToDevice, a));
    for (int i = 0; i < 20; ++i) transform_atomic<<<4, 256, 0, c>>>(other, 1024);
    CHECK(hipMemcpyAsync(pinned, q, words * 4, hipMemcpyDeviceToHost, a));
    CHECK(hipDeviceSynchronize());
    const auto before = pattern(words);
    for (uint32_t i = 0; i < words; ++i)
      if (pinned[i] != before[i] * 3 + 1) return 1;
    uint32_t count = 0;
    CHECK(hipMemcpy(&count, other + 3, 4, hipMemcpyDeviceToHost));
    if (count != 40 * 64) return 1;
  } else if (kind == "vmem") {
    // A reservation of which only the middle is mapped.
    int device = 0;
    hipMemAllocationProp property{};
    property.type = hipMemAllocationTypePinned;
    property.location.type = hipMemLocationTypeDevice;
    property.location.id = device;
    size_t granularity = 0;
    if (hipMemGetAllocationGranularity(&granularity, &property, hipMemAllocationGranularityMinimum) != hipSuccess) return 77;
    const size_t size = (words * 4 + granularity - 1) / granularity * granularity;
    void* base = nullptr;
    if (hipMemAddressReserve(&base, 8 * size, 0, nullptr, 0) != hipSuccess) return 77;
    hipMemAccessDesc access{};
    access.location = property.location;
    access.flags = hipMemAccessFlagsProtReadWrite;
    p = reinterpret_cast<uint32_t*>(static_cast<char*>(base) + 2 * size);
    hipMemGenericAllocationHandle_t handle;
    CHECK(hipMemCreate(&handle, size, &property, 0));
    CHECK(hipMemMap(p, size, 0, handle, 0));
    CHECK(hipMemSetAccess(p, size, &access, 1));
    say("hole", base);
    fill(p, words);
    run_and_check(p, nullptr, words);
  } else if (kind == "graph") {
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t ready;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    say("address", p);
    std::printf("words %u\n", words);
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    transform<<<(words + 255) / 256, 256, 0, stream>>>(p, words);
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
    CHECK(hipGraphLaunch(ready, stream));
    CHECK(hipStreamSynchronize(stream));
  } else if (kind == "cooperative") {
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    say("address", p);
    uint32_t n = words;
    std::printf("words %u\n", n);
    void* arguments[] = {&p, &n};
    CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(transform), dim3((n + 255) / 256), dim3(256), arguments, 0,
                                     nullptr));
    CHECK(hipDeviceSynchronize());
  } else if (kind == "threads") {
    // Four host threads with a stream each; all kernels may run at the same time.
    uint32_t* counters[4];
    for (auto& counter : counters) {
      CHECK(hipMalloc(&counter, 4096));
      CHECK(hipMemset(counter, 0, 4096));
      say("address", counter);
    }
    CHECK(hipDeviceSynchronize());
    std::vector<std::thread> threads;
    for (uint32_t* counter : counters)
      threads.emplace_back([counter] {
        hipStream_t stream;
        CHECK(hipStreamCreate(&stream));
        for (int i = 0; i < 25; ++i) transform_atomic<<<4, 256, 0, stream>>>(counter, 1024);
        CHECK(hipStreamSynchronize(stream));
      });
    for (std::thread& thread : threads) thread.join();
    for (uint32_t* counter : counters) {
      uint32_t result[16];
      CHECK(hipMemcpy(result, counter, 64, hipMemcpyDeviceToHost));
      if (result[3] != 25 * 64) return 1;
    }
  } else if (kind == "forked") {
    // Fork before the runtime starts: the parent must still be the one that captures.
    const pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    if (fork() == 0) _exit(0);
    run_and_check(p, nullptr, words);
  } else if (kind == "printing") {
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    say("address", p);
    std::printf("words %u\n", words);
    std::fflush(stdout);
    transform_and_print<<<(words + 255) / 256, 256>>>(p, words);
    CHECK(hipDeviceSynchronize());
  } else if (kind == "device_malloc") {
    allocate<<<1, 1>>>(3000, 5);
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemcpyFromSymbol(&p, HIP_SYMBOL(device_allocated), sizeof p));
    if (p == nullptr) return 77;  // this runtime has no heap on the device
    say("address", p);
    std::printf("words 3000\n");
    transform_allocated<<<12, 256>>>(3000);
    CHECK(hipDeviceSynchronize());
  } else if (kind == "ipc") {
    // Forked before the runtime starts: the parent owns the memory, the child opens it and runs the kernel.
    int to_child[2], to_parent[2];
    if (pipe(to_child) != 0 || pipe(to_parent) != 0) return 1;
    const pid_t child = fork();
    hipIpcMemHandle_t handle;
    char byte = 0;
    if (child != 0) {
      close(to_parent[1]);  // so that a child that dies is noticed
      CHECK(hipMalloc(&p, words * 4));
      fill(p, words);
      const hipError_t status = hipIpcGetMemHandle(&handle, p);
      if (status != hipSuccess) {
        kill(child, SIGKILL);
        return 77;
      }
      if (write(to_child[1], &handle, sizeof handle) != sizeof handle) return 1;
      int status_of_child = 1;
      if (read(to_parent[0], &byte, 1) < 0 || waitpid(child, &status_of_child, 0) != child) return 1;
      uint32_t first = 0;
      CHECK(hipMemcpy(&first, p, 4, hipMemcpyDeviceToHost));
      if (first != 5 * 3 + 1) return 1;
      return WIFEXITED(status_of_child) ? WEXITSTATUS(status_of_child) : 1;
    }
    if (read(to_child[0], &handle, sizeof handle) != sizeof handle) return 1;
    CHECK(hipIpcOpenMemHandle(reinterpret_cast<void**>(&p), handle, hipIpcMemLazyEnablePeerAccess));
    run_and_check(p, nullptr, words);
    if (write(to_parent[1], &byte, 1) != 1) return 1;
  } else if (kind == "caching") {
    // As PyTorch's allocator: blocks of 20 MiB are cut, given out, taken back, merged, and given out again in other sizes;
    // nothing of that reaches the runtime. The kernel reaches its tensors through a table, as expert weights.
    struct Block {
      char* base;
      size_t used = 0;
    };
    std::vector<Block> blocks;
    const auto take = [&](size_t size) {
      size = (size + 511) / 512 * 512;
      if (blocks.empty() || blocks.back().used + size > (20 << 20)) {
        Block block{};
        CHECK(hipMalloc(reinterpret_cast<void**>(&block.base), 20 << 20));
        blocks.push_back(block);
      }
      char* part = blocks.back().base + blocks.back().used;
      blocks.back().used += size;
      return reinterpret_cast<uint32_t*>(part);
    };
    constexpr uint32_t rows = 40, n = 300000;  // 1.2 MB each: three blocks
    for (int round = 0; round < 2; ++round) {  // the first round's tensors are forgotten, their memory is used again
      for (Block& block : blocks) block.used = 0;
      if (!blocks.empty()) std::swap(blocks.front(), blocks.back());
      std::vector<uint32_t*> table(rows);
      for (uint32_t r = 0; r < rows; ++r) {
        table[r] = take(n * 4);
        fill(table[r], n, round == 0 ? 77 : 5);
        if (round == 1) say("address", table[r]);
      }
      if (round == 0) continue;
      auto** device_table = reinterpret_cast<uint32_t**>(take(rows * sizeof(uint32_t*)));
      CHECK(hipMemcpy(device_table, table.data(), rows * sizeof(uint32_t*), hipMemcpyHostToDevice));
      std::printf("words %u\n", n);
      transform_table<<<(n + 255) / 256, 256>>>(device_table, rows, n);
      CHECK(hipDeviceSynchronize());
    }
  } else if (kind == "remapped") {
    // The same address three times: freed and allocated again in another kind and size.
    void* first = nullptr;
    CHECK(hipMalloc(&first, 4 << 20));
    CHECK(hipMemset(first, 0xaa, 4 << 20));
    CHECK(hipFree(first));
    void* second = nullptr;
    CHECK(hipHostMalloc(&second, 4 << 20, hipHostMallocDefault));
    CHECK(hipHostFree(second));
    const size_t page = sysconf(_SC_PAGESIZE), size = (words * 4 + page - 1) / page * page;
    auto* host = static_cast<uint32_t*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(hipHostRegister(host, size, hipHostRegisterDefault));
    CHECK(hipHostUnregister(host));
    if (mmap(host, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != host) return 1;
    std::memcpy(host, pattern(words).data(), words * 4);
    CHECK(hipHostRegister(host, size, hipHostRegisterDefault));
    CHECK(hipHostGetDevicePointer(reinterpret_cast<void**>(&p), host, 0));
    run_and_check(p, host, words);
  } else if (kind == "forked_after") {
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    const pid_t child = fork();
    if (child == 0) {
      // A child may not use HIP, but it runs, and it exits with handlers.
      std::vector<uint32_t> nothing(1000);
      std::exit(nothing[5] == 0 ? 0 : 1);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
    run_and_check(p, nullptr, words);
  } else if (kind == "exec_after") {
    CHECK(hipMalloc(&p, words * 4));
    execl("/proc/self/exe", argv[0], "device", static_cast<char*>(nullptr));
    return 1;
  } else if (kind == "thread_ends") {
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    say("address", p);
    std::printf("words %u\n", words);
    std::thread([p] { transform<<<(words + 255) / 256, 256>>>(p, words); }).join();
    CHECK(hipDeviceSynchronize());
  } else if (kind == "faulting") {
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    say("address", p);
    std::printf("words %u\n", words);
    std::fflush(stdout);
    transform_and_fault<<<(words + 255) / 256, 256>>>(p, words);
    CHECK(hipDeviceSynchronize());
  } else if (kind == "trapping") {
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    say("address", p);
    std::printf("words %u\n", words);
    std::fflush(stdout);
    transform_and_trap<<<(words + 255) / 256, 256>>>(p, words);
    CHECK(hipDeviceSynchronize());
  } else if (kind == "exits_at_once") {
    // Nobody waits for the kernel: the capture is under way when main returns.
    CHECK(hipMalloc(&p, words * 4));
    fill(p, words);
    say("address", p);
    std::printf("words %u\n", words);
    transform<<<(words + 255) / 256, 256>>>(p, words);
    return 3;
  } else {
    std::fprintf(stderr, "unknown kind '%s'\n", kind.c_str());
    return 2;
  }
  std::printf("good\n");
  return 0;
}
