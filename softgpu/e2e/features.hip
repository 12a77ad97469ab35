// Newer corners of the HIP runtime: pools, graphs, cooperative launches, priorities, virtual memory, device-side malloc.
#include <string>
#include <vector>

#include "check.h"

// The device library's grid barrier; Debian's HIP 5.2 lacks what its cooperative groups header needs.
extern "C" __device__ void __ockl_grid_sync();

__global__ void add_one(int* data) { data[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

__global__ void grid_sum(int* cells, int* total) {
  const unsigned self = blockIdx.x * blockDim.x + threadIdx.x;
  cells[self] = static_cast<int>(self);
  __ockl_grid_sync();
  if (self == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i) sum += cells[i];
    *total = sum;
  }
}

static std::vector<int> read_back(const int* device, int count) {
  std::vector<int> host(count);
  HIP_OK(hipMemcpy(host.data(), device, count * sizeof(int), hipMemcpyDeviceToHost));
  return host;
}

static void pools() {
  hipStream_t stream = nullptr;
  HIP_OK(hipStreamCreate(&stream));
  for (int round = 0; round < 5; ++round) {
    int* data = nullptr;
    HIP_OK(hipMallocAsync(reinterpret_cast<void**>(&data), 256 * sizeof(int), stream));
    HIP_OK(hipMemsetAsync(data, 0, 256 * sizeof(int), stream));
    add_one<<<4, 64, 0, stream>>>(data);
    int last = 0;
    HIP_OK(hipMemcpyAsync(&last, data + 255, sizeof last, hipMemcpyDeviceToHost, stream));
    HIP_OK(hipFreeAsync(data, stream));
    HIP_OK(hipStreamSynchronize(stream));
    EXPECT(last == 1);
  }
#if HIP_VERSION_MAJOR >= 6  // HIP 5.2 never returns from destroying a stream that has used a pool
  HIP_OK(hipStreamDestroy(stream));
#endif
}

static void graphs() {
  int* data = nullptr;
  HIP_OK(hipMalloc(&data, 64 * sizeof(int)));
  HIP_OK(hipMemset(data, 0, 64 * sizeof(int)));
  hipStream_t stream = nullptr;
  HIP_OK(hipStreamCreate(&stream));
  hipGraph_t graph = nullptr;
  hipGraphExec_t executable = nullptr;
  HIP_OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  for (int i = 0; i < 3; ++i) add_one<<<1, 64, 0, stream>>>(data);
  HIP_OK(hipStreamEndCapture(stream, &graph));
  HIP_OK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 4; ++i) HIP_OK(hipGraphLaunch(executable, stream));
  HIP_OK(hipStreamSynchronize(stream));
  for (const int value : read_back(data, 64)) EXPECT(value == 12);
  HIP_OK(hipGraphExecDestroy(executable));
  HIP_OK(hipGraphDestroy(graph));
  HIP_OK(hipStreamDestroy(stream));
  HIP_OK(hipFree(data));
}

static void cooperative() {
  int *cells = nullptr, *total = nullptr;
  const unsigned blocks = 8, threads = 64;
  HIP_OK(hipMalloc(&cells, blocks * threads * sizeof(int)));
  HIP_OK(hipMalloc(&total, sizeof(int)));
  void* arguments[] = {&cells, &total};
  HIP_OK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(grid_sum), dim3(blocks), dim3(threads), arguments, 0, nullptr));
  EXPECT(read_back(total, 1)[0] == static_cast<int>(blocks * threads * (blocks * threads - 1) / 2));
  HIP_OK(hipFree(cells));
  HIP_OK(hipFree(total));
}

static void priorities() {
  int least = 0, greatest = 0;
  HIP_OK(hipDeviceGetStreamPriorityRange(&least, &greatest));
  int* data = nullptr;
  HIP_OK(hipMalloc(&data, 64 * sizeof(int)));
  HIP_OK(hipMemset(data, 0, 64 * sizeof(int)));
  for (const int priority : {least, greatest}) {
    hipStream_t stream = nullptr;
    HIP_OK(hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, priority));
    add_one<<<1, 64, 0, stream>>>(data);
    HIP_OK(hipStreamSynchronize(stream));
    HIP_OK(hipStreamDestroy(stream));
  }
  for (const int value : read_back(data, 64)) EXPECT(value == 2);
  HIP_OK(hipFree(data));
}

#if HIP_VERSION_MAJOR >= 6
static void virtual_memory() {
  hipMemAllocationProp properties{};
  properties.type = hipMemAllocationTypePinned;
  properties.location.type = hipMemLocationTypeDevice;
  size_t granularity = 0;
  HIP_OK(hipMemGetAllocationGranularity(&granularity, &properties, hipMemAllocationGranularityRecommended));
  void* wanted = reinterpret_cast<void*>(0x7e0000000000);
  void* range = nullptr;
  HIP_OK(hipMemAddressReserve(&range, 2 * granularity, 0, wanted, 0));
  EXPECT(range == wanted);
  hipMemGenericAllocationHandle_t handle{};
  HIP_OK(hipMemCreate(&handle, granularity, &properties, 0));
  HIP_OK(hipMemMap(range, granularity, 0, handle, 0));
  hipMemAccessDesc access{};
  access.location = properties.location;
  access.flags = hipMemAccessFlagsProtReadWrite;
  HIP_OK(hipMemSetAccess(range, granularity, &access, 1));
  int* data = static_cast<int*>(range);
  HIP_OK(hipMemset(data, 0, 64 * sizeof(int)));
  add_one<<<1, 64>>>(data);
  for (const int value : read_back(data, 64)) EXPECT(value == 1);
  HIP_OK(hipMemUnmap(range, granularity));
  HIP_OK(hipMemRelease(handle));
  HIP_OK(hipMemAddressFree(range, 2 * granularity));
}
#else
static void virtual_memory() {}  // HIP 5.2 has none
#endif

int main(int count, char** arguments) {
  const std::string only = count > 1 ? arguments[1] : "";
  if (only.empty() || only == "pools") pools();
  if (only.empty() || only == "graphs") graphs();
  if (only.empty() || only == "priorities") priorities();
  if (only.empty() || only == "virtual-memory") virtual_memory();
  if (only.empty() || only == "cooperative") cooperative();
  std::puts("all good");
}
