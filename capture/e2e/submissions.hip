// Ways to submit kernels beside the plain launch. Prints a checksum of everything that was computed; a captured run must
// print the same. usage: submissions priority|cu_mask|barriers|graph|graph_again|two_devices|multi_device|cooperative_multi_device|null_streams
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                                                    \
  do {                                                                                                 \
    const hipError_t check_error = (call);                                                             \
    if (check_error != hipSuccess) {                                                                   \
      std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(check_error));                         \
      std::exit(check_error == hipErrorNotSupported || check_error == hipErrorInvalidDevice ? 77 : 1); \
    }                                                                                                  \
  } while (0)

// Order matters: every launch mixes what was there with its own number.
__global__ void mix(uint32_t* p, uint32_t n, uint32_t number) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = p[i] * 31 + number + i;
}
__global__ void other(uint32_t* p, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] ^= i * 7;
}

constexpr uint32_t n = 5000;
constexpr dim3 blocks((n + 255) / 256), threads(256);

uint32_t* buffer() {
  uint32_t* p = nullptr;
  CHECK(hipMalloc(reinterpret_cast<void**>(&p), n * 4));
  std::vector<uint32_t> values(n);
  for (uint32_t i = 0; i < n; ++i) values[i] = i;
  CHECK(hipMemcpy(p, values.data(), n * 4, hipMemcpyHostToDevice));
  return p;
}

void print(const char* name, const uint32_t* p) {
  std::vector<uint32_t> values(n);
  CHECK(hipMemcpy(values.data(), p, n * 4, hipMemcpyDeviceToHost));
  uint64_t sum = 14695981039346656037u;
  for (const uint32_t v : values) sum = (sum ^ v) * 1099511628211u;
  std::printf("%s %llu\n", name, static_cast<unsigned long long>(sum));
}

void on_streams(hipStream_t a, hipStream_t b) {
  uint32_t *p = buffer(), *q = buffer();
  for (uint32_t k = 0; k < 5; ++k) {
    mix<<<blocks, threads, 0, a>>>(p, n, k);
    other<<<blocks, threads, 0, b>>>(q, n);
  }
  CHECK(hipStreamSynchronize(a));
  CHECK(hipStreamSynchronize(b));
  print("a", p);
  print("b", q);
}

// Streams that wait for each other in turn: HIP makes barrier packets of that.
void barriers() {
  hipStream_t streams[3];
  hipEvent_t events[3];
  for (int i = 0; i < 3; ++i) {
    CHECK(hipStreamCreateWithFlags(&streams[i], hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&events[i], hipEventDisableTiming));
  }
  uint32_t* p = buffer();
  for (uint32_t k = 0; k < 12; ++k) {
    const uint32_t now = k % 3, before = (k + 2) % 3;
    if (k > 0) CHECK(hipStreamWaitEvent(streams[now], events[before], 0));
    mix<<<blocks, threads, 0, streams[now]>>>(p, n, k);
    CHECK(hipEventRecord(events[now], streams[now]));
  }
  CHECK(hipDeviceSynchronize());
  print("chain", p);
}

// Two branches and a copy, joined again.
void graph(int launches) {
  hipStream_t a, b;
  CHECK(hipStreamCreate(&a));
  CHECK(hipStreamCreate(&b));
  hipEvent_t fork, join;
  CHECK(hipEventCreateWithFlags(&fork, hipEventDisableTiming));
  CHECK(hipEventCreateWithFlags(&join, hipEventDisableTiming));
  uint32_t *p = buffer(), *q = buffer(), *copy = buffer();
  hipGraph_t graph;
  hipGraphExec_t ready;
  CHECK(hipStreamBeginCapture(a, hipStreamCaptureModeGlobal));
  mix<<<blocks, threads, 0, a>>>(p, n, 1);
  CHECK(hipEventRecord(fork, a));
  CHECK(hipStreamWaitEvent(b, fork, 0));
  other<<<blocks, threads, 0, b>>>(q, n);
  mix<<<blocks, threads, 0, b>>>(q, n, 2);
  CHECK(hipEventRecord(join, b));
  CHECK(hipMemcpyAsync(copy, p, n * 4, hipMemcpyDeviceToDevice, a));
  CHECK(hipStreamWaitEvent(a, join, 0));
  mix<<<blocks, threads, 0, a>>>(copy, n, 3);
  CHECK(hipStreamEndCapture(a, &graph));
  CHECK(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
  for (int i = 0; i < launches; ++i) CHECK(hipGraphLaunch(ready, a));
  CHECK(hipStreamSynchronize(a));
  print("p", p);
  print("q", q);
  print("copy", copy);
}

void two_devices(bool one_call, bool cooperative = false) {
  int count = 0;
  CHECK(hipGetDeviceCount(&count));
  if (count < 2) std::exit(77);
  uint32_t* p[2];
  hipStream_t stream[2];
  for (int d = 0; d < 2; ++d) {
    CHECK(hipSetDevice(d));
    CHECK(hipStreamCreate(&stream[d]));
    p[d] = buffer();
  }
  if (one_call) {
    uint32_t size = n, number = 9;
    void* arguments[2][3] = {{&p[0], &size, &number}, {&p[1], &size, &number}};
    hipLaunchParams launches[2]{};
    for (int d = 0; d < 2; ++d) {
      launches[d].func = reinterpret_cast<void*>(mix);
      launches[d].gridDim = blocks;
      launches[d].blockDim = threads;
      launches[d].args = arguments[d];
      launches[d].stream = stream[d];
    }
    CHECK(cooperative ? hipLaunchCooperativeKernelMultiDevice(launches, 2, 0)
                      : hipExtLaunchMultiKernelMultiDevice(launches, 2, 0));
  } else {
    std::vector<std::thread> hosts;
    for (int d = 0; d < 2; ++d)
      hosts.emplace_back([&, d] {
        CHECK(hipSetDevice(d));
        for (uint32_t k = 0; k < 6; ++k) mix<<<blocks, threads, 0, stream[d]>>>(p[d], n, k);
        CHECK(hipStreamSynchronize(stream[d]));
      });
    for (std::thread& host : hosts) host.join();
  }
  for (int d = 0; d < 2; ++d) {
    CHECK(hipSetDevice(d));
    CHECK(hipDeviceSynchronize());
    print(d == 0 ? "first" : "second", p[d]);
  }
}

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  hipStream_t a, b;
  if (kind == "priority") {
    int least = 0, greatest = 0;
    CHECK(hipDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(hipStreamCreateWithPriority(&a, hipStreamNonBlocking, greatest));
    CHECK(hipStreamCreateWithPriority(&b, hipStreamNonBlocking, least));
    on_streams(a, b);
  } else if (kind == "cu_mask") {
    const uint32_t first[] = {0x1}, second[] = {0x2};
    CHECK(hipExtStreamCreateWithCUMask(&a, 1, first));
    CHECK(hipExtStreamCreateWithCUMask(&b, 1, second));
    on_streams(a, b);
  } else if (kind == "null_streams") {
    CHECK(hipStreamCreate(&a));  // waits for the null stream, which waits for it
    on_streams(nullptr, a);
  } else if (kind == "barriers") {
    barriers();
  } else if (kind == "graph") {
    graph(1);
  } else if (kind == "graph_again") {
    graph(4);
  } else if (kind == "two_devices") {
    two_devices(false);
  } else if (kind == "multi_device") {
    two_devices(true);
  } else if (kind == "cooperative_multi_device") {
    two_devices(true, true);
  } else {
    return 2;
  }
  return 3;  // not 0: the exit status must come through, too
}
